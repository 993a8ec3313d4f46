"""Collected data: whole episodes, the same for any number of workers, whatever befalls them."""

import functools
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text
from worlds_for_tests import Counting, Raising, Unclosable

from empowerment.data import (
    Spaces,
    Trajectories,
    ZeroActor,
    collect,
    run_episode,
    spaces_of,
    summarise,
)
from empowerment.data.spaces import numbered_spaces
from empowerment.environments import EnvFactory

DOOMED = functools.partial(Counting, dies_if=0.1, hangs_if=0.1, fails_if=0.1)


def assert_consistent(data: Trajectories, *, steps: int):
    """No transition is of two episodes, each action is the one that was taken, names are once."""
    names = [float(episode.observations[0, 0]) for episode in data.episodes]
    assert len(set(names)) == len(names)
    assert data.num_transitions == steps
    for name, episode in zip(names, data.episodes, strict=True):
        np.testing.assert_array_equal(episode.observations[:, 0], name)
        np.testing.assert_array_equal(episode.observations[:, 1], np.arange(episode.length + 1))
        sums = np.concatenate([[0], np.cumsum(episode.actions.sum(axis=1))])
        np.testing.assert_allclose(episode.observations[:, 2], sums, rtol=1e-5, atol=1e-5)
        assert episode.rewards is not None
        np.testing.assert_allclose(episode.rewards, episode.actions.sum(axis=1), rtol=1e-5)
        assert episode.terminated != episode.truncated
        assert np.all(episode.actions >= data.spaces.action_low)
        assert np.all(episode.actions <= data.spaces.action_high)


def assert_same(left: Trajectories, right: Trajectories):
    assert left.about == right.about
    assert len(left.episodes) == len(right.episodes)
    for one, other in zip(left.episodes, right.episodes, strict=True):
        np.testing.assert_array_equal(one.observations, other.observations)
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.rewards, other.rewards)
        assert (one.terminated, one.truncated) == (other.terminated, other.truncated)


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "Autoreset"])
def test_episodes_are_whole_and_reproducible(wrapped: bool):  # noqa: FBT001
    make = (lambda: gymnasium.wrappers.Autoreset(Counting())) if wrapped else Counting
    data, report = collect(make, steps=101, seed=5)
    assert_consistent(data, steps=101)
    assert (report.num_transitions, report.num_episodes) == (101, len(data.episodes))
    assert report.failed == ()
    assert {episode.terminated for episode in data.episodes} == {True, False}
    assert_same(collect(make, steps=101, seed=5)[0], data)
    other, _ = collect(make, steps=101, seed=6)
    assert other.episodes[0].observations[0, 0] != data.episodes[0].observations[0, 0]
    # More steps only add to what there is, but for the end of the last episode.
    longer, _ = collect(make, steps=150, seed=5)
    for one, another in zip(data.episodes[:-1], longer.episodes, strict=False):
        np.testing.assert_array_equal(one.observations, another.observations)


def test_workers_that_die_or_hang_are_replaced_and_the_data_are_the_same():
    told = []
    data, report = collect(
        DOOMED,
        steps=30,
        seed=31,
        workers=2,
        timeout=2.0,
        progress=lambda doing, done, total: told.append((done, total)),
    )
    assert_consistent(data, steps=30)
    assert [(failed.index, failed.why) for failed in report.failed] == [
        (6, "died"),
        (7, "failed"),
        (9, "hung"),
    ]
    assert report.restarts >= 2
    assert data.about["episodes_lost"] == 3
    words = report.summary()
    assert "3 episodes were dropped (1 died, 1 failed, 1 hung;" in words
    assert told[-1] == (30, 30)
    by_why = {failed.why: failed.detail for failed in report.failed}
    assert "exit code 7" in by_why["died"]
    assert by_why["failed"] == "ArithmeticError: the world is broken"
    # One that never fails gives the same episodes, but for those that were lost.
    steady, _ = collect(Counting, steps=100, seed=31)
    kept = [
        e
        for i, e in enumerate(steady.episodes)
        if i not in {failed.index for failed in report.failed}
    ]
    for one, other in zip(data.episodes[:-1], kept, strict=False):
        np.testing.assert_array_equal(one.observations, other.observations)


