"""Water-filling and the linearised channel against optimisers, closed forms and differences."""

import math

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given

from empowerment.capacity import gaussian_empowerment, linearise, water_filling
from empowerment.worlds import AbstractWorld, Box, LinearGaussian, Pendulum

seeds = st.integers(0, 2**32 - 1)
pour = eqx.filter_jit(water_filling)
of_power = jax.jit(jax.grad(water_filling, argnums=2))
POWERS = (0.1, 1.0, 30.0)


def capacity(gain, noise, power: float) -> float:
    """Water-filling of plain NumPy arrays."""
    return float(pour(jnp.asarray(gain, float), jnp.asarray(noise, float), jnp.asarray(power)))


def random_channel(seed: int, outputs: int = 3, inputs: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(outputs, outputs))
    return rng.normal(size=(outputs, inputs)), root @ root.T + 0.5 * np.eye(outputs)


def strengths_of(gain: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The squared singular values of the whitened gain, by another road than Cholesky's."""
    return np.sort(np.linalg.eigvals(np.linalg.solve(noise, gain @ gain.T)).real)[::-1]


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize(("gain", "noise"), [(1.0, 1.0), (-2.0, 0.5), (0.01, 3.0)])
def test_scalar_channel(gain: float, noise: float, power: float):
    expected = 0.5 * math.log1p(gain**2 * power / noise)
    assert capacity([[gain]], [[noise]], power) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@given(seeds, st.sampled_from(POWERS))
def test_no_allocation_carries_more(seed: int, power: float):
    """A general optimiser over all ways to share the power among the modes finds the same."""
    strengths = strengths_of(*random_channel(seed))

    def loss(shares: np.ndarray) -> float:
        return -0.5 * np.log1p(strengths * shares).sum()

    best = scipy.optimize.minimize(
        loss,
        np.full(3, power / 3),
        jac=lambda shares: -0.5 * strengths / (1 + strengths * shares),
        bounds=[(0, power)] * 3,
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - power},
        options={"ftol": 1e-12},
    )
    assert capacity(*random_channel(seed), power) == pytest.approx(-best.fun, rel=1e-4, abs=1e-5)


@given(seeds, st.sampled_from(POWERS))
def test_no_correlated_input_carries_more(seed: int, power: float):
    """Any covariance of the input of the allowed power is an achievable rate."""
    gain, noise = random_channel(seed)
    found = capacity(gain, noise, power)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        root = rng.normal(size=(4, rng.integers(1, 5)))
        covariance = power * root @ root.T / np.trace(root @ root.T)
        rate = (
            np.linalg.slogdet(noise + gain @ covariance @ gain.T)[1] - np.linalg.slogdet(noise)[1]
        )
        assert 0.5 * rate <= found * (1 + 1e-4)


@given(seeds, st.sampled_from(POWERS))
def test_level_is_common_to_all_that_is_wet(seed: int, power: float):
    """Karush, Kuhn and Tucker: dC/dP is half of one over the level, and the level is right."""
    gain, noise = random_channel(seed)
    arrays = (jnp.asarray(part, float) for part in (gain, noise, power))
    slope = float(of_power(*arrays))
    level, heights = 0.5 / slope, 1 / strengths_of(gain, noise)
    assert np.maximum(level - heights, 0).sum() == pytest.approx(power, rel=1e-3)
    wet = heights < level
    value = 0.5 * np.log(level / heights[wet]).sum()
    assert capacity(gain, noise, power) == pytest.approx(value, rel=1e-3, abs=1e-5)


def test_weak_modes_are_left_dry():
    """At heights 1 and 100, a power of 98 goes to the first alone; of 101 to both."""
    gain, noise = np.diag([1.0, 0.1]), np.eye(2)
    assert capacity(gain, noise, 98.0) == pytest.approx(0.5 * math.log(99), rel=1e-5)
    slope = jax.jit(jax.grad(water_filling))
    slopes = [
        slope(jnp.asarray(gain, float), jnp.eye(2), jnp.asarray(power))[1, 1]
        for power in (98.0, 101.0)
    ]
    assert slopes[0] == 0
    assert slopes[1] > 0


