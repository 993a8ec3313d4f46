"""Real clocks: resampling against signals whose values are known, and delays against simulation."""

from typing import Any

import numpy as np
import pytest

from empowerment.data import LogOptions, Trajectories, read_log, summarise
from empowerment.data.clocks import Stream, resample
from empowerment.data.delays import estimate_delay


def stream(times: Any, values: Any) -> Stream:
    return Stream("a signal", np.asarray(times, float), np.asarray(values, float)[:, None])


def test_observations_are_interpolated_and_actions_held():
    times = np.sort(np.random.default_rng(0).uniform(0, 4, 200))
    seen = stream(times, 3 * times - 1)  # A line is interpolated without an error.
    done = stream([-1, 1.02, 2.5], [0, 1, 2])
    (piece,), gaps = resample([seen], [done], rate=10.0, gap=4.0)
    clock = piece.start + np.arange(len(piece.observations)) / 10
    np.testing.assert_allclose(piece.observations[:, 0], 3 * clock - 1, atol=1e-4)
    middle = clock[:-1] + 0.05
    np.testing.assert_array_equal(piece.actions[:, 0], (middle >= 1.02) * 1.0 + (middle >= 2.5))
    assert gaps == 0
    assert clock[-1] <= times[-1] < clock[-1] + 0.1


def test_the_last_value_is_what_a_controller_would_have_seen():
    seen = stream([0, 0.4, 1.1, 2.0, 3.3], [0, 1, 2, 3, 4])
    (piece,), _ = resample([seen], [stream([0], [0])], rate=1.0, gap=9.0, fill="last")
    assert piece.observations[:, 0].tolist() == [0, 1, 3, 3]


def test_rows_at_their_own_rate_stay_as_they_are():
    start = 1.7e9  # Seconds since 1970, of which double precision holds a tenth of a microsecond.
    times = start + np.arange(1000) / 30
    values = np.random.default_rng(1).normal(size=1000)
    (piece,), _ = resample([stream(times, values)], [stream(times, -values)], rate=30.0)
    np.testing.assert_allclose(piece.observations[:, 0], values, atol=1e-4)
    np.testing.assert_array_equal(piece.actions[:, 0], -values[:-1])


def test_a_delay_moves_actions_back():
    times = np.arange(50) / 10
    seen, done = stream(times, times), stream(times, np.arange(50))
    (piece,), _ = resample([seen], [done], rate=10.0, delay=0.2)
    first = round(piece.start * 10)
    assert first == 2
    np.testing.assert_array_equal(piece.actions[:, 0], np.arange(first, 49) - 2)


def test_gaps_of_any_signal_cut_and_no_row_is_in_one():
    times = np.concatenate([np.arange(20), np.arange(25, 40), np.arange(60, 62)]) / 10
    acted = np.concatenate([np.arange(0, 30), np.arange(36, 62)]) / 10
    pieces, gaps = resample([stream(times, times)], [stream(acted, acted)], rate=10.0, gap=0.35)
    spans = [(p.start, p.start + (len(p.observations) - 1) / 10) for p in pieces]
    np.testing.assert_allclose(spans, [(0, 1.9), (2.5, 2.9), (3.6, 3.9), (6.0, 6.1)], atol=1e-6)
    assert gaps == 3
    for piece in pieces:
        np.testing.assert_allclose(np.diff(piece.observations[:, 0]), 0.1, atol=1e-5)
    assert [piece.reaches_end for piece in pieces] == [False, False, False, True]


def test_a_terminal_state_is_kept_at_any_rate():
    seen = stream([0, 0.1, 0.2, 0.3, 0.35], [0, 0, 0, 0, 7])
    (piece,), _ = resample([seen], [stream([0], [0])], rate=10.0, ends=True)
    assert piece.observations[-1] == 7
    assert len(piece.actions) == 4
    (piece,), _ = resample([seen], [stream([0], [0])], rate=10.0)
    assert len(piece.actions) == 3


