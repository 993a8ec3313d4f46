"""Trajectories on disk and in parts; nothing is lost, nothing wrong gets in."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from empowerment.data import Episode, Spaces, Trajectories, join

SPACES = Spaces(
    np.array([-np.inf, -8]),
    np.array([np.inf, 8]),
    np.array([-2]),
    np.array([2]),
    ("a", "b"),
    ("u",),
)


def episode(length: int, *, tag: float = 0.0, terminated: bool = False) -> Episode:
    rows = np.arange(length + 1)[:, None] + np.array([0.0, tag])
    return Episode(rows, rows[:-1, :1] / 100, terminated=terminated, truncated=not terminated)


def made(*lengths: int) -> Trajectories:
    episodes = [episode(n, tag=i, terminated=i % 2 == 1) for i, n in enumerate(lengths)]
    return Trajectories(tuple(episodes), SPACES, {"environment": "Mine-v0", "seed": 3})


def assert_same(left: Trajectories, right: Trajectories):
    assert left.spaces == right.spaces
    assert left.about == right.about
    assert len(left.episodes) == len(right.episodes)
    for one, other in zip(left.episodes, right.episodes, strict=True):
        np.testing.assert_array_equal(one.observations, other.observations, strict=True)
        np.testing.assert_array_equal(one.actions, other.actions, strict=True)
        assert (one.terminated, one.truncated) == (other.terminated, other.truncated)
        assert (one.rewards is None) == (other.rewards is None)
        if one.rewards is not None:
            np.testing.assert_array_equal(one.rewards, other.rewards, strict=True)


def paid(data: Trajectories) -> Trajectories:
    """Add rewards that say the episode and the time."""
    episodes = [
        replace(each, rewards=100 * index + np.arange(each.length))
        for index, each in enumerate(data.episodes)
    ]
    return replace(data, episodes=tuple(episodes))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_what_is_saved_is_loaded(tmp_path_factory, lengths: list[int]):
    path = tmp_path_factory.mktemp("saved") / "data.npz"
    before = made(*lengths)
    before.save(path)
    assert_same(Trajectories.load(path), before)
    first = path.read_bytes()
    before.save(path)
    assert path.read_bytes() == first
    with_rewards = paid(before)
    assert with_rewards.has_rewards
    assert not before.has_rewards
    with_rewards.save(path)
    assert_same(Trajectories.load(path), with_rewards)


def test_rewards_go_with_their_actions_or_are_left_out():
    data, bare = paid(made(5, 3)), made(4)
    np.testing.assert_array_equal(data.episodes[1].part(1, 3).rewards, [101, 102])
    assert data.split(0.3, seed=0)[1].has_rewards
    assert join(data, data).has_rewards
    assert not join(data, bare).has_rewards
    with pytest.raises(ValueError, match="to have rewards, or none"):
        Trajectories((*data.episodes, *bare.episodes), SPACES, {})
    with pytest.raises(ValueError, match="5 actions to have as many rewards"):
        replace(data.episodes[0], rewards=np.zeros(4))


def test_numpy_can_read_the_file_and_values_that_are_not_finite_stay(tmp_path: Path):
    rows = np.array([[0, np.nan], [np.inf, 1e300]])
    Trajectories(
        (Episode(rows, np.ones((1, 1)), terminated=False, truncated=False),), SPACES, {}
    ).save(tmp_path / "data.npz")
    with np.load(tmp_path / "data.npz") as file:
        np.testing.assert_array_equal(file["observations"], [[0, np.nan], [np.inf, np.inf]])
        assert json.loads(file["description"].tobytes())["spaces"]["observation_low"] == [None, -8]
    assert Trajectories.load(tmp_path / "data.npz").num_transitions == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda data: data[: len(data) // 2], "zip"),
        (lambda data: b"a,b,u\n1,2,3\n", "zip"),
        (lambda data: data.replace(np.float32(4).tobytes(), np.float32(5).tobytes()), "CRC"),
        (lambda data: rezip(data, {"more": np.zeros(3)}), "more.npy"),
        (lambda data: rezip(data, {"actions": np.zeros((7, 1))}), "float64"),
        (lambda data: rezip(data, {"actions": np.array([None])}), "object"),
        (lambda data: rezip(data, {"lengths": np.array([4, 4])}), "add up"),
        (lambda data: rezip(data, {"lengths": np.array([-1, 8])}), "add up"),
        (lambda data: rezip(data, {"lengths": np.array([2**62, 2**62, 2**63 - 1])}), "add up"),
        (lambda data: rezip(data, {"rewards": np.zeros(6, np.float32)}), "not as many as actions"),
        (lambda data: rezip(data, {"rewards": np.zeros(7)}), "rewards of type float64"),
        (lambda data: rezip(data, {"description": np.frombuffer(b"{}", np.uint8)}), "format"),
        (lambda data: rezip(data, {"description": np.frombuffer(b"[1]", np.uint8)}), "array"),
    ],
)
def test_damaged_and_foreign_files_are_refused(tmp_path: Path, change, what: str):
    path = tmp_path / "data.npz"
    made(4, 3).save(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"Expected .*data\.npz to be a file of .*{what}"):
        Trajectories.load(path)


def rezip(data: bytes, changed: dict[str, np.ndarray]) -> bytes:
    """Change arrays of a file."""
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file}
    buffer = io.BytesIO()
    np.savez(buffer, **{**arrays, **changed})
    return buffer.getvalue()


def test_sizes_are_checked_before_memory_is_taken(tmp_path: Path):
    path = tmp_path / "data.npz"
    made(40).save(path)
    with pytest.raises(ValueError, match="more than the limit of 400"):
        Trajectories.load(path, max_bytes=400)
    # A header that promises what the file does not have: 4 exabytes of actions.
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    with zipfile.ZipFile(path, "w") as file:
        for name in arrays:
            with file.open(f"{name}.npy", "w") as entry:
                if name == "actions":
                    header = {"descr": "<f4", "fortran_order": False, "shape": (2**60, 1)}
                    np.lib.format.write_array_header_1_0(entry, header)
                else:
                    np.lib.format.write_array(entry, arrays[name])
    with pytest.raises(ValueError, match="actions with a header that does not fit"):
        Trajectories.load(path)


@given(
    lengths=st.lists(st.integers(1, 9), min_size=2, max_size=12),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_split_keeps_every_episode_whole_and_once(lengths, fraction: float, seed: int):
    whole = made(*lengths)
    kept, held = whole.split(fraction, seed=seed)
    tags = [each.observations[0, 1] for part in (kept, held) for each in part.episodes]
    assert sorted(tags) == list(range(len(lengths)))
    # No more than one episode beyond what was asked for.
    excess = held.num_transitions - fraction * whole.num_transitions
    assert excess <= max(lengths)
    assert_same(whole.split(fraction, seed=seed)[1], held)


def test_the_tail_of_a_single_episode_is_held_out():
    kept, held = Trajectories((episode(10, terminated=True),), SPACES, {}).split(0.2, seed=0)
    (head,), (tail,) = kept.episodes, held.episodes
    assert (head.length, tail.length) == (8, 2)
    assert (head.terminated, head.truncated) == (False, True)
    assert (tail.terminated, tail.truncated) == (True, False)
    np.testing.assert_array_equal(tail.observations[:, 0], [8, 9, 10])
    with pytest.raises(ValueError, match="two episodes or two transitions"):
        made(1).split(0.5, seed=0)
    with pytest.raises(ValueError, match="above 0 and below 1; got 1"):
        made(1).split(1.0, seed=0)


def test_joined_data_has_all_episodes_and_what_is_known_of_each():
    other = Trajectories((episode(2),), SPACES, {"environment": "Mine-v0", "seed": 4})
    both = join(made(3, 1), other)
    assert [each.length for each in both.episodes] == [3, 1, 2]
    assert both.about["environment"] == "Mine-v0"
    assert "seed" not in both.about
    assert [part["seed"] for part in both.about["parts"]] == [3, 4]
    one = np.ones(1)
    narrow = Spaces(-np.ones(2), np.ones(2), -one, one, ("a", "b"), ("u",))
    with pytest.raises(ValueError, match="same spaces"):
        join(other, Trajectories((episode(2),), narrow, {}))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"one observation more than actions; got 3 .* 3 actions"):
        Episode(np.zeros((3, 2)), np.zeros((3, 1)), terminated=False, truncated=False)
    with pytest.raises(ValueError, match=r"rows of numbers; got the shapes \(3,\) and \(2, 1\)"):
        Episode(np.zeros(3), np.zeros((2, 1)), terminated=False, truncated=False)
    short = Episode(np.zeros((3, 1)), np.zeros((2, 1)), terminated=False, truncated=False)
    with pytest.raises(ValueError, match="episode 1 has 1 and 1"):
        Trajectories((episode(1), short), SPACES, {})
    with pytest.raises(ValueError, match="at least one episode"):
        Trajectories((), SPACES, {})
    for low, high in ((1.0, 0.0), (np.nan, 0.0), (np.inf, np.inf)):
        with pytest.raises(ValueError, match="at most action_high"):
            Spaces(np.zeros(1), np.ones(1), np.array([low]), np.array([high]), ("a",), ("u",))
    with pytest.raises(ValueError, match="different words"):
        Spaces(np.zeros(2), np.ones(2), np.zeros(1), np.ones(1), ("a", "a"), ("u",))
    with pytest.raises(ValueError, match="each of 1 names"):
        Spaces(np.zeros(2), np.ones(1), np.zeros(1), np.ones(1), ("a",), ("u",))


def test_the_largest_number_is_no_limit():
    top = np.array([np.finfo(np.float32).max])
    spaces = Spaces(-top, top, -np.array([1e300]), np.ones(1), ("a",), ("u",))
    assert spaces.observation_low == -np.inf
    assert spaces.observation_high == np.inf
    assert spaces.action_low == -np.inf