def test_nothing_goes_through_nothing():
    gain = jnp.zeros((2, 3))
    assert pour(gain, jnp.eye(2), jnp.asarray(5.0)) == 0
    assert pour(jnp.ones((2, 3)), jnp.eye(2), jnp.asarray(0.0)) == 0
    assert np.isfinite(jax.grad(water_filling)(gain, jnp.eye(2), jnp.asarray(5.0))).all()


DIFFERENTIATED = {
    "generic": random_channel(1),
    "coinciding": (np.eye(3), np.eye(3)),
    "coinciding, rotated": (2 * np.linalg.qr(random_channel(2, 3, 3)[0])[0], np.eye(3)),
    "one of rank one": (np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 0.0, 2.0]), np.eye(3)),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradient_is_that_of_differences(name: str):
    gain, noise = DIFFERENTIATED[name]
    with jax.enable_x64(new_val=True):
        arguments = (jnp.asarray(gain), jnp.asarray(noise), jnp.asarray(3.0, dtype="float64"))
        slopes = jax.jit(jax.grad(water_filling, argnums=(0, 1, 2)))(*arguments)
        rng = np.random.default_rng(0)
        for _ in range(4):
            directions = [rng.normal(size=argument.shape) for argument in arguments]
            directions[1] = directions[1] + directions[1].T
            expected = sum(
                float((slope * way).sum()) for slope, way in zip(slopes, directions, strict=True)
            )

            def shifted(size: float, ways=directions) -> float:
                moved = (a + size * jnp.asarray(w) for a, w in zip(arguments, ways, strict=True))
                return float(pour(*moved))

            change = (shifted(1e-6) - shifted(-1e-6)) / 2e-6
            assert change == pytest.approx(expected, rel=1e-4, abs=1e-5)


@given(seeds)
def test_bases_of_input_and_output_do_not_matter(seed: int):
    gain, noise = random_channel(seed)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    stretch = np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag([0.5, 1.0, 3.0])
    plain = capacity(gain, noise, 2.0)
    assert capacity(gain @ turn, noise, 2.0) == pytest.approx(plain, rel=1e-4)
    mapped = capacity(stretch @ gain, stretch @ noise @ stretch.T, 2.0)
    assert mapped == pytest.approx(plain, rel=1e-4)


@given(seeds)
def test_capacity_falls_with_noise_and_rises_with_power(seed: int):
    gain, noise = random_channel(seed)
    more_noise = noise + 0.3 * np.outer([1.0, -1.0, 2.0], [1.0, -1.0, 2.0])
    assert capacity(gain, more_noise, 2.0) < capacity(gain, noise, 2.0) + 1e-6
    assert capacity(gain, 2 * noise, 2.0) < capacity(gain, noise, 2.0)
    assert capacity(gain, noise, 2.0) < capacity(gain, noise, 2.5)
    assert capacity(gain, 2 * noise, 4.0) == pytest.approx(capacity(gain, noise, 2.0), rel=1e-4)


def linear_world() -> LinearGaussian:
    """Three states, two seen, two forces of different limits, noise at every step."""
    return LinearGaussian(
        dynamics=jnp.array([[0.9, 0.2, 0.0], [-0.1, 0.8, 0.3], [0.0, 0.1, 1.05]]),
        control=jnp.array([[0.5, 0.0], [0.0, 1.0], [0.3, -0.2]]),
        observation=jnp.array([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]]),
        process_noise=jnp.array([0.1, 0.2, 0.05]),
        resolution=jnp.array([0.3, 0.1]),
        states=Box((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0), ("a", "b", "c")),
        actions=Box((-0.5, -jnp.inf), (1.5, jnp.inf), ("left", "right")),
    )


