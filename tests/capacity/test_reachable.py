"""Reachable sets: every future is covered, every input is reached, known shapes are exact."""

import itertools
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from scipy.spatial import ConvexHull, KDTree

from empowerment.capacity import AdditiveChannel, reachable
from empowerment.capacity.boundary import _linear_program
from empowerment.capacity.exact import capacity_of
from empowerment.worlds import Ball, Box, LinearGaussian, Pendulum, double_integrator

REGULAR = [(0.0, 0.0), (np.pi, 0.0), (1.0, -3.0), (2.8, -1.0)]
AT_THE_CLIP = [(0.07, 6.93), (0.56, -7.6), (np.pi / 2, 6.0), (2.5, 7.5)]
STATES = REGULAR + AT_THE_CLIP
_COVERED = 0.19
"""Half the diagonal of the lattice of the cover, and what rounding adds."""
_SAMPLED = 0.45
"""The widest gap between thousands of futures that stand for a set at the velocity clip."""

program = jax.jit(_linear_program)


def random_plans(seed: int, steps: int) -> np.ndarray:
    """Plans inside the limits, at the limits, at the limits with few switches, and constant."""
    rng, count = np.random.default_rng(seed), 1500
    inner = rng.uniform(-2, 2, (count, steps))
    limits = rng.choice([-2.0, 2.0], (count, steps))
    switched = np.where(np.arange(steps) < rng.integers(0, steps + 1, (count, 1)), 2.0, -2.0)
    switched *= rng.choice([-1.0, 1.0], (count, 1))
    mixed = np.where(rng.random((count, steps)) < 0.2, inner, switched)
    return np.concatenate([inner, limits, switched, mixed, np.tile([[-2.0], [0.0]], steps)])


