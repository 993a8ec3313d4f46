r"""An upper bound on the capacity itself, so that empowerment is between two numbers.

For any marginal $m(x'|z)$ whatever, $C \le \max_\mathrm{plan} \mathrm{KL}(p(x'|z, \mathrm{plan})
\,\|\, m(x'|z))$. The better $m$, the tighter: the best is the marginal of a source that
carries the capacity. Here $m$ is a mixture of the futures of plans: of those that the channel
draws, of random ones, and of those at which the divergence was found to be largest, weighted by
the iteration of Blahut and Arimoto. Densities are tabulated on a lattice of observations.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.channel.base import AbstractChannel
from empowerment.channel.marginal import (
    Futures,
    climb,
    divergences,
    futures_of,
    limits,
    log_marginal,
    peaks,
    reweight,
    tabulate,
)
from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import Bounded, has_closed_form_density, switching_plans

CONFIDENCE = 0.99
"""Stated confidence of an interval: the coverage that is measured over worlds and keys."""

_NUM_DRAWS = 128
"""Plans that are drawn from a source; a codebook contributes all of its own."""

_NUM_SEARCHED = 2048
"""Plans in each of several independent searches for the largest divergence."""

_NUM_ROUNDS, _NUM_CLIMBERS = 8, 32
"""Rounds in which the mixture grows, and plans that are added in each."""

_NUM_POOLS = _NUM_ROUNDS + 2
"""One for each round in which the mixture grows, and two that judge it."""

_NUM_CANDIDATES = 256
"""Plans of the first search that belong to the mixture from the beginning."""

_ADDED_WEIGHT = 0.2
"""Initial weight of all plans that are added at once."""

_SPACING = {1: 0.5, 2: 0.9}
"""Standard deviations between two points of the lattice, by the number of axes."""

_TABULATED = 3e-4
"""Largest error of a divergence by the lattice, in nats; measured at a spacing of one."""

_LARGEST_LATTICE = 2**17

_NUM_ERRORS = 3.0
"""Standard errors that are subtracted from the estimate of the lower bound."""


_Search = tuple[list[Array], Array, Array]
"""Tables and log-weights of the mixture, and the largest divergence of each round."""


class Interval(eqx.Module):
    """Lower and upper bound on empowerment, in nats.

    Attributes:
        lower: The bound of the channel, less three standard errors.
        upper: The largest divergence of any plan that two independent searches found, plus
            what they differ by: no proof, but a bound with a `CONFIDENCE` of 99 %. NaN where the
            search ended below `lower`, and so proved nothing.
    """

    lower: Scalar
    upper: Scalar


def certify(
    channel: AbstractChannel, world: Bounded, state: State, *, num_samples: int = 256, key: Key
) -> Interval:
    r"""Compute lower and upper bounds on the empowerment of a state.

    For worlds with at most two perceived axes and a density of the perceived successor that is
    known in closed form (`has_closed_form_density`); its noise may depend on state and plan.

    Args:
        channel: A trained channel.
        world: The world, with actions before the squash.
        state: The state $z$.
        num_samples: The number of samples for the lower bound.
        key: Consumed.

    Raises:
        ValueError: If the world has more perceived axes, or an unknown density.
    """
    keys = jax.random.split(key, 1)
    intervals = certify_at(channel, world, state[None], keys, num_samples=num_samples)
    return jax.tree.map(lambda part: part[0], intervals)


def certify_at(
    channel: AbstractChannel,
    world: Bounded,
    states: Float[Array, "states state"],
    keys: Array,
    *,
    num_samples: int = 256,
    shape: tuple[int, ...] | None = None,
) -> Interval:
    """Compute the intervals of many states, as from `certify`.

    Args:
        channel: A trained channel.
        world: The world, with actions before the squash.
        states: The states.
        keys: One for each state; consumed.
        num_samples: The number of samples for the lower bound.
        shape: The size of the lattice, as from `lattice_shape` of these states or more.
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((world, states))):
        raise ValueError("Expected certify to be called outside of jit: it compiles itself.")
    shape = shape or lattice_shape(channel, world, states, keys)
    return _certify(channel, world, states, keys, num_samples, shape)


