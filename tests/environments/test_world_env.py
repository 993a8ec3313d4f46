"""Continuous environments against their worlds and against Gymnasium's pendulum."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import Tracer

from empowerment.distributions import Gaussian, Uniform
from empowerment.environments import WorldEnv
from empowerment.worlds import Bounded, Box, Pendulum
from empowerment.worlds.base import AbstractWorld

Make = Callable[..., Any]


class Tank(AbstractWorld):
    """A user's own world: a tank that leaks as it is filled; only half of it is seen."""

    leak: jax.Array
    states: Box = Box((0.0, 0.0), (1.0, 1.0), ("level", "age"))
    actions: Box = Box((0.0,), (0.1,), ("inflow",))

    def initial(self) -> Uniform:
        return self.states.uniform()

    def transition(self, state: jax.Array, action: jax.Array) -> Gaussian:
        level, age = state
        successor = jnp.stack([(1 - self.leak) * level + action[0], age + 1])
        return Gaussian(successor, jnp.zeros(2))

    def emission(self, state: jax.Array) -> Gaussian:
        return Gaussian(state[:1], jnp.full(1, 0.01))


def turn_difference(angle: float, other: float) -> float:
    """How far apart two angles are, whatever the number of turns."""
    return abs(float(np.angle(np.exp(1j * (angle - other)))))


@pytest.mark.parametrize("name", ["pendulum", "ball", "cart"])
def test_environment_steps_as_its_world_does(make: Make, name: str):
    """Step by step from the environment's own state: rounding does not add up."""
    env = make(name)
    env.reset(seed=0)
    env.action_space.seed(1)
    step = eqx.filter_jit(lambda state, action: env.world.transition(state, action).mean)
    for _ in range(50):
        before, action = env.state, env.action_space.sample()
        observation = env.step(action)[0]
        expected = np.asarray(step(jnp.asarray(before), jnp.asarray(action)))
        np.testing.assert_allclose(env.state, expected, atol=1e-5)
        if name == "pendulum":
            assert turn_difference(observation[0], expected[0]) < 1e-5
            observation, expected = observation[1:], expected[1:]
        np.testing.assert_allclose(observation, expected, atol=1e-5)


def test_angle_is_wrapped_where_it_is_seen_and_nowhere_else(make: Make):
    env = make("pendulum")
    env.reset(options={"state": [3.1, 8.0]})
    seen = [float(env.step([2.0])[0][0]) for _ in range(200)]
    assert env.state[0] > 4 * np.pi
    assert np.abs(seen).max() <= np.float32(np.pi)
    assert min(seen) < -3
    assert max(seen) > 3


@pytest.mark.parametrize("turns", [-30, -1, 0, 1, 30])
@pytest.mark.parametrize("angle", [-3.14, -1.0, 0.0, 1e-3, 3.14])
def test_turns_are_taken_off(make: Make, angle: float, turns: int):
    env = make("pendulum")
    observation = env.reset(options={"state": [angle + 2 * np.pi * turns, 0.0]})[0]
    tolerance = 1e-6 + 1e-6 * abs(turns)  # of single precision
    assert float(observation[0]) == pytest.approx(angle, rel=0, abs=tolerance)


def test_half_a_turn_stays_within_bounds(make: Make):
    env = make("pendulum")
    for turns in np.arange(-40, 41):
        observation = env.reset(options={"state": [np.pi + 2 * np.pi * turns, 0.0]})[0]
        assert abs(observation[0]) == pytest.approx(np.pi, abs=1e-4)
        assert observation in env.observation_space


def test_pendulum_without_friction_is_gymnasiums(make: Make):
    ours, theirs = make("pendulum", friction=0.0), gymnasium.make("Pendulum-v1")
    theirs.reset(seed=0)
    source: Any = theirs.unwrapped
    rng = np.random.default_rng(0)
    for _ in range(50):  # a step adds at most 1.05 to the speed, whose limit is 8
        state = rng.uniform((-np.pi, -6.9), (np.pi, 6.9)).astype(np.float32)
        torque = rng.uniform(-3, 3, 1).astype(np.float32)  # some beyond the limit of 2
        source.state = state.astype(float)
        source.step(torque)
        ours.reset(options={"state": state})
        observation = ours.step(torque)[0]
        assert turn_difference(observation[0], source.state[0]) < 1e-5
        assert observation[1] == pytest.approx(source.state[1], abs=1e-5)


@pytest.mark.parametrize("name", ["pendulum", "ball", "cart"])
def test_actions_beyond_the_limits_are_clipped(make: Make, name: str):
    env, ends = make(name), []
    for factor in (1, 100):
        env.reset(options={"state": env.world.states.centre})
        ends.append(env.step(factor * env.action_space.high)[0])
    np.testing.assert_array_equal(*ends)


BAD_VECTORS = [
    [np.nan, 0.0],
    [0.0, np.inf],
    [0.0],
    1.0,
    [[0.0, 0.0]],
    "up",
    None,
    [1e99, 0.0],
]


@pytest.mark.parametrize("bad", BAD_VECTORS)
def test_bad_actions_are_refused(make: Make, bad: Any):
    env = make("ball")
    env.reset(seed=0)
    before = env.state
    sentence = r"^Expected the action to be 2 finite numbers in an array of shape \(2,\); got "
    with pytest.raises(ValueError, match=sentence):
        env.step(bad)
    np.testing.assert_array_equal(env.state, before)