@pytest.mark.parametrize("steps", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_pendulum_covers_every_future_and_reaches_every_input(oracle: Any, steps: int):
    # A fixed key: what is sought is sought anew in other tests with other keys.
    scale = jnp.full(2, 0.05)
    sets = reachable(Pendulum(), jnp.array(STATES), scale, steps=steps, key=jax.random.key(3))
    for state, found in zip(STATES, sets, strict=True):
        assert not found.is_box
        # Futures of plans that were not looked for.
        futures = oracle.futures(np.array(state), random_plans(steps, steps))
        gap = KDTree(found.cover).query(futures)[0].max()
        assert gap < (_COVERED if state in REGULAR else _SAMPLED), state
        # Inputs among all that can be reached, to the diagonal of the cells that thinned it.
        reached = oracle.reached(np.array(state), steps, cell=0.15)
        assert KDTree(reached).query(found.inputs)[0].max() < 0.15 * 2**0.5, state
        # What bounds the capacity is no less than what any of those futures would add.
        capacity = capacity_of(found, tolerance=1e-3)
        channel = AdditiveChannel(found.inputs, np.ones(2))
        beyond = channel.divergence_at(futures, capacity.source).max() - capacity.upper
        # At the clip, where samples are the cover, the bound was measured to miss 0.003.
        assert beyond < (2e-4 if state in REGULAR else 5e-3), state


def test_pair_of_torques_is_searched_through(oracle: Any):
    """Two steps against every pair on a fine grid of torques: nothing is thinned here."""
    torques = np.linspace(-2, 2, 401)
    plans = np.array(list(itertools.product(torques, torques)))
    sets = reachable(
        Pendulum(), jnp.array(STATES), jnp.full(2, 0.05), steps=2, key=jax.random.key(4)
    )
    for state, found in zip(STATES, sets, strict=True):
        futures = oracle.futures(np.array(state), plans)
        assert KDTree(futures).query(found.inputs)[0].max() < 0.03, state
        gap = KDTree(found.cover).query(futures)[0].max()
        assert gap < (_COVERED if state in REGULAR else _SAMPLED), state


def rotating() -> LinearGaussian:
    """A slow rotation with two slanted forces of different limits."""
    return LinearGaussian(
        dynamics=jnp.array([[0.9, -0.4], [0.4, 0.9]]),
        control=jnp.array([[1.0, 0.5], [0.2, -0.7]]),
        observation=jnp.eye(2),
        process_noise=jnp.zeros(2),
        resolution=jnp.array([0.1, 0.2]),
        states=Box((-1.0, -1.0), (1.0, 1.0), ("a", "b")),
        actions=Box((-0.5, -1.0), (1.5, 2.0), ("u", "v")),
    )


def zonotope(
    world: LinearGaussian, state: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The middle and half the edges of the reachable set, and the noise it is measured in."""
    a, b = np.asarray(world.dynamics, float), np.asarray(world.control, float)
    low, high = np.asarray(world.actions.low, float), np.asarray(world.actions.high, float)
    scale, middle, edges = np.asarray(world.resolution, float), state, []
    for k in range(steps):
        middle = a @ middle + b @ (0.5 * (low + high))
        edges.append(np.linalg.matrix_power(a, k) @ b * (0.5 * (high - low)))
    return middle / scale, (np.concatenate(edges, axis=1).T / scale), scale


def excess(points: np.ndarray, middle: np.ndarray, edges: np.ndarray) -> float:
    """How far the outermost point lies beyond the sides of a zonotope."""
    normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    support = np.abs(edges @ normals.T).sum(axis=0)
    return float((np.abs((points - middle) @ normals.T) - support).max())


LINEAR = {
    "cart": (double_integrator(0.01), [0.3, -0.4], 6),
    "rotation": (rotating(), [0.5, 1.0], 1),
    "longer rotation": (rotating(), [0.5, 1.0], 4),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_world_reaches_its_zonotope(name: str):
    world, place, steps = LINEAR[name]
    middle, edges, scale = zonotope(world, np.array(place), steps)
    (found,) = reachable(
        world, jnp.array([place]), jnp.asarray(scale, float), steps=steps, key=jax.random.key(5)
    )
    assert not found.is_box
    assert excess(found.inputs, middle, edges) < 1e-3  # of single precision
    area = 4 * sum(
        abs(first[0] * second[1] - first[1] * second[0])
        for first, second in itertools.combinations(edges, 2)
    )
    inner, outer = ConvexHull(found.inputs).volume, ConvexHull(found.cover).volume
    assert 0.998 * area <= inner <= area * 1.0001
    assert 0.9999 * area <= outer <= 1.002 * area
    signs = np.array(list(itertools.product([-1, 1], repeat=len(edges))))
    corners = middle + signs @ edges
    assert KDTree(found.cover).query(corners)[0].max() < _COVERED
    tips = corners[ConvexHull(corners).vertices]
    assert KDTree(found.inputs).query(tips)[0].max() < 0.05


@pytest.mark.parametrize("steps", [1, 3, 20])
def test_ball_reaches_a_box(steps: int):
    places = np.array([(5.0, 5.0), (0.3, 9.9), (0.0, 0.0), (4.0, 10.0)])
    sets = reachable(
        Ball(), jnp.asarray(places, float), jnp.full(2, 0.05), steps=steps, key=jax.random.key(6)
    )
    for place, found in zip(places, sets, strict=True):
        assert found.is_box
        low, high = (np.clip(place + sign * steps, 0, 10) / 0.05 for sign in (-1, 1))
        corners = [low, (high[0], low[1]), high, (low[0], high[1])]
        np.testing.assert_allclose(found.inputs, corners, atol=1e-3)


@pytest.mark.parametrize("steps", [1, 4])
def test_interval_has_exact_ends(steps: int):
    cart = double_integrator()
    world = LinearGaussian(
        dynamics=cart.dynamics,
        control=cart.control,
        observation=jnp.array([[1.0, 2.0]]),
        process_noise=cart.process_noise,
        resolution=jnp.array([0.01]),
        states=cart.states,
        actions=Box((-1.0,), (3.0,), ("force",)),
    )
    scale, seen = jnp.array([0.01]), np.array([[1.0, 2.0]])
    sets = reachable(
        world, jnp.array([[0.0, 0.0], [0.5, -1.0]]), scale, steps=steps, key=jax.random.key(7)
    )
    for place, found in zip(([0.0, 0.0], [0.5, -1.0]), sets, strict=True):
        ends = []
        for force in (-1.0, 3.0):  # More force is always more of both.
            state = np.array(place)
            for _ in range(steps):
                state = np.asarray(cart.dynamics) @ state + np.asarray(cart.control)[:, 0] * force
            ends.append(float((seen @ state)[0]) / 0.01)
        for points in (found.inputs, found.cover):
            assert points.shape[1] == 1
            np.testing.assert_allclose([points.min(), points.max()], ends, atol=1e-3)
            assert np.diff(np.sort(points[:, 0])).max() <= 0.4 + 1e-6


@given(st.integers(0, 2**32 - 1))
def test_linear_program_is_solved(seed: int):
    rng = np.random.default_rng(seed)
    gain, constraint = rng.normal(size=(2, 4, 2))
    constraint[rng.random((4, 2)) < 0.1] = 0
    low, high = -rng.uniform(0.1, 2, 2), rng.uniform(0.1, 2, 2)
    value = np.sum(constraint * rng.uniform(np.tile(low, (4, 1)), np.tile(high, (4, 1))))
    arrays = (jnp.asarray(part, float) for part in (gain, constraint, value))
    plan, multiplier = program(*arrays, (jnp.asarray(low, float), jnp.asarray(high, float)))
    plan = np.asarray(plan, float)
    best = scipy.optimize.linprog(
        -gain.ravel(),
        A_eq=constraint.reshape(1, -1),
        b_eq=[value],
        bounds=list(zip(np.tile(low, 4), np.tile(high, 4), strict=True)),
    )
    assert best.status == 0
    assert (plan >= low - 1e-5).all()
    assert (plan <= high + 1e-5).all()
    assert np.sum(constraint * plan) == pytest.approx(value, abs=1e-4)
    assert np.sum(gain * plan) == pytest.approx(-best.fun, abs=1e-4)
    # The multiplier is how much the best falls as the value of the constraint rises.
    assert float(multiplier) == pytest.approx(-best.eqlin.marginals[0], abs=1e-3)


@pytest.mark.parametrize("value", [-100.0, 100.0])
def test_linear_program_without_a_solution_comes_as_near_as_it_can(value: float):
    gain, constraint = jnp.array([[1.0], [-2.0]]), jnp.array([[1.0], [0.5]])
    plan, multiplier = program(gain, constraint, jnp.asarray(value), (-jnp.ones(1), jnp.ones(1)))
    np.testing.assert_allclose(plan, np.full((2, 1), np.sign(value)), atol=1e-6)
    assert np.isfinite(multiplier)
