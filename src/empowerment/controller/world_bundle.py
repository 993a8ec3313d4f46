"""The bundle of a world: a channel trained for all of its states, and a fit to its bound."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.channel import make_channel, train_channel
from empowerment.controller.bundle import Bundle, Description
from empowerment.controller.network_arrays import add_network, in_nats
from empowerment.policy import fit_bound
from empowerment.worlds import AbstractWorld, Bounded

STEPS = 5
"""Number of actions in a plan; a run can choose another."""

_UPDATES = 4000
"""Most updates of the channel."""


def world_bundle(world: Any, observation_size: int) -> Bundle:
    """Estimate empowerment all over a world whose state is observed, by plans of `STEPS` actions.

    The same as the first stages of a run. The policy of the bundle does nothing.

    Args:
        world: The world, with the actions of its environment.
        observation_size: Number of observed numbers of the environment.

    Raises:
        ValueError: If it is no world with continuous states, or its state is not what is observed.
    """
    if not isinstance(world, AbstractWorld):
        raise ValueError(  # noqa: TRY004 (invalid input, not a programming error)
            f"Expected a world with continuous states; got {type(world).__name__}. Others need a "
            "run of their environment."
        )
    inner = world.world if isinstance(world, Bounded) else world
    states, actions = inner.states, inner.actions
    if states.size != observation_size:  # Now, rather than after the training.
        raise ValueError(
            f"Expected an environment that shows the {states.size} numbers of the state of the "
            f"world; got {observation_size} observed ones."
        )
    channel_key, train_key, fit_key = jax.random.split(jax.random.key(0), 3)
    bounded = Bounded(inner)
    untrained = make_channel(bounded, family="auto", steps=STEPS, key=channel_key)
    trained = train_channel(untrained, bounded, num_updates=_UPDATES, key=train_key)
    fit, facts = fit_bound(trained.model, bounded, key=fit_key)
    networks: dict[str, tuple[str, ...]] = {"policy": ("identity",)}
    outputs = actions.size if actions.choices else 2 * actions.size
    arrays: dict[str, Any] = {
        "states.centre": states.centre,
        "states.half_width": 0.5 * (states.high - states.low),
        "policy.0.weight": jnp.zeros((outputs, states.feature_size)),
        "policy.0.bias": jnp.zeros(outputs),
    }
    add_network(networks, arrays, "bound", in_nats(fit.surrogate))
    choices = actions.choices
    columns = range(len(choices) or actions.size)
    description = Description(
        observation_names=states.names,
        action_names=tuple(f"action_{column}" for column in columns),
        low=(0.0,) * len(choices) if choices else tuple(actions.low.tolist()),
        high=tuple(n - 1.0 for n in choices) if choices else tuple(actions.high.tolist()),
        choices=choices,
        networks=networks,
        angles=tuple(states.names.index(name) for name in states.angles),
        bound_error=facts["error"],
    )
    return Bundle(description, {name: np.asarray(a, np.float32) for name, a in arrays.items()})
