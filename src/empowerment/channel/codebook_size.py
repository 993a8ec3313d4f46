"""How many plans a codebook needs, and in how many axes they lie."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.channel.base import Inputs
from empowerment.types import Key, Observation, Scalar
from empowerment.worlds import Bounded, mean_observation, observation_density, perceive

_CODES_PER_SUCCESSOR = 3.5
"""Codes for each successor that can be told apart."""

_CODES_PER_FUTURE = 8.0
"""The same, by the Gaussian of random futures: those of a good source spread farther."""

_FEWEST_CODES, _MOST_CODES = 32, 1024

_MOST_READ = 256
"""The same in a learnt world, where every code is unrolled through networks."""

_NUM_LOCAL = 64
"""States at which futures are looked at."""

_SEEN = 0.04
"""The variance of futures along an axis, in units of the noise, from which it counts."""

_NUM_PLANS = 256
"""Random plans from each of them."""

_NUM_READ = 4096
"""States from each of which one future is drawn, to begin reading with."""

_RIDGE = 1e-2
"""Added to correlations of noise: what two axes have in common is never all."""


def count_read_codes(world: Bounded, steps: int) -> tuple[int, int]:
    """Choose axes and number of codes by what can be told apart of the futures of one state.

    Args:
        world: A world whose actions live before the squash.
        steps: The number of actions in a plan.

    Returns:
        The number of axes in which codes lie, and the number of codes.
    """
    axes, information = _local(world, steps)
    intent_size = min(max(round(float(axes)), 1), steps * world.actions.size)
    wanted = _CODES_PER_FUTURE * math.exp(min(float(information), math.log(_MOST_READ)))
    return intent_size, _rounded(min(max(wanted, _FEWEST_CODES), _MOST_READ), intent_size)


@eqx.filter_jit
def _local(world: Bounded, steps: int) -> tuple[Scalar, Scalar]:
    """Give in how many axes futures of one state can be told apart, and about how well.

    The median over states of how many axes of its futures are above the noise, and of what a
    Gaussian of their spread would tell.
    """
    state_key, plan_key = jax.random.split(jax.random.key(0))

    def of_state(key: Key) -> tuple[Scalar, Scalar]:
        state = world.state_distribution().sample(key=key)
        plans = 2 * jax.random.normal(plan_key, (_NUM_PLANS, steps, world.actions.size))
        futures = jax.vmap(lambda plan: mean_observation(world, state, plan))(plans)
        noise = observation_density(world, state, jnp.zeros_like(plans[0])).scale
        seen = (futures - futures.mean(0)[None]) / noise[None]
        ratios = jnp.linalg.svd(seen, compute_uv=False) ** 2 / _NUM_PLANS
        return jnp.sum(ratios > _SEEN, dtype=float), 0.5 * jnp.sum(jnp.log1p(ratios))

    axes, information = jax.vmap(of_state)(jax.random.split(state_key, _NUM_LOCAL))
    return jnp.median(axes), jnp.median(information)


@eqx.filter_jit
def first_reader(world: Bounded, steps: int) -> Float[Array, "observation observation"]:
    r"""Give the precision $W^\top W$, by $W$, with which a code is read before anything is learnt.

    It is that of what futures are off by on average over states. A reader that expects less noise
    than there is gives a bound far below zero, and the first that it would learn is not to read.

    Args:
        world: A world whose actions live before the squash.
        steps: The number of actions in a plan.
    """
    state_key, plan_key, noise_key = jax.random.split(jax.random.key(1), 3)

    def of_state(state_key: Key, plan_key: Key, noise_key: Key) -> Observation:
        state = world.state_distribution().sample(key=state_key)
        plan = jax.random.normal(plan_key, (steps, world.actions.size))
        return perceive(world, state, plan, key=noise_key) - mean_observation(world, state, plan)

    keys = (jax.random.split(key, _NUM_READ) for key in (state_key, plan_key, noise_key))
    off = jax.vmap(of_state)(*keys)
    spread = jnp.sqrt(jnp.mean(off**2, axis=0))
    white = off / spread[None]
    correlation = white.T @ white / _NUM_READ + _RIDGE * jnp.eye(spread.size)
    return jnp.linalg.inv(jnp.linalg.cholesky(correlation)) / spread[None]


def _rounded(wanted: float | int, intent_size: int) -> int:
    """Give a number of codes that fills a lattice, where it has one or two axes."""
    if intent_size > 2:
        return round(wanted)
    return math.ceil(wanted ** (1 / intent_size)) ** intent_size


def count_codes(world: Bounded, inputs: Inputs, steps: int) -> int:
    """Choose how many codes are enough, by how many successors can be told apart.

    If successors and noise were Gaussian, the information would be half the logarithm of
    the ratio of their determinants. Random actions cancel; a plan that spends all of its
    actions on one axis of intents goes further, by the square root of their number.
    """
    plan_size = steps * world.actions.size
    intent_size = min(inputs.whitener.shape[0], plan_size)
    together = 0.5 * intent_size * math.log(plan_size / intent_size)
    information = float(_information_if_gaussian(world, inputs, steps)) + together
    wanted = _CODES_PER_SUCCESSOR * math.exp(min(information, math.log(_MOST_CODES)))
    wanted = min(max(wanted, _FEWEST_CODES), _MOST_CODES)
    return _rounded(wanted, intent_size)


@eqx.filter_jit
def _information_if_gaussian(world: Bounded, inputs: Inputs, steps: int) -> Scalar:
    still = jnp.zeros((steps, world.actions.size))
    noise = observation_density(world, world.states.centre, still).scale
    return -jnp.linalg.slogdet(inputs.whitener)[1] - jnp.sum(jnp.log(noise))
