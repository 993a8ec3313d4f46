"""Making a channel for a world: of a named family, or of the one that suits it."""

from collections.abc import Mapping
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from empowerment.channel.base import AbstractChannel, Inputs, fit_inputs
from empowerment.channel.codebook_size import count_codes, count_read_codes, first_reader
from empowerment.channel.discrete_plans import discrete_plans, is_complete
from empowerment.channel.evaluation import empowerment_at
from empowerment.channel.families import FAMILIES, Family, Sizes, codebook, intent
from empowerment.channel.linearised import Linearised
from empowerment.channel.training import sample_states, train_channel
from empowerment.types import Action, Key, State
from empowerment.worlds import AbstractWorld, Bounded, has_closed_form_density

_TRIAL_UPDATES = 600
"""Updates after which families are compared."""

_NUM_JUDGED = 64
"""States at which they are compared."""

_NUM_TRIALS = 256
"""Random plans on which a world is validated before training."""


def make_channel(
    world: AbstractWorld,
    *,
    family: str,
    steps: int,
    width: int = 128,
    depth: int = 2,
    trial_updates: int = _TRIAL_UPDATES,
    key: Key,
) -> AbstractChannel:
    """Build an untrained channel for a world.

    Args:
        world: A world whose actions live before the squash (`Bounded`).
        family: A name of `FAMILIES`; or `codebook`; or `auto`: codebook where the density of
            the perceived successor is known in closed form, elsewhere the one of codebook and
            intent whose bound is larger after a short training of both; or `linearised`, an
            approximation in closed form with nothing to train.
        steps: The number of actions in a plan.
        width: The size of hidden layers.
        depth: The number of hidden layers; ignored by a codebook.
        trial_updates: Most updates after which families are compared.
        key: Consumed.

    Returns:
        The channel, with input scaling fitted to the world.
    """
    names = [*FAMILIES, "codebook", "auto", "linearised"]
    if family not in names:
        raise ValueError(f"Expected the family to be one of {', '.join(names)}; got {family!r}.")
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    is_bounded = isinstance(world, Bounded)
    if not is_bounded:
        raise ValueError(
            "Expected a world whose actions live before the squash; got "
            f"{type(world).__name__}. Wrap it: Bounded(world)."
        )
    if not world.states.finite:
        raise ValueError(
            "Expected the region of states to be finite, to train in all of it; got "
            f"{world.states.low.tolist()} to {world.states.high.tolist()}."
        )
    if world.actions.choices and family not in ("codebook", "auto"):
        raise ValueError(
            f"Expected the family to be codebook or auto, since actions are discrete; got {family}."
        )
    trial_key, density_key, inputs_key, channel_key = jax.random.split(key, 4)
    _validate(world, steps, trial_key)
    inputs = fit_inputs(world, steps=steps, key=inputs_key)
    if family == "linearised":
        return Linearised(inputs=inputs, steps=steps, action_size=world.actions.size)
    known = has_closed_form_density(world, steps=steps, key=density_key)
    sizes = Sizes(steps, world.actions.size, inputs.whitener.shape[0], width, depth)
    if family in FAMILIES:
        return _compiled(FAMILIES[family], inputs, sizes, channel_key)
    made = _compiled(_make_codebook(world, inputs, sizes, known), inputs, sizes, channel_key)
    if family == "codebook" or known or world.actions.choices:
        return made
    both = made, _compiled(intent, inputs, sizes, channel_key)
    return _tighter(both, world, min(trial_updates, _TRIAL_UPDATES), key=trial_key)


def _tighter(
    channels: tuple[AbstractChannel, ...], world: Bounded, num_updates: int, *, key: Key
) -> AbstractChannel:
    """Return the channel whose bound is the largest after a short training of each."""
    train_key, state_key, draw_key = jax.random.split(key, 3)
    states = sample_states(world, None, _NUM_JUDGED, key=state_key)
    keys = jax.random.split(draw_key, _NUM_JUDGED)

    def bound(channel: AbstractChannel) -> float:
        trained = train_channel(channel, world, num_updates=num_updates, key=train_key).model
        return float(empowerment_at(trained, world, states, keys).mean())

    return max(channels, key=bound)


