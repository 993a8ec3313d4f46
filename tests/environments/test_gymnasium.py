"""Every environment as Gymnasium wants it."""

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from empowerment.environments import ENVIRONMENTS, GridEnv, WorldEnv, register
from empowerment.worlds import WORLDS

Make = Callable[..., Any]
NOISE: dict[str, dict[str, Any]] = {
    "pendulum": {"process_noise": 0.5},
    "ball": {"process_noise": 2.0},
}
STARTS = {
    "pendulum": ([0.0, 0.0], [2.0, 0.0]),
    "ball": ([5.0, 5.0], [0.0, 1.0]),
    "cart": ([0.0, 0.0], [0.3, 0.0]),
    "cart-pole": ([0.0] * 4, [0.5, 2.0, 0.0, 0.0]),
    "double-pendulum": ([0.0] * 4, [2.0, -1.0, 0.0, 0.0]),
    "triple-pendulum": ([0.0] * 6, [2.0, -1.0, 1.0, 0.0, 0.0, 0.0]),
} | dict.fromkeys(["room", "maze", "doorways", "slippery"], (0, 57))


def test_every_world_has_an_environment():
    assert list(ENVIRONMENTS) == list(WORLDS)
    assert ENVIRONMENTS["pendulum"] == "empowerment/Pendulum-v0"
    for name, build in WORLDS.items():
        env: Any = gymnasium.make(ENVIRONMENTS[name]).unwrapped
        assert eqx.tree_equal(env.world, build())


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasium_has_no_complaint(make: Make, name: str, render_mode: str | None):
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        check_env(make(name, render_mode=render_mode))
    messages = [str(complaint.message) for complaint in complaints]
    # Gymnasium recommends actions within one; our torques and forces are physical.
    recommended = "symmetric and normalized space"
    unexpected = [message for message in messages if recommended not in message]
    assert not unexpected
    assert len(messages) == name.endswith(("pendulum", "pole"))


@pytest.mark.parametrize(
    ("name", "steps"),
    [("pendulum", 400), ("ball", 200), ("cart", 200), ("cart-pole", 240)]
    + [("double-pendulum", 400), ("triple-pendulum", 400)]
    + [(name, 100) for name in ("room", "maze", "doorways", "slippery")],
)
def test_episodes_are_cut_by_the_clock_alone(name: str, steps: int):
    """And the wrappers that Gymnasium adds find nothing to warn of on the way."""
    env = gymnasium.make(ENVIRONMENTS[name])
    env.reset(seed=0)
    env.action_space.seed(0)
    endings = []
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert reward == 0
        assert not terminated
        endings.append(truncated)
    assert endings == [False] * (steps - 1) + [True]


@pytest.mark.parametrize("name", NOISE)
def test_noise_does_not_break_the_bounds(name: str):
    """A world whose noise kicks it out of its states must not promise to keep to them."""
    env = gymnasium.make(ENVIRONMENTS[name], **NOISE[name])
    env.reset(seed=0)
    env.action_space.seed(0)
    left = False
    states = WORLDS[name]().states  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(100):
        observation = env.step(env.action_space.sample())[0]
        assert observation in env.observation_space
        left |= bool(((observation < states.low) | (observation > states.high)).any())
    assert left  # or this test shows nothing


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_frames_show_the_state(make: Make, name: str):
    env = make(name, render_mode="rgb_array")
    frames = []
    for start in STARTS[name]:
        env.reset(options={"state": start})
        frames.append(env.render())
    for frame in frames:
        assert frame.dtype == np.uint8
        assert frame.ndim == 3
        assert frame.shape[2] == 3
        assert frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert frames[0].shape == frames[1].shape
    assert (frames[0] != frames[1]).any(axis=2).sum() > 100


@pytest.mark.parametrize("name", ["pendulum", "cart", "ball"])
def test_frames_show_the_action(make: Make, name: str):
    env = make(name, render_mode="rgb_array")
    frames = []
    for sign in (-1, 1):
        env.reset(options={"state": STARTS[name][0]})
        env.step(sign * env.action_space.high)
        frames.append(env.render())
    assert (frames[0] != frames[1]).any()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_without_a_render_mode_there_is_a_warning_and_no_frame(make: Make, name: str):
    env = make(name)
    env.reset()
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert env.render() is None


