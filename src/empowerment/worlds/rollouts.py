"""Open-loop rollouts of plans: samples, means and closed-form densities."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Gaussian, Uniform
from empowerment.types import Action, Key, Observation, Plan, State
from empowerment.worlds.base import AbstractWorld, Box

_NUM_NOISE_SAMPLES = 64
"""Random states and actions at which the noise of a world is examined."""

_LIMIT_SHARE = 0.8
"""The fraction of values in switching plans that are action bounds."""


def unroll(
    world: AbstractWorld, state: State, plan: Plan, *, key: Key
) -> Float[Array, "steps state"]:
    r"""Sample the states along a plan, $z_{t+1}, \ldots, z_{t+n}$.

    Args:
        world: The world.
        state: The start state $z_t$; it is not part of the result.
        plan: The actions $u_{t:t+n-1}$.
        key: Consumed.

    Returns:
        The states after each action.
    """

    def step(state: State, inputs: tuple[Action, State]) -> tuple[State, State]:
        action, noise = inputs
        transition = world.transition(state, action)
        successor = transition.mean + transition.scale * noise
        return successor, successor

    # All noise is drawn at once: splitting a key per step costs more than the step.
    noise = jax.random.normal(key, (plan.shape[0], state.size), state.dtype)
    return jax.lax.scan(step, state, (plan, noise))[1]


def mean_observation(world: AbstractWorld, state: State, plan: Plan) -> Observation:
    """Compute the mean observation after a plan, without process noise."""

    def step(state: State, action: Action) -> tuple[State, None]:
        return world.transition(state, action).mean, None

    return world.emission(jax.lax.scan(step, state, plan)[0]).mean


def observation_density(world: AbstractWorld, state: State, plan: Plan) -> Gaussian:
    r"""Return the density of the perceived successor, $p(x'|z, u_{1:n})$, in closed form.

    Valid for noise-free transitions, and for a single step if the process noise is
    independent on each perceived axis; see `has_closed_form_density`.
    """

    def step(state: State, action: Action) -> tuple[State, None]:
        return world.transition(state, action).mean, None

    before = jax.lax.scan(step, state, plan[:-1])[0]
    last = world.transition(before, plan[-1])
    emission = world.emission(last.mean)
    gain = jax.jacfwd(lambda state: world.emission(state).mean)(last.mean)
    variance = emission.scale**2 + gain**2 @ last.scale**2
    return Gaussian(emission.mean, jnp.sqrt(variance))


def has_closed_form_density(world: AbstractWorld, *, steps: int, key: Key) -> bool:
    """Check at sampled states whether `observation_density` is valid for this many steps."""
    scales, covariance = _noise(world, jax.random.split(key, _NUM_NOISE_SAMPLES))
    diagonal = jax.vmap(jnp.diag)(jax.vmap(jnp.diag)(covariance))
    independent = bool(jnp.all(jnp.abs(covariance - diagonal) <= 1e-6 * jnp.abs(covariance).max()))
    return bool(jnp.all(scales == 0)) or (steps == 1 and independent)


@eqx.filter_jit
def _noise(
    world: AbstractWorld, keys: Array
) -> tuple[Float[Array, "samples state"], Float[Array, "samples observation observation"]]:
    """Compute scales of process noise at random states, and its perceived covariance."""
    low, high = world.actions.low, world.actions.high
    limited = jnp.isfinite(low) & jnp.isfinite(high)
    actions = Uniform(jnp.where(limited, low, -1.0), jnp.where(limited, high, 1.0))

    def of_sample(key: Key) -> tuple[State, Float[Array, "observation observation"]]:
        state_key, action_key = jax.random.split(key)
        successor = world.transition(
            world.state_distribution().sample(key=state_key), actions.sample(key=action_key)
        )
        gain = jax.jacfwd(lambda state: world.emission(state).mean)(successor.mean)
        factor = gain * successor.scale[None, :]
        return successor.scale, factor @ factor.T

    return jax.vmap(of_sample)(keys)


def perceive(world: AbstractWorld, state: State, plan: Plan, *, key: Key) -> Observation:
    r"""Sample the perceived successor: the observation after the last action of a plan.

    Process noise enters at every step, the noise of the emission once.

    Args:
        world: The world.
        state: The start state $z_t$.
        plan: The actions $u_{t:t+n-1}$.
        key: Consumed.

    Returns:
        $x' \sim p(x|z_{t+n})$.
    """
    unroll_key, emission_key = jax.random.split(key)
    successor = unroll(world, state, plan, key=unroll_key)[-1]
    return world.emission(successor).sample(key=emission_key)


def switching_plans(
    actions: Box, steps: int, count: int, *, key: Key
) -> Float[Array, "count steps action"]:
    """Sample bang-bang plans: each action holds one value, then another, then the first.

    Most values are action bounds, and switches fall anywhere within a step. Plans on the
    boundary of reachable sets have this form.
    """
    shape = (count, 1, actions.size)
    switch_key, value_key, limit_key, once_key = jax.random.split(key, 4)
    first, second = jnp.sort(jax.random.uniform(switch_key, (2, *shape)) * steps, axis=0)
    once = jax.random.bernoulli(once_key, shape=shape)
    second = jnp.where(once, jnp.full_like(second, steps), second)
    values = jax.random.uniform(value_key, (2, *shape), minval=-1.0)
    at_limit = jax.random.bernoulli(limit_key, _LIMIT_SHARE, values.shape)
    outer, inner = jnp.where(at_limit, jnp.sign(values), values)
    start = jnp.arange(steps, dtype=first.dtype)[None, :, None]
    share = jnp.clip(second - start, 0.0, 1.0) - jnp.clip(first - start, 0.0, 1.0)
    units = outer + (inner - outer) * share
    half_width = 0.5 * (actions.high - actions.low)
    return actions.centre[None, None] + half_width[None, None] * units
