"""Windows to learn from: of one episode each, past death but never past a cut."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from empowerment.data import Episode, Spaces, Trajectories, windows

SPACES = Spaces(
    -np.full(2, np.inf),
    np.full(2, np.inf),
    np.array([-2]),
    np.array([3]),
    ("episode", "time"),
    ("u",),
)


def made(*episodes: tuple[int, bool]) -> Trajectories:
    """Episodes whose observations say their number and time, and actions the time."""
    parts = []
    for index, (length, terminated) in enumerate(episodes):
        rows = np.stack([np.full(length + 1, index), np.arange(length + 1)], axis=1)
        parts.append(
            Episode(
                rows,
                rows[:-1, 1:] / 100,
                terminated=terminated,
                truncated=not terminated,
                rewards=10 + rows[:-1, 1],
            )
        )
    return Trajectories(tuple(parts), SPACES, {})


@given(
    episodes=st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1, max_size=6),
    length=st.integers(2, 5),
)
def test_windows_are_of_one_episode_and_all_are_there(episodes, length: int):
    data = made(*episodes)
    expected = set()
    for index, (steps, terminated) in enumerate(episodes):
        last = steps if terminated else steps - length + 1
        expected |= {(index, time) for time in range(last + 1)}
    if not expected:
        with pytest.raises(ValueError, match=f"at least {length} observations"):
            windows(data, length, seed=0)
        return
    found = windows(data, length, seed=0)
    assert found.skipped == sum(not end and steps < length - 1 for steps, end in episodes)
    assert len(found.starts) == len(expected)
    for start in found.starts:
        seen = found.observations[start : start + length]
        done = found.actions[start : start + length - 1, 0]
        index, time = seen[0].astype(int).tolist()
        expected.remove((index, time))
        steps = episodes[index][0]
        np.testing.assert_array_equal(seen[:, 0], index)
        np.testing.assert_array_equal(seen[:, 1], np.minimum(time + np.arange(length), steps))
        np.testing.assert_array_equal(
            found.recorded[start : start + length], time + np.arange(length) <= steps
        )
        alive = time + np.arange(length - 1) < steps
        assert found.rewards is not None
        paid = found.rewards[start : start + length - 1]
        np.testing.assert_array_equal(paid[alive], 10 + (time + np.arange(length - 1))[alive])
        np.testing.assert_array_equal(paid[~alive], 0)
        np.testing.assert_allclose(done[alive], (time + np.arange(length - 1))[alive] / 100)
    assert not expected


def test_actions_after_death_are_uniform_within_their_limits():
    data = made(*[(1, True)] * 200)
    found = windows(data, 6, seed=1)
    drawn = found.actions.reshape(200, 7, 1)[:, 1:6].ravel()
    assert drawn.min() >= -2
    assert drawn.max() <= 3
    # Mean and variance of 1000 uniform numbers, within five standard errors.
    assert abs(drawn.mean() - 0.5) < 5 * 5 / np.sqrt(12 * 1000)
    assert abs(drawn.var() - 25 / 12) < 5 * np.sqrt(25**2 / 180 / 1000)
    again, other = (windows(data, 6, seed=seed).actions for seed in (1, 2))
    np.testing.assert_array_equal(again, found.actions)
    assert not np.array_equal(other, found.actions)


def test_without_limits_the_actions_of_the_data_are_the_limits():
    no_limit = np.array([np.inf])
    endless = Spaces(-no_limit, no_limit, -no_limit, no_limit, ("x",), ("u",))
    episode = Episode(
        np.zeros((3, 1)), np.array([[-0.5], [0.25]]), terminated=True, truncated=False
    )
    drawn = windows(Trajectories((episode,), endless, {}), 200, seed=0).actions[2:-1]
    assert -0.5 <= drawn.min() < -0.4
    assert 0.2 < drawn.max() <= 0.25


def test_bad_data_is_not_cut_in_silence():
    rows = np.zeros((3, 2))
    rows[1, 0] = np.nan
    bad = Trajectories(
        (Episode(rows, np.zeros((2, 1)), terminated=False, truncated=True),), SPACES, {}
    )
    with pytest.raises(ValueError, match="finite; episode 0"):
        windows(bad, 2, seed=0)
    with pytest.raises(ValueError, match="two or more observations; got 1"):
        windows(made((3, True)), 1, seed=0)