def test_workers_make_no_difference():
    data, report = collect("worlds_for_tests:Counting-v0", steps=60, seed=1, workers=2)
    assert_consistent(data, steps=60)
    assert (report.restarts, report.failed) == (0, ())
    assert_same(collect("worlds_for_tests:Counting-v0", steps=60, seed=1)[0], data)


def test_an_environment_that_always_fails_is_given_up():
    always = functools.partial(Counting, fails_if=1.0)
    with pytest.raises(
        ValueError, match=r"5 of the first 5 did not \(the last failed: Arithm.*broken\)"
    ):
        collect(always, steps=10, seed=0)


def test_whatever_an_environment_raises_in_a_worker_is_one_sentence(
    capfd: pytest.CaptureFixture[str],
):
    with pytest.raises(ValueError, match=r"5 of the first 5 did not \(the last failed: \w+\)") as e:
        collect(Raising, steps=10, seed=0, workers=1)
    assert "\n" not in str(e.value)
    assert capfd.readouterr().err == ""  # No traceback of the worker either.


class Leaving(Counting):
    def step(self, action: np.ndarray):
        raise SystemExit(0)


def test_an_environment_does_not_end_the_program():
    with pytest.raises(ValueError, match=r"the last failed: SystemExit: 0\)"):
        collect(Leaving, steps=10, seed=0)

    def leave() -> gymnasium.Env:
        raise SystemExit("good bye")

    with pytest.raises(ValueError, match=r"to be an environment .*; SystemExit: good bye"):
        collect(leave, steps=10, seed=0)


@pytest.mark.parametrize("workers", [0, 1])
def test_data_are_not_lost_with_an_environment_that_cannot_be_closed(workers: int):
    with pytest.warns(RuntimeWarning, match="could not be closed: OSError: the window is gone"):
        data, _ = collect(Unclosable, steps=12, seed=5, workers=workers)
    assert_consistent(data, steps=12)


def test_our_own_environments_and_their_interval():
    data, _ = collect("empowerment/Pendulum-v0", steps=410, seed=0)
    assert [episode.length for episode in data.episodes] == [400, 10]
    assert all(episode.truncated and not episode.terminated for episode in data.episodes)
    assert data.about["environment"] == "empowerment/Pendulum-v0"
    assert data.about["interval"] == pytest.approx(0.05)
    np.testing.assert_array_equal(data.spaces.action_high, 2)
    ball, _ = collect("empowerment/Ball-v0", steps=20, seed=0)
    assert (ball.observation_size, ball.action_size) == (2, 2)


def test_an_environment_without_end_is_cut(monkeypatch: pytest.MonkeyPatch):
    class Endless(Counting):
        def step(self, action):
            observation, reward, _, _, info = super().step(action)
            return observation, reward, False, False, info

    monkeypatch.setattr("empowerment.data.collection.EPISODE_LIMIT", 25)
    data, _ = collect(Endless, steps=60, seed=0)
    assert [episode.length for episode in data.episodes] == [25, 25, 10]
    assert_consistent(data, steps=60)


