"""Where imagined rollouts start: hold what is best first, then reach it from ever farther."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Empirical
from empowerment.policy.base import Bound, Policy
from empowerment.policy.objective import imagine
from empowerment.policy.task import Task
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld

OWN = 4
"""One rollout in this many is an episode from the initial distribution."""

_RESETS = 0.05, 0.25
"""Probability that an episode, or any other rollout, starts anew instead of where it ended."""

_NUM_CANDIDATES = 2048
"""States that are ranked: half of the whole region, half near the best of the last ranking."""

_JITTER = 0.1, 2.0
"""Largest offset from a ranked state as a share of the region, and the decades below it."""


def first_starts(world: AbstractWorld, count: int, *, key: Key) -> Float[Array, "starts state"]:
    """Sample the starts of the first rollouts: a quarter are initial states."""
    initial_key, region_key = jax.random.split(key)
    initial = _sample(world.initial(), count, key=initial_key)
    everywhere = _sample(world.state_distribution(), count, key=region_key)
    return jnp.where(_is_own(count)[:, None], initial, everywhere)


def next_starts(
    world: AbstractWorld,
    ends: Float[Array, "starts state"],
    best: Float[Array, "candidates state"],
    share: Scalar,
    *,
    key: Key,
) -> Float[Array, "starts state"]:
    """Return where the next rollouts start: where the last ones ended, or anew.

    A quarter are episodes from the initial distribution. The others start anew at ranked states or
    anywhere. What has left the region starts anew, too: nothing is known there.

    Args:
        world: The world.
        ends: Where the last rollouts ended.
        best: Ranked states, the best first.
        share: Probability that a start is a ranked state rather than from anywhere.
        key: Consumed.
    """
    count = len(ends)
    reset_key, initial_key, region_key, rank_key, which_key = jax.random.split(key, 5)
    initial = _sample(world.initial(), count, key=initial_key)
    everywhere = _sample(world.state_distribution(), count, key=region_key)
    ranked = _near_best(world, best, count, key=rank_key)
    is_ranked = jax.random.uniform(which_key, (count,)) < share
    anew = jnp.where(is_ranked[:, None], ranked, everywhere)
    anew = jnp.where(_is_own(count)[:, None], initial, anew)
    probability = jnp.where(_is_own(count), *_RESETS)
    restarts = jax.random.uniform(reset_key, (count,)) < probability
    stays = jax.vmap(lambda state: _is_within(world, state))(ends)
    return jnp.where((restarts | ~stays)[:, None], anew, ends)


@eqx.filter_jit
def candidates(world: AbstractWorld, *, key: Key) -> Float[Array, "candidates state"]:
    """Sample states to rank from the whole region."""
    return _sample(world.state_distribution(), _NUM_CANDIDATES, key=key)


@eqx.filter_jit
def rank(
    policy: Policy,
    bound: Bound,
    world: AbstractWorld,
    best: Float[Array, "candidates state"],
    *,
    horizon: int,
    task: Task | None = None,
    key: Key,
) -> Float[Array, "candidates state"]:
    """Rank states by the mean gain along rollouts of a policy: what it can hold comes first.

    Args:
        policy: The policy.
        bound: A channel, or a surrogate of one.
        world: A world whose actions live before the squash.
        best: The states of the last ranking, the best first.
        horizon: Number of actions in a rollout.
        task: What counts beside empowerment.
        key: Consumed.

    Returns:
        The states, the best first.
    """
    state_key, near_key, imagine_key = jax.random.split(key, 3)
    states = candidates(world, key=state_key)
    if not isinstance(world.state_distribution(), Empirical):
        near = _near_best(world, best, _NUM_CANDIDATES // 2, key=near_key)
        states = jnp.concatenate([states[: len(states) // 2], near])
    outcomes = imagine(policy, bound, world, states, horizon=horizon, task=task, key=imagine_key)
    return states[jnp.argsort(-outcomes.worth.mean(axis=1))]


def _near_best(
    world: AbstractWorld, best: Float[Array, "candidates state"], count: int, *, key: Key
) -> Float[Array, "starts state"]:
    """Sample ranked states, uniformly by the logarithm of their rank, and places near them.

    States of a log are taken as they are: whether others beside them exist is not known.
    """
    rank_key, scale_key, offset_key = jax.random.split(key, 3)
    ranks = jnp.exp(jax.random.uniform(rank_key, (count,)) * jnp.log(float(len(best)))) - 1
    chosen = best[jnp.clip(ranks.astype(int), 0, len(best) - 1)]
    if isinstance(world.state_distribution(), Empirical):
        return chosen
    most, decades = _JITTER
    scales = most * 10 ** (-decades * jax.random.uniform(scale_key, (count, 1)))
    half_width = 0.5 * (world.states.high - world.states.low)
    noise = jax.random.normal(offset_key, chosen.shape)
    return chosen + scales * noise * half_width[None]


def _is_own(count: int) -> Array:
    """Return which of the rollouts are episodes from the initial distribution."""
    return jnp.arange(count) % OWN == 0


def _is_within(world: AbstractWorld, state: State) -> Array:
    """Check that a state is finite and within the region; angles may turn."""
    turns = jnp.array([name in world.states.angles for name in world.states.names])
    within = (world.states.low <= state) & (state <= world.states.high)
    return jnp.all(jnp.isfinite(state) & (within | turns))


def _sample(distribution, count: int, *, key: Key) -> Float[Array, "samples state"]:
    return jax.vmap(lambda key: distribution.sample(key=key))(jax.random.split(key, count))
