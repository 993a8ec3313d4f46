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
"""Plans among which those to add to the mixture are sought."""

_NUM_JUDGED = 8192
"""Plans among which the largest divergence is sought in the end."""

_NUM_ROUNDS = 5
_ADDED_PER_ROUND = 8
_NUM_REWEIGHTS = 8
_ADDED_WEIGHT = 0.1
"""The share of the mixture that a round's new plans begin with."""

_APART = 1.5
"""Standard deviations between two plans that are added in the same round."""

_NUM_ASCENTS = 8
_NUM_CLIMBERS = 16
_STRIDES = (0.0, 1.0, 0.3, 0.1)

_ROUGH_ORDER = {1: 12, 2: 4}
"""Nodes of noise on each axis where plans are only compared with each other."""

_FINE_ORDER = {1: 24, 2: 10}
"""Nodes where a divergence counts: with six the largest was up to 0.005 nats too low."""

_NUM_NOISE = 64
"""Draws of noise where there are too many axes for a sum over nodes."""

_SURE = 3.0
"""Standard errors by which the lower bound stays below its estimate."""


class Interval(eqx.Module):
    """Two numbers that empowerment is between, in nats.

    Attributes:
        lower: The bound of the channel, less three standard errors.
        upper: The largest divergence of any plan that was found.
    """

    lower: Scalar
    upper: Scalar


class _Mixture(eqx.Module):
    """A marginal: Gaussians in units of the noise, with weights."""

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
    r"""Bound the empowerment of a state from below and from above.

    For worlds whose density of the perceived successor is known (`has_closed_form_density`), with
    noise that is the same for every plan. The maximum over plans is over eight thousand
    plans that switch between the limits of the actions, followed by ascent from the best; it is
    not proven to be global, and an upper bound can only be too low by what the search
    misses. The more plans, the surer.

    Args:
        channel: A trained channel.
        world: The world, with actions before the squash.
        state: The state $z$.
        num_samples: Draws for the lower bound.
        num_draws: Plans that the mixture begins with; a codebook has its own.
        key: Consumed.

    Returns:
        The interval.
    """
    lower_key, draw_key, plan_key, noise_key = jax.random.split(key, 4)
    estimate = empowerment(channel, world, state, num_samples=num_samples, key=lower_key)
    lower = estimate.value - _SURE * estimate.standard_error

    still = observation_density(world, state, jnp.zeros((channel.steps, world.actions.size)))

    def seen(plan: Plan) -> Float[Array, " axes"]:
        return (observation_density(world.world, state, plan).mean - still.mean) / still.scale

    size = still.mean.size
    roughly = partial(_divergence, _noise(size, _ROUGH_ORDER, key=noise_key))
    divergence = partial(_divergence, _noise(size, _FINE_ORDER, key=noise_key))
    drawn, log_weights = channel.draw_many(state, num_draws, key=draw_key)
    drawn = jax.vmap(jax.vmap(world.squash))(drawn)
    plans = switching_plans(world.world.actions, channel.steps, _NUM_JUDGED, key=plan_key)
    futures = jax.vmap(seen)(plans)
    mixture = _grow(jax.vmap(seen)(drawn), log_weights, futures[:_NUM_CANDIDATES], roughly)

    found = jax.lax.map(partial(roughly, mixture), futures, batch_size=256)
    start = plans[jax.lax.top_k(found, _NUM_CLIMBERS)[1]]
    climb = partial(_climb, lambda plan: divergence(mixture, seen(plan)), world)
    upper = jnp.max(jax.vmap(climb)(start))
    within = jnp.max(jax.vmap(partial(divergence, mixture))(mixture.means))
    return Interval(lower, jnp.maximum(jnp.maximum(upper, within), lower))


def _grow(
    drawn: Float[Array, "draws axes"],
    log_weights: Float[Array, " draws"],
    candidates: Float[Array, "candidates axes"],
    divergence,
) -> _Mixture:
    """Build a marginal: reweight, add what it is farthest from, and again."""
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
    """Give the divergence of the noise around a point from the mixture, in units of noise."""
    nodes, shares = noise
    values = point[None] + nodes
    of_means = mixture.log_weights - 0.5 * jnp.sum(mixture.means**2, axis=1)
    log_mixture = jax.nn.logsumexp(values @ mixture.means.T + of_means[None], axis=1)
    log_mixture = log_mixture - 0.5 * jnp.sum(values**2, axis=1)
    # The constants of the two densities cancel; the entropy of the noise is what is left.
    return -0.5 * point.size - shares @ log_mixture


def _climb(divergence, world: Bounded, plan: Plan) -> Scalar:
    """Ascend the divergence from a plan, between the limits of the actions."""
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
    """Give nodes and shares that stand for standard normal noise."""
    if size not in orders:
        nodes = jax.random.normal(key, (_NUM_NOISE // 2, size))
        nodes = jnp.concatenate([nodes, -nodes])
        return nodes, jnp.full(_NUM_NOISE, 1 / _NUM_NOISE)
    return gauss_hermite(orders[size], size)