@eqx.filter_jit
def _compiled(family: Family, inputs: Inputs, sizes: Sizes, key: Key) -> AbstractChannel:
    """Initialise all parameters in one compiled call; op by op it takes seconds."""
    return family(inputs, sizes, key=key)


def _make_codebook(world: Bounded, inputs: Inputs, sizes: Sizes, known: bool) -> Family:  # noqa: FBT001
    """Choose the number of codes and the dimension of intents of a codebook."""
    reader = None if known else first_reader(world, sizes.steps)
    if world.actions.choices:
        plans = discrete_plans(world.actions, sizes.steps)
        return partial(
            codebook,
            num_codes=len(plans),
            intent_size=sizes.plan,
            reader=reader,
            plans=plans,
            has_all_plans=is_complete(world.actions, sizes.steps),
        )
    if known and sizes.observation <= 2:
        intent_size = min(sizes.observation, sizes.plan)
        num_codes = count_codes(world, inputs, sizes.steps)
    else:
        intent_size, num_codes = count_read_codes(world, sizes.steps)
    return partial(codebook, num_codes=num_codes, intent_size=intent_size, reader=reader)


def _validate(world: Bounded, steps: int, key: Key) -> None:
    """Check that rollouts of random plans at random states are finite."""

    def is_finite(state: State, key: Key) -> Bool[Array, ""]:
        def step(state: State, action: Action) -> tuple[State, Bool[Array, ""]]:
            successor = world.transition(state, action)
            emission = world.emission(successor.mean)
            finite = jax.tree.map(lambda a: jnp.all(jnp.isfinite(a)), (successor, emission))
            return successor.mean, jnp.stack(jax.tree.leaves(finite)).all()

        plan = jax.random.normal(key, (steps, world.actions.size))
        return jax.lax.scan(step, state, plan)[1].all()

    @jax.jit
    def trials(key: Key) -> tuple[Float[Array, "trials state"], Bool[Array, " trials"]]:
        state_key, plan_key = jax.random.split(key)
        region = world.state_distribution()
        states = jax.vmap(lambda key: region.sample(key=key))(
            jax.random.split(state_key, _NUM_TRIALS)
        )
        return states, jax.vmap(is_finite)(states, jax.random.split(plan_key, _NUM_TRIALS))

    states, finite = trials(key)
    if not bool(finite.all()):
        state = states[jnp.argmin(finite)]
        raise ValueError(
            "Expected successors to be finite everywhere in the region; got one that is not "
            f"within {steps} steps of state {state.tolist()}."
        )


def channel_like(
    world: AbstractWorld,
    arrays: Mapping[str, np.ndarray],
    *,
    family: str,
    steps: int,
    width: int = 128,
    depth: int = 2,
) -> AbstractChannel:
    """Return the shapes of a stored channel, to load it into; nothing is computed."""
    size = arrays[".inputs.whitener"].shape[0]
    identity = jnp.asarray(np.eye(size), float)  # By NumPy: JAX would compile it.
    inputs = Inputs(world.states, identity)
    if family == "linearised":
        return Linearised(inputs=inputs, steps=steps, action_size=world.actions.size)
    sizes = Sizes(steps, world.actions.size, size, width, depth)
    make = FAMILIES.get("intent" if family == "auto" else family, intent)
    if ".intents" in arrays:
        num_codes, intent_size = arrays[".intents"].shape
        make = partial(
            codebook,
            num_codes=num_codes,
            intent_size=intent_size,
            reader=identity if ".reader" in arrays else None,
            plans=jnp.zeros(arrays[".plans"].shape) if ".plans" in arrays else None,
            has_all_plans=bool(world.actions.choices) and is_complete(world.actions, steps),
        )
    return eqx.filter_eval_shape(make, inputs, sizes, key=jax.random.key(0))
