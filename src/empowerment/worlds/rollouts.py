"""Open-loop rollouts of plans: samples, means and closed-form densities."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from empowerment.distributions import Gaussian
from empowerment.types import Action, Key, Observation, Plan, State
from empowerment.worlds.base import AbstractWorld, Bounded, Box

_NUM_NOISE_SAMPLES = 4096
"""Random states and plans at which the noise of a world is examined."""

_TOLERANCE = 1e-3
"""Largest deviation from affine perception of the noise, in its standard deviations."""

_NOISE_RANGE = 4.0
"""Standard deviations of process noise within which its perception is examined."""

_ROUNDING = 1e-5
"""Relative rounding error of an observation, which is no deviation."""

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

    Exact where `has_closed_form_density`; elsewhere the process noise of the last step is
    linearised and that of the others left out.
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
    """Check whether `observation_density` is exact for plans of this many steps.

    It is if transitions are free of noise wherever plans lead; or, for a single step, if the
    process noise reaches the perceived axes through an affine emission of constant scale,
    independently on each. This is examined along random plans from random states.

    Args:
        world: A world, with or without actions before the squash.
        steps: The number of actions in a plan.
        key: Consumed.
    """
    inner = world.world if isinstance(world, Bounded) else world
    state_key, plan_key, noise_key = jax.random.split(key, 3)
    keys = jax.random.split(state_key, _NUM_NOISE_SAMPLES)
    states = jax.vmap(lambda key: inner.state_distribution().sample(key=key))(keys)
    plans = _any_plans(inner.actions, steps, key=plan_key)
    noise = examine_noise(inner, states, plans, key=noise_key)
    return noise.is_absent or (steps == 1 and bool(noise.is_affine.all()))


@eqx.filter_jit
def _any_plans(actions: Box, steps: int, *, key: Key) -> Float[Array, "plans steps action"]:
    """Sample plans along which the noise of a world is examined."""
    if actions.choices:
        scores = jax.random.normal(key, (_NUM_NOISE_SAMPLES, steps, actions.size))
        return jax.vmap(jax.vmap(actions.choose))(scores)
    low, high = actions.low, actions.high
    limited = jnp.isfinite(low) & jnp.isfinite(high)
    limits = Box(jnp.where(limited, low, -1.0), jnp.where(limited, high, 1.0), actions.names)
    return switching_plans(limits, steps, _NUM_NOISE_SAMPLES, key=key)


class PerceivedNoise(eqx.Module):
    """The noise of the future of a plan.

    Attributes:
        process: The largest scale of process noise along each axis of the state, at any step.
        is_affine: Whether the process noise of the first step reaches the perceived axes through
            an affine emission of constant scale, independently on each.
        scale: The scale of the perceived noise, in closed form.
    """

    process: Float[Array, "*batch state"]
    is_affine: Bool[Array, "*batch"]
    scale: Float[Array, "*batch observation"]

    @property
    def is_absent(self) -> bool:
        """Whether there is no process noise along any plan."""
        return not np.any(np.asarray(self.process) > 0)


@eqx.filter_jit
def examine_noise(
    world: AbstractWorld,
    states: Float[Array, "plans state"],
    plans: Float[Array, "plans steps action"],
    *,
    key: Key,
) -> PerceivedNoise:
    """Examine the noise along each of many plans, each from a state of its own."""

    def of_plan(state: State, plan: Plan, noise: State) -> PerceivedNoise:
        def step(state: State, action: Action) -> tuple[State, State]:
            successor = world.transition(state, action)
            return successor.mean, successor.scale

        scales = jax.lax.scan(step, state, plan)[1]
        successor = world.transition(state, plan[0])
        shift = successor.scale * noise
        near, far = world.emission(successor.mean), world.emission(successor.mean + shift)
        gain = jax.jacfwd(lambda state: world.emission(state).mean)(successor.mean)
        factor = gain * successor.scale[None, :]
        covariance = factor @ factor.T
        scale = jnp.sqrt(near.scale**2 + jnp.diag(covariance))
        tolerance = _TOLERANCE * scale + _ROUNDING * jnp.abs(far.mean)
        bend = jnp.abs(far.mean - near.mean - gain @ shift)
        correlation = jnp.abs(covariance - jnp.diag(jnp.diag(covariance)))
        is_affine = (
            jnp.all(bend <= tolerance)
            & jnp.all(jnp.abs(far.scale - near.scale) <= _TOLERANCE * near.scale)
            & jnp.all(correlation <= _TOLERANCE * jnp.outer(scale, scale))
        )
        density = observation_density(world, state, plan)
        return PerceivedNoise(scales.max(axis=0), is_affine, density.scale)

    noise = jax.random.uniform(
        key, states.shape, states.dtype, minval=-_NOISE_RANGE, maxval=_NOISE_RANGE
    )
    return jax.vmap(of_plan)(states, plans, noise)


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
