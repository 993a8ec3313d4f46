"""Training a channel: ascend the bound at states from the whole region."""

import math
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.channel.base import AbstractChannel
from empowerment.channel.bound import information_bound
from empowerment.channel.codebook import Codebook
from empowerment.devices import shard
from empowerment.errors import DivergedError
from empowerment.optimise import SILENT, Callback, Snapshot, TrainingState
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld

MANY_CODES = 200
"""Number of codes from which a codebook is large: every update costs more."""

_OPTIMISER = optimise.clipped_adam(1.0)

_SETTLED = 0.0005
"""Nats that the mean bound must gain from one look-back window to the next to go on."""

_LOOK_BACK = 0.2
"""Length of a look-back window, as a fraction of the budget."""

_ANNEAL = 0.4
"""Fraction of all updates in which the learning rate decays to zero."""

_NUM_PROBES = 64
_PROBE_DRAWS = 8


class Info(eqx.Module):
    """Diagnostics: means over the updates of a call.

    Attributes:
        batch_bound: Bound at the states of the batches, in nats.
        gradient_norm: Norm of the gradient before clipping.
    """

    batch_bound: Scalar
    gradient_norm: Scalar


def init(channel: AbstractChannel, *, key: Key) -> TrainingState:
    """Build the state before the first update of an untrained channel, or one to fine-tune."""
    return optimise.init(channel, _OPTIMISER, key=key)


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

    Returns:
        The state afterwards, and diagnostics.
    """

    def loss(channel: AbstractChannel, target: None, inputs: None, key: Key):
        state_key, bound_key = jax.random.split(key)
        states = shard(sample_states(world, visited, batch_size, key=state_key))
        keys = shard(jax.random.split(bound_key, batch_size))
        bound = jax.vmap(lambda state, key: information_bound(channel, world, state, key=key))
        cost = -jnp.mean(bound(states, keys))
        return cost, cost

    def diagnose(cost: Scalar, gradient: Any) -> Info:
        return Info(-cost, optax.tree.norm(gradient))

    return optimise.updates(
        loss,
        state,
        None,
        learning_rates=learning_rates,
        optimiser=_OPTIMISER,
        diagnose=diagnose,
    )


def train_channel(
    channel: AbstractChannel,
    world: AbstractWorld,
    *,
    num_updates: int,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    visited: Float[Array, "visited state"] | None = None,
    ceiling: float = math.inf,
    updates_per_call: int = 100,
    callback: Callback = SILENT,
    key: Key,
) -> Snapshot:
    """Train a channel until its bound has settled or the budget is spent.

    The learning rate is constant until the bound at fixed probe states settles, or most of the
    budget is spent; then it decays to zero.

    Args:
        channel: An untrained channel, or one to fine-tune.
        world: A world whose actions live before the squash.
        num_updates: Budget.
        batch_size: Number of states in an update; by default what suits the family.
        learning_rate: Learning rate of Adam before it decays; by default what suits the family.
        visited: States for half of each batch; the rest is sampled from the whole region.
        ceiling: Upper limit of the mean bound, where the capacity is known.
        updates_per_call: Updates between two evaluations of the bound.
        callback: Observer.
        key: Consumed.

    Returns:
        The final snapshot; `model` is the trained channel.

    Raises:
        DivergedError: If the bound is not finite, or above the ceiling.
    """
    updates_per_call = min(updates_per_call, max(num_updates, 1))
    train_key, probe_key = jax.random.split(key)
    calls = max(num_updates // updates_per_call, 1)
    batch, rate = _defaults(channel)
    batch_size, learning_rate = batch_size or batch, learning_rate or rate

    def advance(at: Snapshot) -> Snapshot:
        done = len(at.history) - 1
        steady, last = _schedule([seen["bound"] for _, seen in at.history], calls)
        positions = done + (jnp.arange(updates_per_call, dtype=float) + 1) / updates_per_call
        left = jnp.clip((last - positions) / max(last - steady, 1), 0, 1)
        rates = learning_rate * 0.5 * (1 - jnp.cos(jnp.pi * left))
        state, info = step(at.state, world, visited, learning_rates=rates, batch_size=batch_size)
        bound = float(_probe(state.model, world, probe_key))
        count = (done + 1) * updates_per_call
        if bound > ceiling:
            raise DivergedError(
                f"Expected the bound to stay below the capacity of {ceiling:.3f} nats; got "
                f"{bound:.3f} at update {count}. The densities of source or planning are wrong."
            )
        history = [*at.history, (count, {"bound": bound, **optimise.to_floats(info)})]
        last = _schedule([seen["bound"] for _, seen in history], calls)[1]
        stopped = "the bound has settled" if last < calls else "the budget is spent"
        is_over = len(history) - 1 >= last
        return Snapshot(state, history, last * updates_per_call, stopped if is_over else "")

    untrained = {"bound": float(_probe(channel, world, probe_key))}
    fresh = Snapshot(init(channel, key=train_key), [(0, untrained)], num_updates)
    if not channel.is_trained:
        return replace(fresh, total=0, stopped="there is nothing to train")
    return optimise.train(advance, fresh, callback)


def _defaults(channel: AbstractChannel) -> tuple[int, float]:
    """Return the batch size and the learning rate that suit the family of a channel."""
    if not isinstance(channel, Codebook):
        return 256, 2e-3
    return (16 if len(channel.intents) >= MANY_CODES else 32), 3e-3


def _schedule(bounds: list[float], calls: int) -> tuple[int, int]:
    """Return the call at which the learning rate begins to decay, and the last call.

    It decays when the bound has settled, or when only the time to decay is left.
    """
    look_back = max(round(_LOOK_BACK * calls), 1)
    steady = round((1 - _ANNEAL) * calls)
    for done in range(2 * look_back, min(len(bounds), steady)):
        now = bounds[done + 1 - look_back : done + 1]
        before = bounds[done + 1 - 2 * look_back : done + 1 - look_back]
        if math.fsum(now) - math.fsum(before) < look_back * _SETTLED:
            return done, math.ceil(done / (1 - _ANNEAL))
    return steady, calls


def sample_states(
    world: AbstractWorld,
    visited: Float[Array, "visited state"] | None,
    size: int,
    *,
    key: Key,
) -> Float[Array, "batch state"]:
    """Sample states from the whole region of a world, every other one from those visited."""
    region_key, visited_key = jax.random.split(key)
    region = world.state_distribution()
    states = jax.vmap(lambda key: region.sample(key=key))(jax.random.split(region_key, size))
    if visited is None:
        return states
    choice = jax.random.choice(visited_key, visited, (size,))
    return jnp.where(jnp.arange(size)[:, None] % 2 == 0, states, choice)


@eqx.filter_jit
def _probe(channel: AbstractChannel, world: AbstractWorld, key: Key) -> Scalar:
    """Estimate the bound at fixed states from fixed draws."""
    state_key, draw_key = jax.random.split(key)
    states = sample_states(world, None, _NUM_PROBES, key=state_key)
    keys = jax.random.split(draw_key, (_NUM_PROBES, _PROBE_DRAWS))

    def of_state(state: State, keys: Array) -> Scalar:
        bound = jax.vmap(lambda key: information_bound(channel, world, state, key=key))
        return bound(keys).mean()

    return jax.vmap(of_state)(states, keys).mean()
