"""Signals with clocks of their own, resampled to one rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Float

from empowerment.files import MAX_ROWS

_SILENCE = 3.5
"""Intervals of a signal without a sample that count as a gap."""

_ROUNDING = 1e-3
"""Fraction of a row that counts as rounding of times: seconds since 1970 in double precision are
rounded to a quarter of a microsecond."""

_LATEST = 1e12
"""Seconds beyond which double precision does not tell a tenth of a millisecond."""

Fill = Literal["interpolate", "last"]
"""interpolate: on the line between two samples. last: the last sample, as a controller sees it."""


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """A signal: numbers at increasing times.

    Attributes:
        name: What it is, for error messages.
        times: Seconds.
        values: A row for each time.
    """

    name: str
    times: np.ndarray
    values: np.ndarray

    def __post_init__(self):
        """Check that the times increase."""
        check_increase(self.times, f"the times of {self.name}")
        if len(self.times) != len(self.values):
            raise ValueError(
                f"Expected {self.name} to have a value for each of {len(self.times)} times; got "
                f"{len(self.values)}."
            )

    def at(self, times: np.ndarray, fill: Fill, *, rounding: float) -> np.ndarray:
        """Return the values at other times, within those of the signal.

        Args:
            times: Seconds.
            fill: How values between samples are made.
            rounding: Seconds by which a sample that is met may seem to be later.
        """
        before = np.searchsorted(self.times, times + rounding, side="right") - 1
        before = np.clip(before, 0, len(self.times) - 1)
        low, start = self.values[before], self.times[before]
        if fill == "last":
            return low
        after = np.minimum(before + 1, len(self.times) - 1)
        width = np.maximum(self.times[after] - start, np.finfo(float).tiny)
        share = np.clip((times - start) / width, 0, 1)[:, None]
        # A sample that is met does not depend on the next, which may be missing.
        is_met = (times - start <= rounding)[:, None]
        return np.where(is_met, low, low + share * (self.values[after] - low))

    def mean(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return the means of the held values from `starts` to `stops`."""
        widths = np.diff(self.times)
        sums = np.concatenate(
            [np.zeros((1, self.values.shape[1])), np.cumsum(self.values[:-1] * widths[:, None], 0)]
        )

        def integral(times: np.ndarray) -> np.ndarray:
            before = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, None)
            return sums[before] + self.values[before] * (times - self.times[before])[:, None]

        return (integral(stops) - integral(starts)) / (stops - starts)[:, None]


def check_usable(times: np.ndarray, what: str) -> None:
    """Raise a `ValueError` if times are not finite, or too large to be told apart."""
    usable = np.abs(times) < _LATEST
    if not usable.all():
        row = int(np.argmin(usable))
        raise ValueError(
            f"Expected {what} to be finite, below {_LATEST:g} s; row {row} has {times[row]:g}."
        )


def check_increase(times: np.ndarray, what: str, within: np.ndarray | None = None) -> None:
    """Raise a `ValueError` if times repeat or go back, or cannot be used at all.

    Args:
        times: Seconds.
        what: What they are, for the error.
        within: For each time but the last whether the next belongs to it; all do by default.
    """
    check_usable(times, what)
    wrong = np.diff(times) <= 0
    if within is not None:
        wrong &= within
    if wrong.any():
        row = int(np.argmax(wrong)) + 1
        before, now = float(times[row - 1]), float(times[row])
        how = f"goes back to {now:.9g} s from" if now < before else "repeats"
        raise ValueError(
            f"Expected {what} to increase; row {row} {how} {before:.9g} s. Sort the rows, drop "
            "those that are there twice, or name the column that tells episodes apart."
        )


@final
@dataclass(frozen=True, eq=False)
class Resampled:
    """Consecutive rows at a fixed rate.

    Attributes:
        observations: $T + 1$ rows.
        actions: $T$ rows; each acts from the observation of its row to the next.
        start: Time of the first row in seconds.
        reaches_end: Whether it ends where the signals do.
    """

    observations: Float[np.ndarray, "rows observation"]
    actions: Float[np.ndarray, "steps action"]
    start: float
    reaches_end: bool


def resample(
    observations: Sequence[Stream],
    actions: Sequence[Stream],
    *,
    rate: float,
    delay: float = 0.0,
    fill: Fill = "interpolate",
    gap: float | None = None,
    ends: bool = False,
) -> tuple[list[Resampled], int]:
    """Resample signals to one clock, $t_k = t_0 + k / f$.

    The action of a row is the one in force halfway to the next row, $u(t_k + 1 / 2f - d)$: each is
    held until the next, and acts a delay $d$ after it was logged.

    Args:
        observations: Signals that together are the observation.
        actions: Signals that together are the action.
        rate: Rows a second, $f$.
        delay: Seconds, $d$.
        fill: How observations between samples are made.
        gap: Seconds without a sample of a signal that cut an episode; by default 3.5 of its
            median intervals, and at least one and a half of the new ones.
        ends: Whether the last observation is a terminal state, which stays as it is.

    Returns:
        The pieces between gaps that have a transition, and the number of gaps.
    """
    pieces, gaps = [], 0
    _check_rows(observations[0].times, rate)
    spans = _spans(observations, actions, rate=rate, delay=delay, gap=gap)
    for index, (start, stop) in enumerate(spans):
        is_last = index == len(spans) - 1
        gaps += not is_last
        later = observations[0].times[observations[0].times >= start]
        start = min(start if not len(later) else float(later[0]), stop)
        steps = (stop - start) * rate
        # Rounding must not lose the last row. What comes to an end stays as it is.
        count = int(np.ceil(steps - _ROUNDING) if ends and is_last else np.floor(steps + _ROUNDING))
        if count < 1:
            continue
        times = np.minimum(start + np.arange(count + 1) / rate, stop)
        held = times[:-1] + 0.5 / rate - delay
        pieces.append(
            Resampled(
                np.concatenate(
                    [each.at(times, fill, rounding=_ROUNDING / rate) for each in observations],
                    axis=1,
                ),
                np.concatenate(
                    [each.at(held, "last", rounding=_ROUNDING / rate) for each in actions], axis=1
                ),
                start=start,
                reaches_end=is_last,
            )
        )
    return pieces, gaps


def _check_rows(times: np.ndarray, rate: float) -> None:
    """Raise a `ValueError` if there would be too many rows."""
    rows = math.ceil(float(times[-1] - times[0]) * rate)
    if rows > MAX_ROWS:
        raise ValueError(f"Expected at most {MAX_ROWS} rows at {rate:g} Hz; got {rows}.")


def _spans(
    observations: Sequence[Stream],
    actions: Sequence[Stream],
    *,
    rate: float,
    delay: float,
    gap: float | None,
) -> list[tuple[float, float]]:
    """Return the beginnings and ends of the spans of time in which no signal is silent."""
    delayed = [each.times + delay for each in actions]
    seen = [each.times for each in observations]
    start = float(max(times[0] for times in [*seen, *delayed]))
    stop = float(min(times[-1] for times in seen))  # The last action is held.
    holes = []
    for times in [*seen, *delayed]:
        if len(times) > 1:
            widths = np.diff(times)
            most = max(_SILENCE * float(np.median(widths)), 1.5 / rate) if gap is None else gap
            wide = np.flatnonzero(widths > most)
            holes += zip(times[wide].tolist(), times[wide + 1].tolist(), strict=True)
    spans = []
    for left, right in sorted(holes):
        if left > start:
            spans.append((start, min(left, stop)))
        start = max(start, right)
    spans.append((start, stop))
    return [(left, right) for left, right in spans if right > left]