@pytest.mark.parametrize("name", ["ball", "maze"])
def test_unknown_render_mode_is_refused(make: Make, name: str):
    sentence = r"render_mode to be None or one of \['rgb_array'\]; got 'ansi'"
    with pytest.raises(ValueError, match=sentence):
        make(name, render_mode="ansi")


def run(env: Any, seed: int) -> list[list[float]]:
    env.action_space.seed(seed)
    trajectory = [np.atleast_1d(env.reset(seed=seed)[0]).tolist()]
    for _ in range(20):
        observation = env.step(env.action_space.sample())[0]
        trajectory.append(np.atleast_1d(observation).tolist())
    return trajectory


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_seed_decides_everything(make: Make, name: str):
    first, second = (make(name, **NOISE.get(name, {})) for _ in range(2))
    trajectory = run(first, 3)
    assert run(second, 3) == trajectory
    assert run(first, 3) == trajectory
    assert run(second, 4) != trajectory


@pytest.mark.parametrize("name", ["pendulum", "ball", "slippery"])
def test_seed_decides_the_noise_of_the_steps(make: Make, name: str):
    """From one start and with one action: only the noise can differ."""
    env = make(name, **NOISE.get(name, {}))
    action = 2 if name == "slippery" else np.zeros(env.action_space.shape)
    ends = {}
    for seed in (1, 1, 2):
        env.reset(seed=seed, options={"state": STARTS[name][1]})
        steps = [np.atleast_1d(env.step(action)[0]).tolist() for _ in range(30)]
        assert ends.setdefault(seed, steps) == steps
    assert ends[1] != ends[2]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_step_before_reset_is_refused(make: Make, name: str):
    env = make(name)
    action = env.action_space.sample()
    with pytest.raises(gymnasium.error.ResetNeeded, match="to be reset before"):
        env.step(action)
    with pytest.raises(gymnasium.error.ResetNeeded, match="to be reset before"):
        _ = env.state


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_misspelt_options_are_refused(make: Make, name: str):
    with pytest.raises(ValueError, match=r"options to be 'state' alone; got \['sate'\]"):
        make(name).reset(options={"sate": 0})


def test_parameters_reach_the_worlds(make: Make):
    assert float(make("pendulum", resolution=0.1).world.resolution) == pytest.approx(0.1)
    assert make("pendulum", interval=0.02).metadata["render_fps"] == 50
    assert make("ball", max_step=3.0).action_space.high.tolist() == [3.0, 3.0]
    assert make("cart", resolution=0.2).world.resolution.tolist() == [np.float32(0.2)] * 2
    assert make("maze", slip=0.5).world.kernel.max(axis=2).min() < 1
    with pytest.raises(TypeError, match="resolutoin"):
        make("ball", resolutoin=0.1)


def test_registering_again_does_no_harm():
    spec = gymnasium.spec(ENVIRONMENTS["ball"])
    register()  # a warning would be an error
    assert gymnasium.spec(ENVIRONMENTS["ball"]) is spec


@pytest.mark.parametrize("name", ["ball", "maze"])
def test_spec_survives_being_written_down(name: str):
    spec = gymnasium.make(ENVIRONMENTS[name]).spec
    assert spec is not None
    again = gymnasium.make(EnvSpec.from_json(spec.to_json()))
    assert isinstance(again.unwrapped, WorldEnv | GridEnv)


@pytest.mark.parametrize("name", ["pendulum", "doorways"])
def test_environments_run_side_by_side(name: str):
    env = gymnasium.make_vec(ENVIRONMENTS[name], 3, vectorization_mode="sync")
    first = env.reset(seed=0)[0]
    second = env.step(env.action_space.sample())[0]
    assert len(first) == len(second) == 3
    assert len(np.unique(first, axis=0)) == 3
    env.close()
