"""Mixtures of the futures of plans on a lattice of observations, and divergences from them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from empowerment.types import Plan, Scalar, State
from empowerment.worlds import Bounded, observation_density

_NUM_REWEIGHTS = 20
"""Iterations of Blahut and Arimoto in a round."""

_APART = 1.0
"""Least distance of futures from which the search climbs, in standard deviations."""

_NUM_ASCENTS = 8
_STRIDES = (0.0, 1.0, 0.3, 0.1)

_TAILS = 6.5
_MARGIN = 0.05
"""Space around all futures, in standard deviations of each, and as a fraction of their range."""


class Futures(NamedTuple):
    """Gaussian futures of plans."""

    mean: Float[Array, "plans axes"]
    scale: Float[Array, "plans axes"]


def futures_of(world: Bounded, state: State, plans: Float[Array, "plans steps action"]) -> Futures:
    """Return the densities of what is perceived after each of many admissible plans."""
    futures = jax.vmap(lambda plan: observation_density(world.world, state, plan))(plans)
    return Futures(futures.mean, futures.scale)


def limits(futures: Futures) -> tuple[Float[Array, " axes"], Float[Array, " axes"]]:
    """Return the corners of a lattice that has room for all futures."""
    low = (futures.mean - _TAILS * futures.scale).min(axis=0)
    high = (futures.mean + _TAILS * futures.scale).max(axis=0)
    return low - _MARGIN * (high - low), high + _MARGIN * (high - low)


def tabulate(lattice: list[Float[Array, " _"]], futures: Futures) -> list[Float[Array, "plans _"]]:
    """Tabulate the density of each future along each axis of the lattice."""
    tables = []
    for axis, points in enumerate(lattice):
        mean, scale = futures.mean[:, axis, None], futures.scale[:, axis, None]
        tables.append(jax.nn.softmax(-0.5 * ((points[None] - mean) / scale) ** 2, axis=1))
    return tables


def log_marginal(tables: list[Float[Array, "plans _"]], weights: Float[Array, " plans"]) -> Array:
    """Compute the logarithm of the mixture on the lattice."""
    weighted = tables[0] * weights[:, None]
    marginal = weighted.sum(axis=0) if len(tables) == 1 else weighted.T @ tables[1]
    return jnp.log(jnp.maximum(marginal, jnp.finfo(marginal.dtype).tiny))


def divergences(
    log_marginal: Array, tables: list[Float[Array, "plans _"]]
) -> Float[Array, " plans"]:
    """Compute the divergence of each future from the mixture."""
    entropy = sum(jax.scipy.special.entr(table).sum(axis=1) for table in tables)
    if len(tables) == 1:
        return -entropy - tables[0] @ log_marginal
    return -entropy - jnp.sum((tables[0] @ log_marginal) * tables[1], axis=1)


def reweight(
    tables: list[Float[Array, "plans _"]], log_weights: Float[Array, " plans"]
) -> Float[Array, " plans"]:
    """Iterate after Blahut and Arimoto, with momentum; keep the least largest divergence.

    Momentum is that of Hanzely, Richtarik and Xiao (2021); it starts anew whenever the
    information falls.
    """
    present = jnp.isfinite(log_weights)

    def step(_: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        main, log_ahead, momentum, previous, best, least = carry
        weights = (1 - momentum) * main + momentum * jnp.exp(log_ahead)
        divergence = divergences(log_marginal(tables, weights), tables)
        information, largest = weights @ divergence, jnp.max(divergence, where=present, initial=0)
        best = jnp.where(largest < least, weights, best)
        falls = information < previous
        ahead = jax.nn.log_softmax(log_ahead + (divergence - largest) / momentum)
        grown = (1 - momentum) * main + momentum * jnp.exp(ahead)
        return (
            jnp.where(falls, main, grown),
            jnp.where(falls, jnp.log(main), ahead),
            jnp.where(falls, 1.0, 2 / (2 / momentum + 1)),
            jnp.where(falls, -jnp.inf, information),
            best,
            jnp.minimum(largest, least),
        )

    main, infinite = jnp.exp(log_weights), jnp.array(jnp.inf)
    carry = main, log_weights, jnp.array(1.0), -infinite, main, infinite
    return jnp.log(jax.lax.fori_loop(0, _NUM_REWEIGHTS, step, carry)[4])


def peaks(
    divergences: Float[Array, " plans"], futures: Futures, count: int
) -> Int[Array, " peaks"]:
    """Choose plans of large divergence whose futures are apart from each other."""

    def choose(left: Float[Array, " plans"], _: None) -> tuple[Float[Array, " plans"], Array]:
        best = jnp.argmax(left)
        offsets = (futures.mean - futures.mean[best][None]) / futures.scale[best][None]
        near = jnp.linalg.norm(offsets, axis=1) < _APART
        return jnp.where(near, -jnp.inf, left), best

    return jax.lax.scan(choose, divergences, length=count)[1]


def climb(divergence: Callable[[Plan], Scalar], world: Bounded, plan: Plan) -> Plan:
    """Maximise the divergence from a plan by Frank-Wolfe ascent within the action bounds."""
    allowed = world.world.actions
    low, high = (jnp.broadcast_to(limit, plan.shape) for limit in (allowed.low, allowed.high))

    def step(_: Array, plan: Plan) -> Plan:
        slope = jax.grad(divergence)(plan)
        corner = jnp.where(slope > 0, high, jnp.where(slope < 0, low, plan))
        tries = jnp.stack([plan + stride * (corner - plan) for stride in _STRIDES])
        return tries[jnp.argmax(jax.vmap(divergence)(tries))]

    return jax.lax.fori_loop(0, _NUM_ASCENTS, step, plan)
