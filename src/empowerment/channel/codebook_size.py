"""The number of codes of a codebook, the dimension of its intents, and its initial precision."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.channel.base import Inputs
from empowerment.types import Key, Observation, Scalar
from empowerment.worlds import Bounded, mean_observation, observation_density, perceive

_CODES_PER_SUCCESSOR = 3.5
"""Codes per distinguishable successor."""

_CODES_PER_FUTURE = 8.0
"""The same, counted by the spread of random plans: that of a good source is larger."""

_FEWEST_CODES, _MOST_CODES = 32, 1024

_MOST_READ_CODES = 256
"""Maximum with a learnt precision, where every code is unrolled through networks."""

_NUM_STATES = 64
"""States at which the spread of futures is estimated."""

_NUM_PLANS = 256
"""Random plans from each of these states."""

_LEAST_VARIANCE = 0.04
"""Variance of futures, in units of the noise, from which a principal axis counts."""

_NUM_FUTURES = 4096
"""States from each of which one future is sampled to initialise the precision."""

_RIDGE = 1e-2
"""Regularisation of the correlation matrix of the noise."""


def count_read_codes(world: Bounded, steps: int) -> tuple[int, int]:
    """Choose dimension and number of codes where the density of successors is unknown.

    Args:
        world: A world whose actions live before the squash.
        steps: The number of actions in a plan.

    Returns:
        The dimension of the intents, and the number of codes.
    """
    axes, information = _futures_of_random_plans(world, steps)
    intent_size = min(max(round(float(axes)), 1), steps * world.actions.size)
    wanted = _CODES_PER_FUTURE * math.exp(min(float(information), math.log(_MOST_READ_CODES)))
    return intent_size, _rounded(min(max(wanted, _FEWEST_CODES), _MOST_READ_CODES), intent_size)


@eqx.filter_jit
def _futures_of_random_plans(world: Bounded, steps: int) -> tuple[Scalar, Scalar]:
    """Estimate the dimension and the information of the futures of random plans.

    The medians over states of the number of principal axes above the noise, and of the
    information that Gaussian futures of the same covariance would carry.
    """
    state_key, plan_key = jax.random.split(jax.random.key(0))

    def of_state(key: Key) -> tuple[Scalar, Scalar]:
        state = world.state_distribution().sample(key=key)
        plans = 2 * jax.random.normal(plan_key, (_NUM_PLANS, steps, world.actions.size))
        futures = jax.vmap(lambda plan: mean_observation(world, state, plan))(plans)
        noise = observation_density(world, state, jnp.zeros_like(plans[0])).scale
        offsets = (futures - futures.mean(0)[None]) / noise[None]
        ratios = jnp.linalg.svd(offsets, compute_uv=False) ** 2 / _NUM_PLANS
        return jnp.sum(ratios > _LEAST_VARIANCE, dtype=float), 0.5 * jnp.sum(jnp.log1p(ratios))

    axes, information = jax.vmap(of_state)(jax.random.split(state_key, _NUM_STATES))
    return jnp.median(axes), jnp.median(information)


@eqx.filter_jit
def first_reader(world: Bounded, steps: int) -> Float[Array, "observation observation"]:
    r"""Compute the initial $W$ of the precision $W^\top W$ with which codes are read.

    It whitens the deviation of futures from their means, averaged over states. With too high a
    precision the bound starts far below zero, and training would first learn to ignore futures.

    Args:
        world: A world whose actions live before the squash.
        steps: The number of actions in a plan.
    """
    state_key, plan_key, noise_key = jax.random.split(jax.random.key(1), 3)

    def of_state(state_key: Key, plan_key: Key, noise_key: Key) -> Observation:
        state = world.state_distribution().sample(key=state_key)
        plan = jax.random.normal(plan_key, (steps, world.actions.size))
        return perceive(world, state, plan, key=noise_key) - mean_observation(world, state, plan)

    keys = (jax.random.split(key, _NUM_FUTURES) for key in (state_key, plan_key, noise_key))
    deviations = jax.vmap(of_state)(*keys)
    scale = jnp.sqrt(jnp.mean(deviations**2, axis=0))
    scaled = deviations / scale[None]
    correlation = scaled.T @ scaled / _NUM_FUTURES + _RIDGE * jnp.eye(scale.size)
    return jnp.linalg.inv(jnp.linalg.cholesky(correlation)) / scale[None]


def _rounded(wanted: float | int, intent_size: int) -> int:
    """Round up to a full lattice in one or two dimensions."""
    if intent_size > 2:
        return round(wanted)
    return math.ceil(wanted ** (1 / intent_size)) ** intent_size


def count_codes(world: Bounded, inputs: Inputs, steps: int) -> int:
    """Choose the number of codes by the number of distinguishable successors.

    If successors and noise were Gaussian, the information would be half the logarithm of
    the ratio of their determinants. Random actions cancel; a plan that spends all of its
    actions on one axis of intents goes further, by the square root of their number.
    """
    plan_size = steps * world.actions.size
    intent_size = min(inputs.whitener.shape[0], plan_size)
    coherence = 0.5 * intent_size * math.log(plan_size / intent_size)
    information = float(_information_if_gaussian(world, inputs, steps)) + coherence
    wanted = _CODES_PER_SUCCESSOR * math.exp(min(information, math.log(_MOST_CODES)))
    wanted = min(max(wanted, _FEWEST_CODES), _MOST_CODES)
    return _rounded(wanted, intent_size)


@eqx.filter_jit
def _information_if_gaussian(world: Bounded, inputs: Inputs, steps: int) -> Scalar:
    still = jnp.zeros((steps, world.actions.size))
    noise = observation_density(world, world.states.centre, still).scale
    return -jnp.linalg.slogdet(inputs.whitener)[1] - jnp.sum(jnp.log(noise))
