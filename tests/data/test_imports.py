"""Data from elsewhere: no transition across episodes, and mistakes in one sentence."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pyarrow
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pyarrow import parquet
from worlds_for_tests import Counting

from empowerment.data import (
    LogOptions,
    Trajectories,
    check,
    from_arrays,
    from_minari,
    from_vector,
    read_log,
    summarise,
)
from empowerment.data.readers.tables import read_csv


def assert_whole(data: Trajectories):
    """Each episode begins at its first observation, and its rows follow each other."""
    names = [float(episode.observations[0, 0]) for episode in data.episodes]
    assert len(set(names)) == len(names)
    for name, episode in zip(names, data.episodes, strict=True):
        np.testing.assert_array_equal(episode.observations[:, 0], name)
        np.testing.assert_array_equal(episode.observations[:, 1], np.arange(episode.length + 1))
        sums = np.concatenate([[0], np.cumsum(episode.actions.sum(axis=1))])
        np.testing.assert_allclose(episode.observations[:, 2], sums, rtol=1e-5, atol=1e-5)
        assert episode.rewards is not None
        np.testing.assert_allclose(episode.rewards, episode.actions.sum(axis=1), rtol=1e-5)


def record(mode: AutoresetMode, *, steps: int) -> tuple[dict[str, Any], set[float]]:
    """Step three environments; also give the names of the episodes that came to their end."""
    envs = SyncVectorEnv([Counting] * 3, autoreset_mode=mode)
    random = np.random.default_rng(0)
    seen, _ = envs.reset(seed=4)
    log: dict[str, list] = {name: [] for name in ("actions", "terminated", "truncated")}
    log |= {
        "rewards": [],
        "observations": [seen],
        "final_observations": [],
        "first_observations": [],
    }
    ended = set()
    for _ in range(steps):
        action = random.uniform([-1, 0.1], [1, 0.2], (3, 2))
        before = seen
        seen, rewards, terminated, truncated, infos = envs.step(action)
        is_over = terminated | truncated
        ended |= set(before[is_over, 0].tolist())
        log["actions"].append(action)
        log["rewards"].append(rewards)
        log["observations"].append(seen)
        log["terminated"].append(terminated)
        log["truncated"].append(truncated)
        log["final_observations"].append(infos.get("final_obs"))
        first = None
        if mode == AutoresetMode.DISABLED and is_over.any():
            first, _ = envs.reset(options={"reset_mask": is_over})
            seen = first
        log["first_observations"].append(first)
    return log, ended


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_no_transition_across_episodes_in_any_autoreset_mode(mode: AutoresetMode):
    log, ended = record(mode, steps=60)
    data = from_vector(**log, autoreset_mode=mode)
    assert_whole(data)
    whole = [each for each in data.episodes if each.observations[0, 0] in ended]
    assert len(whole) == len(ended) > 20
    assert len(data.episodes) - len(whole) <= 3  # those under way at the end of the log
    assert {each.terminated for each in whole} == {True, False}
    assert all(each.terminated != each.truncated for each in data.episodes)
    steps_of_resets = sum(each.length for each in data.episodes) - 180
    if mode != AutoresetMode.NEXT_STEP:
        assert steps_of_resets == 0
    else:
        assert -len(ended) <= steps_of_resets < -20


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        (AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED),
        (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP),
        (AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP),
    ],
)
def test_a_transition_across_episodes_would_be_seen(recorded: AutoresetMode, told: AutoresetMode):
    log, _ = record(recorded, steps=60)
    log["first_observations"] = log["observations"][1:]
    data = from_vector(**log, autoreset_mode=told)
    with pytest.raises(AssertionError):
        assert_whole(data)


def test_a_log_cut_at_any_time_is_still_whole():
    for steps in range(1, 15):
        log, _ = record(AutoresetMode.NEXT_STEP, steps=steps)
        assert_whole(from_vector(**log, autoreset_mode=AutoresetMode.NEXT_STEP))


def test_vector_logs_without_what_is_needed_are_refused():
    for mode, missing in (
        (AutoresetMode.SAME_STEP, "final_observations"),
        (AutoresetMode.DISABLED, "first_observations"),
    ):
        log, _ = record(mode, steps=20)
        del log[missing]
        with pytest.raises(ValueError, match=missing):
            from_vector(**log, autoreset_mode=mode)
    log, _ = record(AutoresetMode.NEXT_STEP, steps=5)
    with pytest.raises(ValueError, match=r"times \+ 1.*got \(5, 3, 3\)"):
        from_vector(
            **log | {"observations": log["observations"][1:]},
            autoreset_mode=AutoresetMode.NEXT_STEP,
        )


def test_arrays_are_cut_where_episodes_end():
    observations = np.array(
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0], [2, 1], [3, 0], [3, 1]]
    )
    actions = np.arange(9.0)[:, None]
    data = from_arrays(
        observations,
        actions,
        terminated=[0, 0, 1, 0, 0, 0, 0, 0, 0],
        truncated=[0, 0, 0, 0, 1, 0, 0, 0, 0],
        episode=list("aaabbbbcc"),
        times=[0, 1, 2, 3, 4, 5, 6, 9, 10.1],
    )
    assert [each.length for each in data.episodes] == [2, 1, 1, 1]
    assert [each.terminated for each in data.episodes] == [True, False, False, False]
    for index, each in enumerate(data.episodes):
        np.testing.assert_array_equal(each.observations[:, 0], index)
    np.testing.assert_array_equal(data.episodes[1].actions, [[3]])
    assert data.about["interval"] == 1
    assert data.about["gaps"] == 0


def test_a_jump_or_restart_of_the_clock_cuts_an_episode():
    times = np.array([0, 0.1, 0.2, 0.7, 0.8, 0.0, 0.1])
    rows = np.arange(7.0)[:, None]
    data = from_arrays(rows, rows, times=times)
    assert [each.observations[:, 0].tolist() for each in data.episodes] == [
        [0, 1, 2],
        [3, 4],
        [5, 6],
    ]
    assert data.about["interval"] == pytest.approx(0.1)
    assert "the clock jumps 1 times, and episodes were cut there" in summarise(data).notes


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"actions": np.zeros((3, 1))}, "actions to have a row for each of 4 observations; got 3"),
        ({"terminated": [0]}, "terminated to have a row for each of 4"),
        ({"observations": np.zeros(4)}, r"rows of numbers; got the shape \(4,\)"),
        ({"episode": [1, 2, 1, 1]}, "episode to be together; those of episode 1 are not"),
        ({"times": [3, 2, 1, 0]}, "an episode to have two rows or more"),
        ({"times": [0, 2, 1, 3]}, "times to increase; row 2 goes back to 1 s from 2 s"),
        ({"times": [0, 1, 1, 2]}, "times to increase; row 2 repeats 1 s"),
        ({"times": [0, 1e308, -1e308, 2]}, "times to be finite, below"),
        ({"times": [0, 1, np.nan, 2]}, r"times to be finite, below 1e\+12 s; row 2 has nan"),
        ({"observations": np.zeros((0, 2)), "actions": np.zeros((0, 1))}, "at least one row"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes: dict, what: str):
    given: dict[str, Any] = {"observations": np.zeros((4, 2)), "actions": np.zeros((4, 1))}
    with pytest.raises(ValueError, match=what):
        from_arrays(**given | changes)


TABLE = """\
run, t,angle,other,torque,done
a,0.0,0.1,x,1.0,0
a,0.1,0.2,y,-1.0,False
a,0.2,,z,,true