def refusal(channel: AbstractChannel, world: Bounded, *, key: Key) -> str | None:
    """Return the reason why a world cannot be certified, or None if it can."""
    if not channel.is_bound:
        return (
            "Expected a lower bound on the capacity to certify an interval; got the linearised "
            "channel, an approximation. Take another family."
        )
    if world.actions.choices:
        return (
            "Expected continuous actions to certify an interval; they are discrete. Use the lower "
            "bound alone, or the exact estimator."
        )
    size = channel.inputs.whitener.shape[0]
    if size not in _SPACING:
        return (
            f"Expected at most two perceived axes to certify an interval; got {size}. Use the "
            "lower bound alone."
        )
    if not has_closed_form_density(world, steps=channel.steps, key=key):
        return (
            "Expected the density of what is perceived to be known in closed form to certify an "
            "interval: no process noise, or a single step whose noise is perceived through an "
            "affine emission; got another world. Use the lower bound alone."
        )
    return None


def lattice_shape(
    channel: AbstractChannel, world: Bounded, states: Float[Array, "states state"], keys: Array
) -> tuple[int, ...]:
    """Choose the size of the lattice of observations, large enough for all of the states.

    Raises:
        ValueError: If the world cannot be certified.
    """
    reason = refusal(channel, world, key=keys[0])
    if reason is not None:
        raise ValueError(reason)
    counts = np.asarray(_count_points(channel, world, states, keys), float).max(axis=0)
    if not np.prod(counts) <= _LARGEST_LATTICE:
        raise ValueError(
            f"Expected futures to be distributed over at most {_LARGEST_LATTICE} cells of the "
            f"size of their least noise to certify an interval; got "
            f"{' by '.join(f'{count:.0f}' for count in counts)}. Take a coarser resolution."
        )
    return tuple(int(32 * np.ceil(count / 32)) for count in counts)


@eqx.filter_jit
def _count_points(
    channel: AbstractChannel, world: Bounded, states: Float[Array, "states state"], keys: Array
) -> Float[Array, "states axes"]:
    def of_state(inputs: tuple[State, Key]) -> Float[Array, " axes"]:
        state, key = inputs
        plans = _plans(channel, world, state, jax.random.split(key)[1])[0]
        futures = futures_of(world, state, plans)
        low, high = limits(futures)
        return (high - low) / (_SPACING[low.size] * futures.scale.min(axis=0)) + 1

    return jax.lax.map(of_state, (states, keys))


@eqx.filter_jit
def _certify(
    channel: AbstractChannel,
    world: Bounded,
    states: Float[Array, "states state"],
    keys: Array,
    num_samples: int,
    shape: tuple[int, ...],
) -> Interval:
    def of_state(inputs: tuple[State, Key]) -> Interval:
        state, key = inputs
        lower_key, search_key = jax.random.split(key)
        estimate = channel.estimate(world, state, num_samples=num_samples, key=lower_key)
        lower = estimate.value - _NUM_ERRORS * estimate.standard_error
        upper = _upper(channel, world, state, search_key, shape)
        return Interval(lower, jnp.where(upper >= lower, upper, jnp.nan))

    return jax.lax.map(of_state, (states, keys))


def _plans(
    channel: AbstractChannel, world: Bounded, state: State, key: Key
) -> tuple[Float[Array, "plans steps action"], Float[Array, " draws"]]:
    """Return the plans of the channel, then those of all searches; log-weights of the former."""
    draw_key, plan_key = jax.random.split(key)
    drawn, log_weights = channel.draw_many(state, _NUM_DRAWS, key=draw_key)
    allowed = world.world.actions
    searched = switching_plans(allowed, channel.steps, _NUM_POOLS * _NUM_SEARCHED, key=plan_key)
    return jnp.concatenate([jax.vmap(jax.vmap(world.squash))(drawn), searched]), log_weights


