"""Training a channel: ascend the bound at states from everywhere."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from empowerment.channel.base import AbstractChannel
from empowerment.channel.bound import information_bound
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld

_CLIP = 1.0
"""The largest norm of a gradient."""

_SETTLED = 0.0005
"""Nats that the mean bound must gain from one look back to the next, or it has settled."""

_LOOK_BACK = 0.2
"""Of the whole budget, the time of a look back."""

_ANNEAL = 0.4
"""The share of all updates in which the learning rate falls to zero."""

_NUM_PROBES = 64
_PROBE_DRAWS = 8


class DivergedError(RuntimeError):
    """Training went where no bound can be."""


class TrainingState(eqx.Module):
    """What is carried from update to update.

    Attributes:
        channel: The channel so far.
        optimiser: What the optimiser remembers.
        num_updates: How many updates were made.
        key: Of what is to come.
    """

    channel: AbstractChannel
    optimiser: optax.OptState
    num_updates: Int[Array, ""]
    key: Key


class Info(eqx.Module):
    """What is only for looking at.

    Attributes:
        bound: The mean bound over the updates of a call, in nats.
        gradient_norm: The mean norm of the gradients before clipping.
    """

    bound: Scalar
    gradient_norm: Scalar


@dataclass(frozen=True)
class Trained:
    """A trained channel and how it came about.

    Attributes:
        channel: The channel.
        history: After each call: updates made, and the bound at fixed states and draws.
        stopped: Why training stopped, in words.
    """

    channel: AbstractChannel
    history: list[tuple[int, float]] = field(repr=False)
    stopped: str


@dataclass(frozen=True)
class Snapshot:
    """Where training stands: enough to go on from, to the same bits.

    Attributes:
        state: What is carried from update to update.
        history: After each call: updates made, and the bound at fixed states and draws.
        total: The number of updates after which training will stop, as far as is known.
    """

    state: TrainingState
    history: list[tuple[int, float]]
    total: int


def init(channel: AbstractChannel, *, key: Key) -> TrainingState:
    """Begin training.

    Args:
        channel: An untrained channel, or one to train further.
        key: Consumed.

    Returns:
        The state before the first update.
    """
    parameters = eqx.filter(channel, eqx.is_inexact_array)
    return TrainingState(channel, _optimiser().init(parameters), jnp.array(0), key)


@eqx.filter_jit
def step(
    state: TrainingState,
    world: AbstractWorld,
    visited: Float[Array, "visited state"] | None = None,
    *,
    learning_rates: Float[Array, " updates"],
    batch_size: int,
) -> tuple[TrainingState, Info]:
    """Make many updates in one compiled call.

    Args:
        state: Where training stands.
        world: A world whose actions live before the squash.
        visited: States to train at, half of each batch; the rest is from everywhere.
        learning_rates: One for each update.
        batch_size: The number of states in an update.

    Returns:
        Where training stands afterwards, and what to look at.
    """
    parameters, rest = eqx.partition(state.channel, eqx.is_inexact_array)
    key, batch_key = jax.random.split(state.key)

    def loss(parameters: AbstractChannel, states: Float[Array, "batch state"], key: Key) -> Scalar:
        channel = eqx.combine(parameters, rest)
        keys = jax.random.split(key, batch_size)
        bound = jax.vmap(lambda state, key: information_bound(channel, world, state, key=key))
        return -jnp.mean(bound(states, keys))

    def update(carry, inputs):
        parameters, optimiser = carry
        learning_rate, key = inputs
        state_key, bound_key = jax.random.split(key)
        states = sample_states(world, visited, batch_size, key=state_key)
        cost, gradient = jax.value_and_grad(loss)(parameters, states, bound_key)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts in whole numbers.
            changes, optimiser = _optimiser().update(gradient, optimiser)
        changes = jax.tree.map(lambda change: -learning_rate * change, changes)
        info = Info(-cost, optax.tree.norm(gradient))
        return (eqx.apply_updates(parameters, changes), optimiser), info

    keys = jax.random.split(batch_key, learning_rates.size)
    (parameters, optimiser), info = jax.lax.scan(
        update, (parameters, state.optimiser), (learning_rates, keys)
    )
    channel = eqx.combine(parameters, rest)
    num_updates = state.num_updates + learning_rates.size
    after = TrainingState(channel, optimiser, num_updates, key)
    return after, jax.tree.map(jnp.mean, info)


def train(
    channel: AbstractChannel,
    world: AbstractWorld,
    *,
    num_updates: int,
    batch_size: int = 32,
    learning_rate: float = 3e-3,
    visited: Float[Array, "visited state"] | None = None,
    ceiling: float = math.inf,
    updates_per_call: int = 100,
    progress: Callable[[Snapshot], None] = lambda snapshot: None,
    resume: Snapshot | None = None,
    key: Key,
) -> Trained:
    """Train a channel until its bound has settled or the budget is spent.

    The learning rate stays until the bound at fixed states settles, or most of the budget is
    spent; then it falls to zero.

    Args:
        channel: An untrained channel, or one to train further.
        world: A world whose actions live before the squash.
        num_updates: The budget.
        batch_size: The number of states in an update.
        learning_rate: Of Adam, before it falls.
        visited: States to train at, half of each batch; the rest is from everywhere.
        ceiling: What the mean bound cannot exceed, where the capacity is known.
        updates_per_call: Updates between two looks at the bound.
        progress: Called after each call with where training stands.
        resume: Where to go on from; the rest must be as it was before.
        key: Consumed.

    Returns:
        The trained channel.

    Raises:
        DivergedError: If the bound is not finite, or above the ceiling.
    """
    if num_updates < updates_per_call:
        updates_per_call = max(num_updates, 1)
    train_key, probe_key = jax.random.split(key)
    calls = max(num_updates // updates_per_call, 1)
    if resume is None:
        state, history = init(channel, key=train_key), [(0, _look(channel, world, probe_key))]
    else:
        state, history = resume.state, list(resume.history)
    while True:
        done = len(history) - 1
        steady, last = _schedule([bound for _, bound in history], calls)
        if done >= last:
            break
        places = done + (jnp.arange(updates_per_call, dtype=float) + 1) / updates_per_call
        left = jnp.clip((last - places) / max(last - steady, 1), 0, 1)
        rates = learning_rate * 0.5 * (1 - jnp.cos(jnp.pi * left))
        state, info = step(state, world, visited, learning_rates=rates, batch_size=batch_size)
        bound = _look(state.channel, world, probe_key)
        made = (done + 1) * updates_per_call
        _check(bound, float(info.bound), ceiling, made, history[-1])
        history.append((made, bound))
        progress(Snapshot(state, history, last * updates_per_call))
    stopped = "the bound has settled" if last < calls else "the budget is spent"
    return Trained(state.channel, history, stopped)


def _schedule(bounds: list[float], calls: int) -> tuple[int, int]:
    """Say from which call on the learning rate falls, and which call is the last.

    It falls when the bound has settled, or when only the time to fall is left.
    """
    look_back = max(round(_LOOK_BACK * calls), 1)
    steady = round((1 - _ANNEAL) * calls)
    for done in range(2 * look_back, min(len(bounds), steady)):
        now = bounds[done + 1 - look_back : done + 1]
        before = bounds[done + 1 - 2 * look_back : done + 1 - look_back]
        if math.fsum(now) - math.fsum(before) < look_back * _SETTLED:
            return done, math.ceil(done / (1 - _ANNEAL))
    return steady, calls


def _look(channel: AbstractChannel, world: AbstractWorld, key: Key) -> float:
    return float(_probe(channel, world, key))


def sample_states(
    world: AbstractWorld,
    visited: Float[Array, "visited state"] | None,
    size: int,
    *,
    key: Key,
) -> Float[Array, "batch state"]:
    """Draw states from the whole region of a world, every other one from those visited."""
    region_key, visited_key = jax.random.split(key)
    region = world.state_distribution()
    states = jax.vmap(lambda key: region.sample(key=key))(jax.random.split(region_key, size))
    if visited is None:
        return states
    choice = jax.random.choice(visited_key, visited, (size,))
    return jnp.where(jnp.arange(size)[:, None] % 2 == 0, states, choice)


@eqx.filter_jit
def _probe(channel: AbstractChannel, world: AbstractWorld, key: Key) -> Scalar:
    """Estimate the bound at states and by draws that are always the same."""
    state_key, draw_key = jax.random.split(key)
    states = sample_states(world, None, _NUM_PROBES, key=state_key)
    keys = jax.random.split(draw_key, (_NUM_PROBES, _PROBE_DRAWS))

    def of_state(state: State, keys: Array) -> Scalar:
        bound = jax.vmap(lambda key: information_bound(channel, world, state, key=key))
        return bound(keys).mean()

    return jax.vmap(of_state)(states, keys).mean()


def _check(
    bound: float, mean: float, ceiling: float, num_updates: int, last: tuple[int, float]
) -> None:
    """Stop where a bound cannot be."""
    if not (math.isfinite(bound) and math.isfinite(mean)):
        raise DivergedError(
            f"Expected the bound to stay finite; got {bound} nats by update {num_updates}. The "
            f"last finite bound was {last[1]:.3f} nats at update {last[0]}. Try a lower learning "
            "rate."
        )
    if bound > ceiling:
        raise DivergedError(
            f"Expected the bound to stay below the capacity of {ceiling:.3f} nats; got "
            f"{bound:.3f} at update {num_updates}. The densities of source or planning are wrong."
        )


def _optimiser() -> optax.GradientTransformation:
    """Give Adam's direction; the learning rate is traced and comes in later."""
    return optax.chain(optax.clip_by_global_norm(_CLIP), optax.scale_by_adam())
