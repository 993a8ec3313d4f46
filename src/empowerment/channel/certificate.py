r"""An upper bound on the capacity itself, so that empowerment is between two numbers.

For any marginal $m(x'|z)$ whatever, $C \le \max_\mathrm{plan} \mathrm{KL}(p(x'|z, \mathrm{plan})
\,\|\, m(x'|z))$. The better $m$, the tighter: the best is the marginal of a source that
carries the capacity. Here $m$ is a mixture of the futures of plans: of those that the channel
draws at first, and then, round by round, of those plans at which the divergence is largest.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.channel.base import AbstractChannel
from empowerment.channel.bound import empowerment
from empowerment.distributions import gauss_hermite
from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import Bounded, observation_density, switching_plans

_NUM_CANDIDATES = 768
"""Candidate plans to be added to the mixture."""

_NUM_SEARCHED = 8192
"""Plans in the final search for the largest divergence."""

_NUM_ROUNDS = 5
_ADDED_PER_ROUND = 8
_NUM_REWEIGHTS = 8
_ADDED_WEIGHT = 0.1
"""The initial weight of the plans that are added in a round."""

_APART = 1.5
"""Least distance of futures that are added in the same round, in standard deviations."""

_NUM_ASCENTS = 8
_NUM_CLIMBERS = 16
_STRIDES = (0.0, 1.0, 0.3, 0.1)

_ROUGH_ORDER = {1: 12, 2: 4}
"""Quadrature nodes per axis, by number of axes, where plans are only compared."""

_FINE_ORDER = {1: 24, 2: 10}
"""Nodes for the reported divergence: with six the largest was up to 0.005 nats too low."""

_NUM_NOISE = 64
"""Noise samples where there are too many axes for quadrature."""

_NUM_ERRORS = 3.0
"""Standard errors that are subtracted from the estimate of the lower bound."""


class Interval(eqx.Module):
    """Lower and upper bound on empowerment, in nats.

    Attributes:
        lower: The bound of the channel, less three standard errors.
        upper: The largest divergence of any plan that was found.
    """

    lower: Scalar
    upper: Scalar


class _Mixture(eqx.Module):
    """A marginal: a mixture of Gaussians, in units of the noise."""

    means: Float[Array, "components axes"]
    log_weights: Float[Array, " components"]


def certify(
    channel: AbstractChannel,
    world: Bounded,
    state: State,
    *,
    num_samples: int = 256,
    num_draws: int = 128,
    key: Key,
) -> Interval:
    r"""Compute lower and upper bounds on the empowerment of a state.

    For worlds with a known density of the perceived successor (`has_closed_form_density`) and
    noise that is the same for every plan. The maximum over plans is taken over eight thousand
    plans that switch between the action bounds, followed by gradient ascent from the best. It
    is not proven to be global: the upper bound can be too low by what the search misses.

    Args:
        channel: A trained channel.
        world: The world, with actions before the squash.
        state: The state $z$.
        num_samples: The number of samples for the lower bound.
        num_draws: The number of plans in the initial mixture; a codebook uses all of its own.
        key: Consumed.
    """
    lower_key, draw_key, plan_key, noise_key = jax.random.split(key, 4)
    estimate = empowerment(channel, world, state, num_samples=num_samples, key=lower_key)
    lower = estimate.value - _NUM_ERRORS * estimate.standard_error

    still = observation_density(world, state, jnp.zeros((channel.steps, world.actions.size)))

    def future(plan: Plan) -> Float[Array, " axes"]:
        return (observation_density(world.world, state, plan).mean - still.mean) / still.scale

    size = still.mean.size
    roughly = partial(_divergence, _noise(size, _ROUGH_ORDER, key=noise_key))
    divergence = partial(_divergence, _noise(size, _FINE_ORDER, key=noise_key))
    drawn, log_weights = channel.draw_many(state, num_draws, key=draw_key)
    drawn = jax.vmap(jax.vmap(world.squash))(drawn)
    plans = switching_plans(world.world.actions, channel.steps, _NUM_SEARCHED, key=plan_key)
    futures = jax.vmap(future)(plans)
    mixture = _grow(jax.vmap(future)(drawn), log_weights, futures[:_NUM_CANDIDATES], roughly)

    divergences = jax.lax.map(partial(roughly, mixture), futures, batch_size=256)
    start = plans[jax.lax.top_k(divergences, _NUM_CLIMBERS)[1]]
    climb = partial(_climb, lambda plan: divergence(mixture, future(plan)), world)
    upper = jnp.max(jax.vmap(climb)(start))
    within = jnp.max(jax.vmap(partial(divergence, mixture))(mixture.means))
    return Interval(lower, jnp.maximum(jnp.maximum(upper, within), lower))


def _grow(
    drawn: Float[Array, "draws axes"],
    log_weights: Float[Array, " draws"],
    candidates: Float[Array, "candidates axes"],
    divergence,
) -> _Mixture:
    """Build a marginal: alternately reweight it and add the futures of largest divergence."""
    room = jnp.zeros((_NUM_ROUNDS * _ADDED_PER_ROUND, drawn.shape[1]))
    absent = jnp.full(room.shape[0], -jnp.inf)
    mixture = _Mixture(jnp.concatenate([drawn, room]), jnp.concatenate([log_weights, absent]))

    def reweight(_, mixture: _Mixture) -> _Mixture:
        gain = jax.vmap(partial(divergence, mixture))(mixture.means)
        return _Mixture(mixture.means, jax.nn.log_softmax(mixture.log_weights + gain))

    def add(round_: Array, mixture: _Mixture) -> _Mixture:
        gain = jax.vmap(partial(divergence, mixture))(candidates)
        means, log_weights = mixture.means, mixture.log_weights + math.log1p(-_ADDED_WEIGHT)
        for place in range(_ADDED_PER_ROUND):
            best = candidates[jnp.argmax(gain)]
            slot = drawn.shape[0] + round_ * _ADDED_PER_ROUND + place
            means = means.at[slot].set(best)
            log_weights = log_weights.at[slot].set(math.log(_ADDED_WEIGHT / _ADDED_PER_ROUND))
            near = jnp.linalg.norm(candidates - best[None], axis=1) < _APART
            gain = jnp.where(near, -jnp.inf, gain)
        grown = _Mixture(means, log_weights)
        return jax.lax.fori_loop(0, _NUM_REWEIGHTS, reweight, grown)

    mixture = jax.lax.fori_loop(0, _NUM_REWEIGHTS, reweight, mixture)
    return jax.lax.fori_loop(0, _NUM_ROUNDS, add, mixture)


def _divergence(
    noise: tuple[Float[Array, "nodes axes"], Float[Array, " nodes"]],
    mixture: _Mixture,
    point: Float[Array, " axes"],
) -> Scalar:
    """Compute the divergence of unit noise around a point from the mixture."""
    nodes, weights = noise
    values = point[None] + nodes
    of_means = mixture.log_weights - 0.5 * jnp.sum(mixture.means**2, axis=1)
    log_mixture = jax.nn.logsumexp(values @ mixture.means.T + of_means[None], axis=1)
    log_mixture = log_mixture - 0.5 * jnp.sum(values**2, axis=1)
    # The constants of the two densities cancel, up to the entropy of the noise.
    return -0.5 * point.size - weights @ log_mixture


def _climb(divergence, world: Bounded, plan: Plan) -> Scalar:
    """Maximise the divergence from a plan by Frank-Wolfe ascent within the action bounds."""
    limits = world.world.actions
    low, high = (jnp.broadcast_to(limit, plan.shape) for limit in (limits.low, limits.high))

    def step(_, plan: Plan) -> Plan:
        slope = jax.grad(divergence)(plan)
        corner = jnp.where(slope > 0, high, jnp.where(slope < 0, low, plan))
        tries = jnp.stack([plan + stride * (corner - plan) for stride in _STRIDES])
        return tries[jnp.argmax(jax.vmap(divergence)(tries))]

    return divergence(jax.lax.fori_loop(0, _NUM_ASCENTS, step, plan))


def _noise(
    size: int, orders: dict[int, int], *, key: Key
) -> tuple[Float[Array, "nodes axes"], Float[Array, " nodes"]]:
    """Return nodes and weights for standard normal noise: quadrature, or antithetic samples."""
    if size not in orders:
        nodes = jax.random.normal(key, (_NUM_NOISE // 2, size))
        nodes = jnp.concatenate([nodes, -nodes])
        return nodes, jnp.full(_NUM_NOISE, 1 / _NUM_NOISE)
    return gauss_hermite(orders[size], size)
