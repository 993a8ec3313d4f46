"""From a trained agent to the bundle that a controller runs, without JAX."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from empowerment.controller.bundle import Bundle, Description
from empowerment.controller.network_arrays import add_network, in_nats
from empowerment.model import DVBF
from empowerment.model.dvbf import LEAST_SCALE
from empowerment.policy import Policy, Surrogate
from empowerment.policy.base import LOG_SCALES, UNIFORM_SHARE
from empowerment.worlds import Bounded, Box


def to_bundle(
    *,
    policy: Policy,
    world: Bounded,
    model: DVBF | None,
    bound: Surrogate | None = None,
    about: Mapping[str, Any] | None = None,
    observation_names: tuple[str, ...] | None = None,
    environment: str | None = None,
    interval: float | None = None,
    action_repeat: int = 1,
) -> Bundle:
    """Build the bundle of a policy: everything that its controller needs.

    Args:
        policy: The policy; the controller takes its mean action.
        world: The world it was trained in; its action limits are the controller's.
        model: Model whose filter estimates the state; none where the state is observed.
        bound: Fit to the bound on empowerment, by which the controller knows how empowered it is.
        about: Further facts, for people, in JSON.
        observation_names: Names of the observed numbers; by default those of the world, or
            numbered where there is a model.
        environment: Gymnasium id of the environment that the policy is for.
        interval: Seconds from one action to the next.
        action_repeat: Number of environment steps for which an action is repeated.
    """
    actions, states = world.world.actions, policy.states
    choices = actions.choices
    networks, arrays = (
        {},
        {
            "states.centre": states.centre,
            "states.half_width": 0.5 * (states.high - states.low),
        },
    )
    add_network(networks, arrays, "policy", policy.network)
    if bound is not None:
        if not _is_same_region(bound.states, states):
            raise ValueError(
                "Expected the bound to be fitted in the region of the policy's states; got another."
            )
        add_network(networks, arrays, "bound", in_nats(bound))
    if observation_names is None:
        observation_names = states.names
        if model is not None:
            size = model.observations.offset.size
            observation_names = tuple(f"observation {axis}" for axis in range(size))
    if model is not None:
        size = model.latent_size
        add_network(networks, arrays, "recognition", model.recognition, np.arange(size))
        add_network(networks, arrays, "start", model.start)
        # The prior scale of the transition is not needed.
        rows = np.r_[0:size, 2 * size : 3 * size]
        add_network(networks, arrays, "transition", model.transition_network, rows)
        add_network(networks, arrays, "measurement", model.measurement_network)
        for name in ("observations", "actions"):
            scaling = getattr(model, name)
            arrays |= {f"{name}.offset": scaling.offset, f"{name}.scale": scaling.scale}
    description = Description(
        observation_names=tuple(observation_names),
        action_names=_action_names(actions),
        low=(0.0,) * len(choices) if choices else tuple(actions.low.tolist()),
        high=tuple(n - 1.0 for n in choices) if choices else tuple(actions.high.tolist()),
        choices=choices,
        networks=networks,
        angles=tuple(states.names.index(name) for name in states.angles),
        latent_size=0 if model is None else model.latent_size,
        num_initial=1 if model is None else model.num_initial,
        residual=True if model is None else not model.as_published,
        scales="square" if model is not None and model.as_published else "softplus",
        environment=environment,
        interval=interval,
        action_repeat=action_repeat,
        least_scale=LEAST_SCALE,
        log_scales=LOG_SCALES,
        uniform_share=UNIFORM_SHARE if choices else 0.0,
        bound_error=None if bound is None else float(bound.error),
        about=dict(about or {}),
    )
    return Bundle(description, {name: np.asarray(a, np.float32) for name, a in arrays.items()})


def _action_names(actions: Box) -> tuple[str, ...]:
    """Return a name for each action: of a discrete one, how the names of its choices begin."""
    if not actions.choices:
        return tuple(actions.names)
    firsts = np.cumsum((0, *actions.choices[:-1]))
    return tuple(actions.names[first].partition("=")[0] for first in firsts)


def _is_same_region(one: Box, other: Box) -> bool:
    """Return whether two boxes have the same limits and angles."""
    limits = zip((one.low, one.high), (other.low, other.high), strict=True)
    return one.angles == other.angles and all(np.array_equal(a, b) for a, b in limits)