def _upper(
    channel: AbstractChannel, world: Bounded, state: State, key: Key, shape: tuple[int, ...]
) -> Scalar:
    """Bound the capacity of a state from above."""
    plans, log_weights = _plans(channel, world, state, key)
    futures = futures_of(world, state, plans)
    low, high = limits(futures)
    lattice = [jnp.linspace(low[axis], high[axis], count) for axis, count in enumerate(shape)]
    tables = tabulate(lattice, futures)
    num_drawn, num_found = log_weights.size, _NUM_ROUNDS * _NUM_CLIMBERS
    searched = jax.tree.map(
        lambda part: part[num_drawn:].reshape(_NUM_POOLS, _NUM_SEARCHED, *part.shape[1:]),
        (plans, futures, tables),
    )

    def search(
        marginal: Array, plans: Array, futures: Futures, tables: list[Array]
    ) -> tuple[Float[Array, "climbers steps action"], Scalar]:
        """Climb from the plans of largest divergence."""

        def divergence(plan: Plan) -> Scalar:
            future = futures_of(world, state, plan[None])
            return divergences(marginal, tabulate(lattice, future))[0]

        start = peaks(divergences(marginal, tables), futures, _NUM_CLIMBERS)
        climbed = jax.vmap(partial(climb, divergence, world))(plans[start])
        return climbed, jax.vmap(divergence)(climbed).max()

    # The mixture: plans of the channel, candidates, and room for what the search finds.
    num_mixed = num_drawn + _NUM_CANDIDATES
    mixed = [jnp.pad(table[:num_mixed], ((0, num_found), (0, 0))) for table in tables]
    log_weights = jnp.concatenate(
        [
            math.log1p(-_ADDED_WEIGHT) + log_weights,
            jnp.full(_NUM_CANDIDATES, math.log(_ADDED_WEIGHT / _NUM_CANDIDATES)),
            jnp.full(num_found, -jnp.inf),
        ]
    )

    def add(
        round_: Array, climbed: Array, mixed: list[Array], log_weights: Array
    ) -> tuple[list[Array], Array]:
        """Add the plans that a search found to the mixture."""
        found = tabulate(lattice, futures_of(world, state, climbed))
        place = num_mixed + round_ * _NUM_CLIMBERS
        put = partial(jax.lax.dynamic_update_slice_in_dim, start_index=place, axis=0)
        share = jnp.full(_NUM_CLIMBERS, math.log(_ADDED_WEIGHT / _NUM_CLIMBERS))
        mixed = [put(table, rows) for table, rows in zip(mixed, found, strict=True)]
        return mixed, put(math.log1p(-_ADDED_WEIGHT) + log_weights, share)

    # One loop for the rounds that grow the mixture and the two that judge it, which is left as
    # the last of the former made it: the search is the larger part of what is compiled.
    def advance(round_: Array, carry: _Search) -> _Search:
        mixed, log_weights, largest = carry
        grown = round_ <= _NUM_ROUNDS
        log_weights = jax.lax.cond(grown, reweight, lambda _, kept: kept, mixed, log_weights)
        marginal = log_marginal(mixed, jnp.exp(log_weights))
        climbed, divergence = search(marginal, *jax.tree.map(lambda part: part[round_], searched))
        mixed, log_weights = jax.lax.cond(
            round_ < _NUM_ROUNDS,
            add,
            lambda _, __, *kept: kept,
            round_,
            climbed,
            mixed,
            log_weights,
        )
        return mixed, log_weights, largest.at[round_].set(divergence)

    start = mixed, log_weights, jnp.zeros(_NUM_POOLS)
    mixed, log_weights, largest = jax.lax.fori_loop(0, _NUM_POOLS, advance, start)
    marginal = log_marginal(mixed, jnp.exp(log_weights))
    within = jnp.where(jnp.isfinite(log_weights), divergences(marginal, mixed), -jnp.inf).max()
    one, other = largest[_NUM_ROUNDS:]
    return jnp.maximum(jnp.maximum(one, other), within) + jnp.abs(one - other) + _TABULATED