def stacked(world: LinearGaussian, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Gain and noise of a linear world in closed form: C A^k B side by side, summed spread."""
    a, b, c = (np.asarray(m, float) for m in (world.dynamics, world.control, world.observation))
    powers = [np.linalg.matrix_power(a, steps - 1 - k) for k in range(steps)]
    gain = np.concatenate([c @ power @ b for power in powers], axis=1)
    process = np.diag(np.asarray(world.process_noise, float) ** 2)
    noise = np.diag(np.asarray(world.resolution, float) ** 2)
    return gain, noise + sum(c @ power @ process @ power.T @ c.T for power in powers)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_linear_world_is_linearised_exactly(steps: int):
    world, rng = linear_world(), np.random.default_rng(steps)
    state, plan = jnp.asarray(rng.normal(size=3), float), rng.normal(size=(steps, 2))
    channel = eqx.filter_jit(linearise)(world, state, jnp.asarray(plan, float))
    gain, noise = stacked(world, steps)
    np.testing.assert_allclose(channel.gain, gain, atol=1e-5)
    np.testing.assert_allclose(channel.noise, noise, atol=1e-5)
    free = np.linalg.matrix_power(np.asarray(world.dynamics, float), steps) @ np.asarray(state)
    mean = np.asarray(world.observation) @ free + gain @ plan.ravel()
    np.testing.assert_allclose(channel.mean, mean, atol=1e-5)
    # Half the width of the limits is the unit of power: one for both of these forces.
    expected = capacity(gain, noise, 0.7 * 2 * steps)
    judge = eqx.filter_jit(gaussian_empowerment)
    found = judge(world, state, steps=steps, power=0.7)
    assert float(found) == pytest.approx(expected, rel=1e-4)
    wider = eqx.tree_at(lambda w: w.actions, world, Box((-5.0, -9.0), (1.0, -1.0), ("a", "b")))
    scaled = gain * np.tile([3.0, 4.0], steps)
    found = judge(wider, state, steps=steps)
    assert float(found) == pytest.approx(capacity(scaled, noise, 2 * steps / 3), rel=1e-4)


def estimate(world: AbstractWorld, state: jax.Array, steps: int) -> jax.Array:
    return gaussian_empowerment(world, state, steps=steps)


@pytest.mark.parametrize(
    ("steps", "upright", "difference"),
    # Measured with other code: the linearised channel, and upright minus hanging.
    [(1, 1.284, 0.0), (2, 1.963, 0.037), (5, 3.006, 0.258), (10, 4.757, 0.537), (20, 7.495, 1.831)],
)
def test_pendulum_has_the_measured_figures(steps: int, upright: float, difference: float):
    states = jnp.array([[0.0, 0.0], [jnp.pi, 0.0]])
    of_states = eqx.filter_jit(jax.vmap(lambda state: estimate(Pendulum(), state, steps)))
    top, bottom = of_states(states).tolist()
    assert top == pytest.approx(upright, abs=0.002)
    assert top - bottom == pytest.approx(difference, abs=0.002)
    alone = eqx.filter_jit(estimate)(Pendulum(), states[1], steps)
    assert float(alone) == pytest.approx(bottom, abs=1e-5)


@pytest.mark.parametrize("steps", [2, 5])
def test_gradient_in_the_state_is_that_of_differences(steps: int):
    with jax.enable_x64(new_val=True):
        world = Pendulum(process_noise=0.01)
        value = jax.jit(lambda state: estimate(world, state, steps))
        for place in ([0.0, 0.0], [0.7, -1.0], [2.5, 3.0], [np.pi, 0.0]):
            state = jnp.array(place)
            slope = np.asarray(jax.grad(value)(state))
            assert np.isfinite(slope).all()
            for axis, step in enumerate(1e-5 * jnp.eye(2)):
                change = (float(value(state + step)) - float(value(state - step))) / 2e-5
                assert slope[axis] == pytest.approx(change, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("steps", [0, -1])
def test_plan_must_have_a_step(steps: int):
    with pytest.raises(ValueError, match=f"Expected steps to be at least 1; got {steps}"):
        gaussian_empowerment(Pendulum(), jnp.zeros(2), steps=steps)