@pytest.mark.parametrize(
    ("times", "what"),
    [
        ([0, 1, 1], r"row 2 repeats 1 s\. Sort the rows"),
        ([0, 2, 1], "row 2 goes back to 1 s from 2 s"),
        ([0, np.inf, 1], r"to be finite, below 1e\+12 s; row 1 has inf"),
    ],
)
def test_clocks_that_do_not_increase_are_refused(times: list[float], what: str):
    with pytest.raises(ValueError, match=what):
        stream(times, [0, 0, 0])


def robot(
    delay: float, *, noise: float = 0.0, has_velocity: bool = True, acts: bool = True
) -> tuple[Stream, Stream]:
    """Simulate a mass on a spring in steps of 1 ms; a controller acts every 20 ms, with dither."""
    random, step = np.random.default_rng(3), 1e-3
    position = velocity = force = 0.0
    forces, seen, done = [], [], []
    for index in range(12_000):
        time = index * step
        if index % 10 == 0:
            values = np.array([position, velocity]) + noise * random.normal(size=2)
            seen.append((time, values))
        if index % 20 == 5:
            force = -5 * seen[-1][1][0] - seen[-1][1][1] + random.normal()
            done.append((time, force))
        forces.append(force)
        arrived = index - round(delay / step)
        pushed = forces[arrived] if arrived >= 0 and acts else 0.0
        pushed += 0.0 if acts else random.normal()
        velocity += step * (pushed - 0.5 * velocity - 2 * position)
        position += step * velocity
    values = np.stack([each for _, each in seen])
    observed = values if has_velocity else values[:, :1]
    return (
        Stream("observations", np.array([time for time, _ in seen]), observed),
        Stream("actions", np.array([t for t, _ in done]), np.array([[f] for _, f in done])),
    )


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.037])
@pytest.mark.parametrize("changes", [{}, {"noise": 0.01}, {"has_velocity": False}])
def test_a_delay_is_found_though_a_controller_reacts(delay: float, changes: dict[str, Any]):
    seen, done = robot(delay, **changes)
    found = estimate_delay([([seen], [done])])
    assert abs(found.seconds - delay) <= found.resolution + 1e-9
    assert found.resolution == pytest.approx(0.005)


def test_actions_without_an_effect_have_no_delay():
    seen, done = robot(0.0, acts=False)
    with pytest.raises(ValueError, match=r"an effect on observations within 0\.1 s"):
        estimate_delay([([seen], [done])])


def test_too_short_a_log_has_no_delay():
    seen, done = robot(0.0)
    short = Stream("observations", seen.times[:9], seen.values[:9])
    with pytest.raises(ValueError, match="rows or more to estimate the delay"):
        estimate_delay([([short], [done])])


def test_the_delay_of_a_table_is_reported(tmp_path):
    seen, done = robot(0.03)
    held = done.values[np.clip(np.searchsorted(done.times, seen.times, "right") - 1, 0, None), 0]
    rows = np.column_stack([seen.times, seen.values, held])
    path = tmp_path / "log.csv"
    np.savetxt(path, rows, delimiter=",", header="t,x,v,u", comments="")
    options = {"observations": "x,v", "actions": "u", "time": "t", "rate": 50.0}
    data = read_log(path, LogOptions(**options, delay="auto"))
    # The row of an observation has the action before it: it is later by up to a row of the log.
    assert data.about["delay"] == pytest.approx(0.03, abs=0.011)
    assert data.about["interval"] == pytest.approx(0.02)
    note = next(note for note in summarise(data).notes if "after they were logged" in note)
    assert "estimated, give or take 0.005 s" in note
    data.save(tmp_path / "log.npz")
    assert Trajectories.load(tmp_path / "log.npz").about == data.about
    told = read_log(path, LogOptions(**options, delay="0.03"))
    assert "actions were moved by a delay of 0.03 s" in summarise(told).notes
