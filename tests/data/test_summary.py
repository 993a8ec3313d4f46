"""Nothing bad passes in silence, and repair leaves all that is good."""

import inspect
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from empowerment.data import Episode, RepairMode, Spaces, Trajectories, check, repair, summarise

SPACES = Spaces(
    np.array([-5.0, -np.inf]),
    np.array([5.0, np.inf]),
    np.array([-1.0]),
    np.array([1.0]),
    ("position", "time"),
    ("push",),
)


def episode(length: int, *, terminated: bool = False) -> Episode:
    rows = np.stack([np.sin(np.arange(length + 1)), np.arange(length + 1)], axis=1)
    return Episode(rows, np.cos(np.arange(length))[:, None], terminated, not terminated)


def made(*episodes: Episode, about: dict | None = None) -> Trajectories:
    return Trajectories(tuple(episodes), SPACES, about or {"interval": 0.1})


def spoilt(length: int, *, observations: tuple[int, ...] = (), actions: tuple[int, ...] = ()):
    """An episode with NaN in rows of observations, and actions that are too large."""
    good = episode(length, terminated=True)
    seen, done = good.observations.copy(), good.actions.copy()
    seen[list(observations), 0] = np.nan
    done[list(actions)] = 1.5
    return Episode(seen, done, terminated=True, truncated=False)


def test_good_data_have_no_problems_and_are_described():
    data = made(episode(9), episode(4, terminated=True), episode(6))
    check(data)
    found = summarise(data)
    assert (found.num_episodes, found.num_transitions, found.num_terminated) == (3, 19, 1)
    assert (found.shortest, found.median, found.longest) == (4, 6, 9)
    assert found.interval == 0.1
    assert found.problems == ()
    assert found.notes == ()
    position, time, push = found.columns
    values = np.concatenate([each.observations[:, 0] for each in data.episodes])
    np.testing.assert_allclose(
        [position.least, position.most, position.mean, position.scale],
        [values.min(), values.max(), values.mean(), values.std()],
        rtol=1e-6,
    )
    assert (time.name, time.high, push.kind) == ("time", np.inf, "action")
    words = json.dumps(found.to_json(), allow_nan=False)
    assert json.loads(words)["columns"][1]["high"] is None


def test_every_problem_is_named_and_where_it_is():
    bad = made(episode(3), spoilt(5, observations=(2, 4), actions=(1,)), episode(0))
    with pytest.raises(ValueError, match="fit to learn from") as caught:
        check(bad)
    said = str(caught.value)
    assert (
        "observation position has 2 numbers that are not finite, the first in episode 1, row 2"
        in said
    )
    assert "action push has 1 numbers beyond its limits -1 and 1" in said
    assert "1 episodes have no transition" in said
    assert "--repair" in said
    assert len(said.splitlines()) == 1


def test_missing_and_constant_columns_and_what_is_worth_knowing():
    seen = np.stack([np.full(5, 7.0), np.full(5, np.inf)], axis=1)
    data = made(
        Episode(seen, np.zeros((4, 1)), terminated=False, truncated=True), about={"gaps": 2}
    )
    found = summarise(data)
    assert found.problems == ("observation time is missing: none of its numbers is finite",)
    assert found.notes == (
        "observation position is always 7",
        "action push is always 0",
        "observation position has 5 numbers beyond -5 and 5",
        "the interval between observations is not known",
        "the clock jumps 2 times, and episodes were cut there",
    )
    with pytest.raises(ValueError, match=r"something to be left .* all 4 transitions are bad"):
        repair(data, "split")


def test_rounding_is_not_beyond_the_limits():
    just = Episode(np.zeros((2, 2)), np.array([[1 + 1e-6]]), terminated=False, truncated=True)
    check(made(just))


@given(
    data=st.data(),
    length=st.integers(1, 10),
    how=st.sampled_from(["reject", "trim", "split"]),
)
def test_repair_keeps_the_good_transitions_and_no_other(data, length: int, how: RepairMode):
    observations = tuple(data.draw(st.sets(st.integers(0, length), max_size=3)))
    actions = tuple(data.draw(st.sets(st.integers(0, length - 1), max_size=3)))
    whole = made(spoilt(length, observations=observations, actions=actions), episode(2))
    good = [
        t not in observations and t + 1 not in observations and t not in actions
        for t in range(length)
    ]
    first_bad = good.index(False) if False in good else length
    expected = {
        "reject": list(range(length)) if all(good) else [],
        "trim": list(range(first_bad)),
        "split": [t for t in range(length) if good[t]],
    }[how]
    result = repair(whole, how)
    check(result)
    *parts, last = result.episodes
    np.testing.assert_array_equal(last.actions, episode(2).actions)
    kept = [int(row[1]) for part in parts for row in part.observations[:-1]]
    assert kept == expected
    for part in parts:
        np.testing.assert_array_equal(np.diff(part.observations[:, 1]), 1)
        np.testing.assert_allclose(
            part.actions[:, 0], np.cos(part.observations[:-1, 1]), rtol=1e-5, atol=1e-6
        )
        is_end = part.observations[-1, 1] == length
        assert (part.terminated, part.truncated) == (is_end, not is_end)
    assert result.about["repaired"] == [
        {"how": how, "transitions_dropped": length - len(expected), "episodes_before": 2}
    ]


def test_an_unknown_repair_is_refused():
    with pytest.raises(ValueError, match="one of reject, trim, split; got 'guess'"):
        inspect.unwrap(repair)(made(episode(1)), "guess")