b,5.0,0.4,x,0.5,
b,5.1,0.5,x,,0
"""
COLUMNS: dict[str, Any] = {"observations": "angle", "actions": "torque", "episode": "run"}


def test_csv_with_named_columns(tmp_path: Path):
    path = tmp_path / "log.csv"
    path.write_text(TABLE)
    columns: dict[str, Any] = COLUMNS | {"terminated": "done", "time": "t"}
    data = read_log(path, LogOptions(**columns, limits="-2:2"))
    first, second = data.episodes
    np.testing.assert_allclose(first.observations[:, 0], [0.1, 0.2, np.nan])
    np.testing.assert_allclose(first.actions[:, 0], [1, -1])
    assert (first.terminated, second.terminated) == (True, False)
    np.testing.assert_allclose(second.observations[:, 0], [0.4, 0.5])
    assert data.spaces.observation_names == ("angle",)
    assert data.spaces.action_high == 2
    assert data.about["interval"] == pytest.approx(0.1)
    # A hole in the log is found; the actions of last rows are not needed.
    with pytest.raises(ValueError, match="angle has 1 numbers that are not finite") as caught:
        check(data)
    assert "torque" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "changes", "what"),
    [
        (TABLE, {"observations": "angel"}, "angel is missing from run, t, angle, other"),
        (TABLE, {"observations": "other"}, "to be a number; got 'x' in line 2"),
        (TABLE, {"terminated": "t"}, "flags .* to be 0 or 1; got '0.1' in line 3"),
        (TABLE, {"actions": ","}, "columns of observations and of actions"),
        (TABLE, {"limits": "1:2,1:2"}, "one pair LOW:HIGH of finite numbers, or 1 for"),
        ("angle,torque,run\n", {}, "at least one row"),
        ("", {}, "missing from an empty file"),
        ("angle,torque,run,run\n1,2,3,4\n", {}, "each column once; got run twice"),
        ("angle,torque,run\n1,\xff\x00,3", {}, "CSV file|to be a number"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path: Path, text: str, changes: dict, what: str):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=what):
        read_log(path, LogOptions(**COLUMNS | changes))


def test_a_table_that_is_too_large_is_refused(tmp_path: Path):
    (tmp_path / "log.csv").write_text(TABLE)
    with pytest.raises(ValueError, match="at most 10 bytes"):
        read_csv(str(tmp_path / "log.csv"), LogOptions(**COLUMNS), max_bytes=10)


def test_parquet_is_read_like_csv(tmp_path: Path):
    columns = {
        "x": [1.0, None, 3.0],
        "u": [1, 2, None],
        "run": ["a", "a", "a"],
        "done": [False, None, True],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text("x,u,run,done\n1,1,a,0\n,2,a,\n3,,a,1\n")
    names = LogOptions(observations="x", actions="u", episode="run", terminated="done")
    one, other = (read_log(tmp_path / f"log.{end}", names) for end in ("parquet", "csv"))
    np.testing.assert_array_equal(one.episodes[0].observations, other.episodes[0].observations)
    np.testing.assert_array_equal(one.episodes[0].actions, other.episodes[0].actions)
    assert one.episodes[0].terminated


class FakeMinari:
    """What we use of a Minari dataset: its episodes are not checked."""

    observation_space = Box(-np.inf, np.inf, (1,))
    action_space = Box(-1, 1, (1,))
    spec = SimpleNamespace(dataset_id="mine/data-v0", env_spec=gymnasium.spec("Counting-v0"))

    def __init__(self, *episodes: SimpleNamespace):
        self.episodes = episodes
        self.total_steps = sum(len(episode.actions) for episode in episodes)

    def iterate_episodes(self):
        return iter(self.episodes)


def minari_episode(index: int, observations: list[float], ends: list[bool]) -> SimpleNamespace:
    return SimpleNamespace(
        id=index,
        observations=np.array(observations)[:, None],
        actions=np.zeros((len(ends), 1)),
        rewards=np.ones(len(ends)),
        terminations=np.array(ends, bool),
        truncations=np.zeros(len(ends), bool),
    )


def test_minari_is_read_and_its_bad_episodes_are_refused():
    good = minari_episode(0, [0, 1, 2], [False, True])
    data = from_minari(FakeMinari(good, minari_episode(1, [5, 6], [False])))
    assert [each.terminated for each in data.episodes] == [True, False]
    assert data.about["environment"] == "Counting-v0"
    assert data.about["dataset"] == "mine/data-v0"
    np.testing.assert_array_equal(data.spaces.action_low, -1)
    hole = minari_episode(7, [5, np.nan, 6], [False, False])
    with pytest.raises(ValueError, match="not finite"):
        from_minari(FakeMinari(good, hole))
    assert len(from_minari(FakeMinari(good, hole), repair_mode="reject").episodes) == 1
    for bad in (
        minari_episode(7, [0, 1], [False, True]),
        minari_episode(7, [0, 1, 2], [True, False]),
    ):
        with pytest.raises(ValueError, match="Expected episode 7 of mine/data-v0"):
            from_minari(FakeMinari(good, bad))
