"""Families of source and planning, chosen by name."""

import math
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from empowerment.channel.base import AbstractChannel, Inputs, fit_inputs
from empowerment.channel.bound import Channel
from empowerment.channel.codebook import Codebook
from empowerment.channel.flow import couplings
from empowerment.channel.planning import FlowPlanning, StepwisePlanning
from empowerment.channel.source import DiagonalSource, FlowSource, IntentSource
from empowerment.networks import full_size, network
from empowerment.types import Action, Key, State
from empowerment.worlds import AbstractWorld, Bounded, foresee, is_foreseeable

_CODES_PER_SUCCESSOR = 3.5
"""Codes for each successor that can be told apart."""

_FEWEST_CODES, _MOST_CODES = 32, 1024

_NUM_TRIALS = 256
"""Random plans that a world must bear before anything is trained."""


class Family(Protocol):
    """Makes an untrained channel."""

    def __call__(
        self,
        inputs: Inputs,
        *,
        steps: int,
        action_size: int,
        observation_size: int,
        width: int = 128,
        depth: int = 2,
        key: Key,
    ) -> AbstractChannel:
        """Make source and planning for plans of so many steps."""
        ...


def paper(
    inputs: Inputs,
    *,
    steps: int,
    action_size: int,
    observation_size: int,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> Channel:
    """Make the paper's: independent Gaussians; planning sees the previous action only.

    Karl et al. (2018), Sec. 2.5 and App. A.3.1.
    """
    return _stepwise(inputs, 1, steps, action_size, observation_size, width, depth, key)


def autoregressive(
    inputs: Inputs,
    *,
    steps: int,
    action_size: int,
    observation_size: int,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> Channel:
    """Make independent Gaussians; planning sees all previous actions."""
    return _stepwise(inputs, steps, steps, action_size, observation_size, width, depth, key)


def _stepwise(
    inputs: Inputs,
    num_seen: int,
    steps: int,
    action_size: int,
    observation_size: int,
    width: int,
    depth: int,
    key: Key,
) -> Channel:
    """Make a factorised planning whose steps see some actions before them."""
    source_key, planning_key = jax.random.split(key)
    size = steps * action_size
    source = network(inputs.size, 2 * size, width=width, depth=depth, key=source_key)
    in_size = inputs.size + observation_size + size

    def of_step(key: Key) -> eqx.nn.MLP:
        return network(in_size, 2 * action_size, width=width, depth=depth, key=key)

    networks = eqx.filter_vmap(of_step)(jax.random.split(planning_key, steps))
    planning = StepwisePlanning(networks, num_seen, steps)
    return Channel(
        source=DiagonalSource(source, steps), planning=planning, inputs=inputs, steps=steps
    )


def gaussian(
    inputs: Inputs,
    *,
    steps: int,
    action_size: int,
    observation_size: int,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> Channel:
    """Make Gaussians with full covariance on both sides."""
    source_key, planning_key = jax.random.split(key)
    size = steps * action_size
    in_size, out_size = inputs.size + observation_size, full_size(size)
    source = network(inputs.size, out_size, width=width, depth=depth, key=source_key)
    planning = network(in_size, out_size, width=width, depth=depth, key=planning_key)
    return Channel(
        source=FlowSource(source, None, size, steps),
        planning=FlowPlanning(planning, None, size),
        inputs=inputs,
        steps=steps,
    )


def flow(
    inputs: Inputs,
    *,
    steps: int,
    action_size: int,
    observation_size: int,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> Channel:
    """Make Gaussians with full covariance, bent by coupling layers, on both sides."""
    gaussian_key, source_key, planning_key = jax.random.split(key, 3)
    plain = gaussian(
        inputs,
        steps=steps,
        action_size=action_size,
        observation_size=observation_size,
        width=width,
        depth=depth,
        key=gaussian_key,
    )
    size = steps * action_size
    in_size = inputs.size + observation_size
    layers = (
        couplings(size, inputs.size, width=width, depth=depth, key=source_key),
        couplings(size, in_size, width=width, depth=depth, key=planning_key),
    )
    return eqx.tree_at(
        lambda made: (made.source.layers, made.planning.layers),
        plain,
        layers,
        is_leaf=lambda leaf: leaf is None,
    )


def intent(
    inputs: Inputs,
    *,
    steps: int,
    action_size: int,
    observation_size: int,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> Channel:
    """Make a source of intents, and a bent Gaussian that reads the intent."""
    source_key, planning_key, layers_key = jax.random.split(key, 3)
    size = min(observation_size, steps * action_size)
    source = network(
        inputs.size + size, steps * action_size, width=width, depth=depth, key=source_key
    )
    in_size = inputs.size + observation_size
    planning = network(in_size, full_size(size), width=width, depth=depth, key=planning_key)
    layers = couplings(size, in_size, width=width, depth=depth, key=layers_key)
    return Channel(
        source=IntentSource(source, size, steps),
        planning=FlowPlanning(planning, layers, size),
        inputs=inputs,
        steps=steps,
    )


FAMILIES: dict[str, Family] = {
    "paper": paper,
    "autoregressive": autoregressive,
    "gaussian": gaussian,
    "flow": flow,
    "intent": intent,
}
"""The families whose planning is learnt, by name."""


def make_channel(
    world: AbstractWorld,
    *,
    family: str,
    steps: int,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> AbstractChannel:
    """Make an untrained channel for a world.

    Args:
        world: A world whose actions live before the squash (`Bounded`).
        family: A name of `FAMILIES`; or `codebook`, for worlds where the density of the
            perceived successor is known; or `auto`: codebook there, intent elsewhere.
        steps: The number of actions in a plan.
        width: Of the hidden layers of its networks.
        depth: The number of those layers; a codebook has its own.
        key: Consumed.

    Returns:
        The channel, with scales fitted to the world.
    """
    names = [*FAMILIES, "codebook", "auto"]
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
    trial_key, foresee_key, inputs_key, channel_key = jax.random.split(key, 4)
    _try_out(world, steps, trial_key)
    if family in ("codebook", "auto"):
        known = is_foreseeable(world, steps=steps, key=foresee_key)
        if family == "codebook" and not known:
            raise ValueError(
                "Expected a world whose perceived successor has a known density, for a "
                f"codebook of {steps} steps; got noise on the way. Take the family intent."
            )
        family = "codebook" if known else "intent"
    inputs = fit_inputs(world, steps=steps, key=inputs_key)
    action_size, observation_size = world.actions.size, inputs.whitener.shape[0]
    if family == "codebook":
        intent_size = min(observation_size, steps * action_size)
        return Codebook(
            inputs,
            steps=steps,
            action_size=action_size,
            intent_size=intent_size,
            num_codes=_count_codes(world, inputs, steps, intent_size),
            width=width,
            key=channel_key,
        )
    return FAMILIES[family](
        inputs,
        steps=steps,
        action_size=action_size,
        observation_size=observation_size,
        width=width,
        depth=depth,
        key=channel_key,
    )


def _count_codes(world: Bounded, inputs: Inputs, steps: int, intent_size: int) -> int:
    """Choose how many codes are enough, by how many successors can be told apart.

    If successors and noise were Gaussian, the information would be half the logarithm of
    the ratio of their determinants. Random actions cancel; a plan that spends all of its
    actions on one axis of intents goes further, by the square root of their number.
    """
    still = jnp.zeros((steps, world.actions.size))
    noise = foresee(world, world.states.centre, still).scale
    spread = -jnp.linalg.slogdet(inputs.whitener)[1]
    together = 0.5 * intent_size * math.log(steps * world.actions.size / intent_size)
    information = float(spread - jnp.sum(jnp.log(noise))) + together
    wanted = _CODES_PER_SUCCESSOR * math.exp(min(information, math.log(_MOST_CODES)))
    wanted = min(max(wanted, _FEWEST_CODES), _MOST_CODES)
    if intent_size > 2:
        return round(wanted)
    return math.ceil(wanted ** (1 / intent_size)) ** intent_size


def _try_out(world: Bounded, steps: int, key: Key) -> None:
    """Refuse a world that answers with numbers that are not finite."""

    def is_sound(state: State, key: Key) -> Bool[Array, ""]:
        def step(state: State, action: Action) -> tuple[State, Bool[Array, ""]]:
            successor = world.transition(state, action)
            seen = world.emission(successor.mean)
            finite = jax.tree.map(lambda a: jnp.all(jnp.isfinite(a)), (successor, seen))
            return successor.mean, jnp.stack(jax.tree.leaves(finite)).all()

        plan = jax.random.normal(key, (steps, world.actions.size))
        return jax.lax.scan(step, state, plan)[1].all()

    state_key, plan_key = jax.random.split(key)
    sample = world.states.uniform().sample
    states = jax.vmap(lambda key: sample(key=key))(jax.random.split(state_key, _NUM_TRIALS))
    sound = jax.jit(jax.vmap(is_sound))(states, jax.random.split(plan_key, _NUM_TRIALS))
    if not bool(sound.all()):
        state = states[jnp.argmin(sound)]
        raise ValueError(
            "Expected successors to be finite everywhere in the region; got one that is not "
            f"within {steps} steps of state {state.tolist()}."
        )
