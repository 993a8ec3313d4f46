"""What follows from a plan: sampled, on average, or as a density."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Gaussian, Uniform
from empowerment.types import Action, Key, Observation, Plan, State
from empowerment.worlds.base import AbstractWorld, Box

_NUM_NOISE_SAMPLES = 64
"""Random states and actions at which the noise of a world is looked at."""

_LIMIT_SHARE = 0.8
"""The share of the values in switching plans that are limits of the action."""


def unroll(
    world: AbstractWorld, state: State, plan: Plan, *, key: Key
) -> Float[Array, "steps state"]:
    r"""Sample the states that a plan leads through, $z_{t+1}, \ldots, z_{t+n}$.

    Args:
        world: The world to imagine in.
        state: The state $z_t$ to start from; it is not part of the result.
        plan: The actions $u_{t:t+n-1}$.
        key: Consumed.

    Returns:
        The states after each action.
    """

    def step(state: State, inputs: tuple[Action, State]) -> tuple[State, State]:
        action, noise = inputs
        given = world.transition(state, action)
        successor = given.mean + given.scale * noise
        return successor, successor

    # All noise at once: a key for each step costs more than the step.
    noise = jax.random.normal(key, (plan.shape[0], state.size), state.dtype)
    return jax.lax.scan(step, state, (plan, noise))[1]


def mean_observation(world: AbstractWorld, state: State, plan: Plan) -> Observation:
    """Give the mean of what is perceived after a plan, if nothing is random on the way."""

    def step(state: State, action: Action) -> tuple[State, None]:
        return world.transition(state, action).mean, None

    return world.emission(jax.lax.scan(step, state, plan)[0]).mean


def observation_density(world: AbstractWorld, state: State, plan: Plan) -> Gaussian:
    r"""Give the density of the perceived successor, $p(x'|z, u_{1:n})$, in closed form.

    Known for transitions without noise, and for a single step if the noise of the
    transition shows on each perceived axis independently: `has_closed_form_density` tells.
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
    """Tell whether `observation_density` is right for plans of so many steps, at sampled states."""
    scales, spread = _noise(world, jax.random.split(key, _NUM_NOISE_SAMPLES))
    diagonal = jax.vmap(jnp.diag)(jax.vmap(jnp.diag)(spread))
    independent = bool(jnp.all(jnp.abs(spread - diagonal) <= 1e-6 * jnp.abs(spread).max()))
    return bool(jnp.all(scales == 0)) or (steps == 1 and independent)


@eqx.filter_jit
def _noise(
    world: AbstractWorld, keys: Array
) -> tuple[Float[Array, "samples state"], Float[Array, "samples observation observation"]]:
    """Give the scale of the transition at random states, and how it shows in what is seen."""
    low, high = world.actions.low, world.actions.high
    limited = jnp.isfinite(low) & jnp.isfinite(high)
    actions = Uniform(jnp.where(limited, low, -1.0), jnp.where(limited, high, 1.0))

    def of_sample(key: Key) -> tuple[State, Float[Array, "observation observation"]]:
        state_key, action_key = jax.random.split(key)
        successor = world.transition(
            world.state_distribution().sample(key=state_key), actions.sample(key=action_key)
        )
        gain = jax.jacfwd(lambda state: world.emission(state).mean)(successor.mean)
        shown = gain * successor.scale[None, :]
        return successor.scale, shown @ shown.T

    return jax.vmap(of_sample)(keys)


def perceive(world: AbstractWorld, state: State, plan: Plan, *, key: Key) -> Observation:
    r"""Sample the perceived successor: what is seen after the last action of a plan.

    Process noise enters at every step, the noise of the emission once.

    Args:
        world: The world to imagine in.
        state: The state $z_t$ to start from.
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
    """Draw plans that hold each action at one value, then another, then the first again.

    Most values are limits, and the switches fall anywhere within a step: the borders of
    reachable sets are made of such plans.
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