class Chase:
    """Act on what is seen; far out of bounds now and then."""

    def __init__(self, spaces: Spaces):
        self.size = len(spaces.action_low)

    def reset(self, *, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        return observation[1] * self.random.choice([0.1, -50.0]) + np.zeros(self.size)


def test_another_policy_acts_on_what_it_sees_and_is_clipped():
    data, _ = collect(Counting, steps=50, seed=0, policy=Chase)
    assert_consistent(data, steps=50)
    for episode in data.episodes:
        np.testing.assert_array_equal(episode.actions[0], np.array([0, 0.1], np.float32))
    seen = np.concatenate([episode.actions[1:, 0] for episode in data.episodes])
    assert np.any(seen == -1)
    assert np.any(seen == np.float32(0.1))
    assert data.about["policy"] == "chase"


@pytest.mark.parametrize("reward", [None, "much", (1.0, 2.0), {}])
def test_a_reward_that_is_no_number_is_missing_and_noted(reward: Any):
    class Odd(Counting):
        def step(self, action: np.ndarray) -> Any:
            observation, _, *rest = super().step(action)
            return observation, reward, *rest

    data, _ = collect(Odd, steps=5, seed=0)
    assert np.isnan(data.rewards).all()
    found = summarise(data)
    assert found.problems == ()
    assert "the reward is not finite for 5 actions, and cannot be learnt" in found.notes


def test_one_episode_from_a_start_with_a_callback_before_every_action():
    environment = gymnasium.make("empowerment/Pendulum-v0")
    spaces = spaces_of(environment, "the pendulum")
    states: list[np.ndarray] = []

    def look() -> None:
        states.append(environment.get_wrapper_attr("state"))

    episode = run_episode(
        environment,
        ZeroActor(spaces),
        spaces,
        seed=0,
        actor_seed=0,
        limit=5,
        options={"state": [3.0, 1.0]},
        before_step=look,
    )
    np.testing.assert_array_equal(episode.observations[0], np.array([3, 1], np.float32))
    np.testing.assert_allclose(np.array(states)[:, 1], episode.observations[:-1, 1])
    assert (episode.length, episode.terminated, episode.truncated) == (5, False, True)


class Broken(Chase):
    def __call__(self, observation: np.ndarray) -> np.ndarray:
        return np.full(self.size, np.nan)


@pytest.mark.parametrize(
    ("policy", "size", "what"),
    [(Broken, 3, "2 finite numbers; got array"), (ZeroActor, 4, r"shape \(4,\) .* got \(3,\)")],
)
def test_wrong_actions_and_observations_are_refused(policy, size: int, what: str):
    spaces = numbered_spaces(size, 2)
    with pytest.raises(ValueError, match=what):
        run_episode(Counting(), policy(spaces), spaces, seed=0, actor_seed=0, limit=9)


class Refused(gymnasium.Env):
    def __init__(self, observations: gymnasium.Space, actions: gymnasium.Space):
        self.observation_space, self.action_space = observations, actions


VECTOR = Box(-1, 1, (2,))


@pytest.mark.parametrize(
    ("observations", "actions", "what"),
    [
        (Text(3), VECTOR, r"observation space .* Box of numbers; got Text\(1, 3"),
        (Dict(a=Text(3)), VECTOR, r"TransformObservation can make vectors"),
        (VECTOR, Dict(a=Discrete(2)), r"action space .*Discrete\(2\).*TransformAction"),
        (Box(0, 255, (8, 8, 3), np.uint8), VECTOR, r"the shape \(8, 8, 3\), such as an image"),
        (VECTOR, Box(-1, 1, (2, 2)), r"action space .* vectors.*shape \(2, 2\)"),
        (VECTOR, Box(0, 3, (2,), np.int64), r"real numbers"),
        (VECTOR, Box(-1, np.inf, (1,)), r"actions of .* to have limits"),
    ],
)
def test_spaces_that_cannot_be_learnt_from_are_refused(observations, actions, what: str):
    with pytest.raises(ValueError, match=what):
        collect(lambda: Refused(observations, actions), steps=10, seed=0)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"environment": "Nowhere-v7"}, "Nowhere-v7 to be an environment that Gymnasium can make"),
        ({"environment": "no_such_module:A-v0"}, "no_such_module"),
        ({"steps": 0}, "steps to be at least 1; got 0"),
        ({"workers": -1}, "workers to be at least 0; got -1"),
        ({"seed": -1}, "seed to be at least 0; got -1"),
        ({"timeout": 0.0}, "timeout to be positive"),
        ({"steps": 10**12}, "at most 4294967296 bytes; got 24000000000000"),
        ({"environment": lambda: Counting(), "workers": 1}, "functions of a module"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict, what: str):
    with pytest.raises(ValueError, match=what):
        collect(**{"environment": Counting, "steps": 10, "seed": 0} | arguments)


@pytest.mark.parametrize("maker", [str, EnvFactory])
def test_a_module_in_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker
):
    name = f"lying_here_for_{maker.__name__}"
    (tmp_path / f"{name}.py").write_text(
        "import gymnasium\n"
        f"gymnasium.register('{name}-v0', 'worlds_for_tests:Counting', max_episode_steps=2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    data, _ = collect(maker(f"{name}:{name}-v0"), steps=4, seed=0)
    assert [episode.length for episode in data.episodes] == [2, 2]