@pytest.mark.parametrize("bad", [bad for bad in BAD_VECTORS if bad is not None])
def test_bad_start_states_are_refused(make: Make, bad: Any):
    sentence = "^Expected the start state to be 2 finite numbers in an array of shape"
    with pytest.raises(ValueError, match=sentence):
        make("ball").reset(options={"state": bad})


@pytest.mark.parametrize(("name", "state"), [("ball", [5, 11]), ("pendulum", [0, -9])])
def test_start_states_out_of_bounds_are_refused(make: Make, name: str, state: list[int]):
    sentence = r"^Expected the start state to be observed within .*; got \[\d.0, -?\d+.0\]\.$"
    with pytest.raises(ValueError, match=sentence):
        make(name).reset(options={"state": state})


def test_start_state_is_where_it_starts(make: Make):
    env = make("cart")
    observation, info = env.reset(options={"state": [7.0, -3.0]})  # out of world.states
    assert observation.tolist() == [7.0, -3.0]
    assert observation.dtype == np.float32
    assert info == {}


def test_first_states_come_from_the_world(make: Make):
    env = make("pendulum")
    starts = np.array([env.reset(seed=seed)[0] for seed in range(200)])
    assert np.abs(starts[:, 0]).max() > 3
    assert 0.9 < np.abs(starts[:, 1]).max() <= 1


@pytest.mark.statistical  # four comparisons at four standard errors: 3e-4 in all
def test_process_noise_has_its_scale(make: Make):
    env, num_samples, scale = make("ball", process_noise=0.3), 1000, 0.3
    env.reset(seed=0)
    ends = []
    for _ in range(num_samples):
        env.reset(options={"state": [5.0, 4.0]})
        ends.append(env.step([0.5, -0.5])[0])
    mean_error, scale_error = scale / np.sqrt(num_samples), scale / np.sqrt(2 * num_samples)
    assert (np.abs(np.mean(ends, axis=0) - [5.5, 3.5]) < 4 * mean_error).all()
    assert (np.abs(np.std(ends, axis=0) - scale) < 4 * scale_error).all()


def test_ones_own_world_works():
    env = WorldEnv(Tank(jnp.array(0.5)), render_mode="rgb_array")
    assert env.observation_space.shape == (1,)
    assert env.reset(seed=0)[0] in env.observation_space
    env.reset(options={"state": [1.0, 0.0]})
    assert env.step([0.1])[0].tolist() == [pytest.approx(0.6)]
    assert env.step([9.0])[0].tolist() == [pytest.approx(0.4)]  # clipped to 0.1
    np.testing.assert_allclose(env.state, [0.4, 2.0], rtol=1e-6)
    frame = env.render()
    assert frame is not None
    assert frame.shape == (128, 320, 3)
    env.reset(options={"state": [0.1, 0.9]})
    assert (frame != env.render()).any()


def test_bounded_world_works():
    env = WorldEnv(Bounded(Pendulum()))
    assert np.isinf(env.action_space.high).all()
    env.reset(options={"state": [0.0, 0.0]})
    velocity = env.step([50.0])[0][1]
    assert velocity == pytest.approx(3 * 2.0 * 0.05)  # the greatest torque


def test_environments_of_a_kind_compile_once():
    """Under other parameters, too: they are traced."""
    traces = []

    class Counting(AbstractWorld):
        drift: jax.Array
        states: Box = Box((0.0,), (1.0,), ("x",))
        actions: Box = Box((0.0,), (1.0,), ("u",))

        def initial(self) -> Uniform:
            return self.states.uniform()

        def transition(self, state: jax.Array, action: jax.Array) -> Gaussian:
            if isinstance(state, Tracer):
                traces.append(self)
            return Gaussian(state + action + self.drift, jnp.zeros(1))

        def emission(self, state: jax.Array) -> Gaussian:
            return Gaussian(state, jnp.ones(1))

    ends = []
    for drift in (1.0, 2.0, 3.0):
        env = WorldEnv(Counting(jnp.array(drift)))
        env.reset(options={"state": [0.0]})
        env.step(np.array([0.5], np.float32))
        ends.append(float(env.step([0.5])[0][0]))
    assert ends == [3.0, 5.0, 7.0]
    assert len(traces) == 2  # One of them is the check of a new world.


def test_double_precision_works():
    with jax.enable_x64(new_val=True):
        env = WorldEnv(Pendulum())
        env.reset(seed=0)
        observation = env.step(np.array([1.0], np.float32))[0]
        assert env.state.dtype == np.float64
    assert observation.dtype == np.float32
    assert observation in env.observation_space


class Mirrored(Pendulum):
    """Observes as many coordinates as the state has, but not the state."""

    def emission(self, state: jax.Array) -> Gaussian:
        return Gaussian(-state, jnp.full(2, 0.1))


def test_angles_of_the_state_are_wrapped_by_default_where_the_state_is_observed():
    for world, is_wrapped in ((Pendulum(), True), (Mirrored(), False)):
        first = WorldEnv(world).reset(options={"state": [4.0, 0.0]})[0][0]
        assert (abs(first) < np.pi) == is_wrapped
    unwrapped = WorldEnv(Pendulum(), periodic=(False, False))
    assert unwrapped.reset(options={"state": [4.0, 0.0]})[0][0] == 4.0


def test_flags_and_bounds_of_the_wrong_size_are_refused():
    with pytest.raises(ValueError, match="flag for each of 2 observed coordinates; got"):
        WorldEnv(Pendulum(), periodic=(True,))
    with pytest.raises(ValueError, match=r"axis for each of 1 observed .*\('level', 'age'\)"):
        WorldEnv(Tank(jnp.array(0.5)), bounds=Tank(jnp.array(0.5)).states)
