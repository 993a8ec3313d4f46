"""The example of the balls in PettingZoo."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

from empowerment.environments import BallsEnv, joint

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "pettingzoo_balls.py")
ParallelBalls = runpy.run_path(EXAMPLE)["ParallelBalls"]


def test_the_example_runs(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(EXAMPLE, run_name="__main__")
    assert capsys.readouterr().out.count("touches a wall in ") == 4


@pytest.mark.parametrize("cycles", [30, 250])
def test_pettingzoo_has_no_complaint(cycles: int):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its own
        from pettingzoo.test import parallel_api_test

    parallel_api_test(ParallelBalls(num_balls=3), num_cycles=cycles)


def test_agents_see_and_do_what_the_balls_do():
    env, whole = ParallelBalls(max_cycles=5), BallsEnv()
    assert env.possible_agents == ["ball_0", "ball_1", "ball_2", "ball_3"]
    seen, _ = env.reset(seed=3)
    np.testing.assert_array_equal(joint(np.stack(list(seen.values()))), whole.reset(seed=3)[0])
    for cycle in range(5):
        for number, agent in enumerate(env.agents):
            env.action_space(agent).seed(10 * cycle + number)
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        seen, rewards, terminated, truncated, infos = env.step(dict(reversed(actions.items())))
        expected, _, _, _, info = whole.step(joint(np.stack(list(actions.values()))))
        np.testing.assert_array_equal(joint(np.stack(list(seen.values()))), expected)
        assert [infos[agent]["wall_touch"] for agent in actions] == info["wall_touches"].tolist()
        assert set(rewards.values()) == {0.0}
        assert set(terminated.values()) == {False}
        assert set(truncated.values()) == {cycle == 4}
    assert env.agents == []
    with pytest.raises(ValueError, match="call `reset`"):
        env.step({})


def test_starts_and_actions_are_validated():
    env = ParallelBalls(num_balls=2)
    env.reset(options={"positions": [[2.0, 2.0], [8.0, 8.0]]})
    np.testing.assert_allclose(env.state()[:, :2], [[2, 2], [8, 8]])
    with pytest.raises(ValueError, match=r"one for each of \['ball_0', 'ball_1'\]; got \['ball_0"):
        env.step({"ball_0": np.zeros(2)})
    with pytest.raises(ValueError, match="the action to be 4 finite numbers"):
        env.step({"ball_0": np.zeros(2), "ball_1": np.full(2, np.nan)})
    with pytest.raises(ValueError, match="from one another"):
        env.reset(options={"positions": [[2.0, 2.0], [2.0, 2.0]]})
