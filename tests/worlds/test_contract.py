"""What every continuous world promises, and the functions that rest on it."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.worlds import (
    AbstractWorld,
    Bounded,
    Box,
    LinearGaussian,
    Pendulum,
    perceive,
    unroll,
)

Draw = Callable[[Box, jax.Array], jax.Array]


def draw_plan(world: AbstractWorld, draw: Draw, key: jax.Array, steps: int) -> jax.Array:
    keys = jax.random.split(key, steps)
    return jnp.stack([draw(world.actions, key) for key in keys])


def test_shapes(world: AbstractWorld, draw: Draw, getkey):
    state, action = draw(world.states, getkey()), draw(world.actions, getkey())
    start = world.initial().sample(key=getkey())
    transition, emission = world.transition(state, action), world.emission(state)
    assert start.shape == state.shape == (world.states.size,)
    assert transition.mean.shape == transition.scale.shape == state.shape
    assert emission.mean.shape == emission.scale.shape
    assert transition.mean.dtype == emission.mean.dtype == start.dtype == jnp.float32
    assert (np.asarray(transition.scale) >= 0).all()
    assert (np.asarray(emission.scale) > 0).all()


def test_first_states_are_possible_and_inside(world: AbstractWorld, getkey):
    keys = jax.random.split(getkey(), 100)
    starts = jax.vmap(lambda key: world.initial().sample(key=key))(keys)
    assert np.isfinite(jax.vmap(world.initial().log_prob)(starts)).all()
    assert (np.asarray(starts) >= np.asarray(world.states.low)).all()
    assert (np.asarray(starts) <= np.asarray(world.states.high)).all()


def test_jit_and_vmap_change_nothing(world: AbstractWorld, draw: Draw, getkey):
    keys = jax.random.split(getkey(), 3)
    states = jnp.stack([draw(world.states, key) for key in keys])
    actions = jnp.stack([draw(world.actions, key) for key in keys])

    def seen_next(
        world: AbstractWorld, state: jax.Array, action: jax.Array, key: jax.Array
    ) -> jax.Array:
        successor = world.transition(state, action).sample(key=key)
        return world.emission(successor).mean

    batched = eqx.filter_jit(jax.vmap(seen_next, in_axes=(None, 0, 0, 0)))
    fast = batched(world, states, actions, keys)
    for number in range(3):
        slow = seen_next(world, states[number], actions[number], keys[number])
        np.testing.assert_allclose(fast[number], slow, rtol=1e-4, atol=1e-5)


def test_gradients_reach_every_action_of_a_plan(world: AbstractWorld, draw: Draw, getkey):
    state = world.states.centre  # away from walls: there a move has no effect, rightly
    plan = 0.5 * draw_plan(world, draw, getkey(), 3)
    key = getkey()

    def total(plan: jax.Array) -> jax.Array:
        return perceive(world, state, plan, key=key).sum()

    gradient = np.asarray(jax.jit(jax.grad(total))(plan))
    assert np.isfinite(gradient).all()
    assert (gradient != 0).any(axis=1).all()


def test_derivatives_equal_finite_differences(world: AbstractWorld, draw: Draw, getkey):
    """In double precision: an error of h^2 in the formula, 1e-16 / h in the numbers."""
    size, step = world.states.size, 1e-5
    state, action = draw(world.states, getkey()), draw(world.actions, getkey())
    inputs = np.concatenate([state, action]).astype(np.float64)
    moves = step * np.eye(inputs.size)
    with jax.enable_x64(new_val=True):
        precise = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), world)

        def successor(inputs: jax.Array) -> jax.Array:
            return precise.transition(inputs[:size], inputs[size:]).mean

        both_sides = jax.jit(jax.vmap(successor))(np.concatenate([inputs + moves, inputs - moves]))
        forward, reverse = jax.jit(
            lambda inputs: (jax.jacfwd(successor)(inputs), jax.jacrev(successor)(inputs))
        )(inputs)
    assert both_sides.dtype == np.float64
    after, before = np.split(np.asarray(both_sides), 2)
    expected = (after - before).T / (2 * step)
    np.testing.assert_allclose(forward, expected, atol=1e-7)
    np.testing.assert_allclose(reverse, expected, atol=1e-7)


def test_unroll_equals_a_loop(world: AbstractWorld, draw: Draw, getkey):
    steps = 4
    state, plan = draw(world.states, getkey()), draw_plan(world, draw, getkey(), steps)
    key = getkey()
    noise = jax.random.normal(key, (steps, state.size))
    expected, current = [], state
    for number in range(steps):
        given = world.transition(current, plan[number])
        current = given.mean + given.scale * noise[number]
        expected.append(current)
    actual = unroll(world, state, plan, key=key)
    np.testing.assert_allclose(actual, jnp.stack(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.statistical  # five comparisons at four standard errors: 3e-4 in all
@pytest.mark.parametrize("steps", [1, 4])
def test_perceived_linear_future_has_its_closed_form(linear: LinearGaussian, steps: int):
    num_samples = 20_000
    state = jnp.array([0.5, -1.0, 2.0])
    plan = jax.random.normal(jax.random.key(0), (steps, 2))
    keys = jax.random.split(jax.random.key(1), num_samples)
    samples = jax.jit(jax.vmap(lambda key: perceive(linear, state, plan, key=key)))(keys)

    dynamics, control = np.asarray(linear.dynamics), np.asarray(linear.control)
    mean, covariance = np.asarray(state), np.zeros((3, 3))
    for action in np.asarray(plan):
        mean = dynamics @ mean + control @ action
        covariance = dynamics @ covariance @ dynamics.T
        covariance = covariance + np.diag(np.asarray(linear.process_noise) ** 2)
    seen = np.asarray(linear.observation)
    mean, covariance = seen @ mean, seen @ covariance @ seen.T
    covariance = covariance + np.diag(np.asarray(linear.resolution) ** 2)

    variances = np.diag(covariance)
    mean_error = np.sqrt(variances / num_samples)
    covariance_error = np.sqrt((np.outer(variances, variances) + covariance**2) / num_samples)
    assert (np.abs(samples.mean(axis=0) - mean) < 4 * mean_error).all()
    sampled = np.cov(np.asarray(samples), rowvar=False)
    assert (np.abs(sampled - covariance) < 4 * covariance_error).all()


def test_bounded_world_allows_any_action_and_stays_within_limits():
    inner = Pendulum()
    bounded = Bounded(inner)
    assert not bounded.actions.finite
    state = jnp.array([1.0, 2.0])
    for action, torque in ((0.0, 0.0), (100.0, 2.0), (-100.0, -2.0)):
        squashed = bounded.transition(state, jnp.array([action])).mean
        plain = inner.transition(state, jnp.array([torque])).mean
        np.testing.assert_allclose(squashed, plain, rtol=1e-6)


def test_squash_maps_onto_limits_that_are_not_centred(linear: LinearGaussian):
    actions = Box((-1.0, 3.0), (1.0, 7.0), ("left", "right"))
    bounded = Bounded(eqx.tree_at(lambda world: world.actions, linear, actions))
    np.testing.assert_allclose(bounded.squash(jnp.zeros(2)), [0.0, 5.0])
    expected = [np.tanh(0.5), 5 + 2 * np.tanh(-1.0)]
    np.testing.assert_allclose(bounded.squash(jnp.array([0.5, -1.0])), expected, rtol=1e-6)
