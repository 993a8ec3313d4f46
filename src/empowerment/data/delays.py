"""The delay after which an action begins to act, estimated from a log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from empowerment.data.clocks import Stream, resample

_LONGEST = 10
"""Longest delay that is tried, in intervals of the observations."""

_FINENESS = 4
"""Delays that are tried in each interval."""

_PAST = 6
"""Observations that the next one is predicted from. A controller acts upon past ones, and where
they are noisy its action must not stand for those that are left out."""

_MOST_ROWS = 20_000
"""Rows that are used at most; more do not make the estimate finer."""

_ERROR = 1e-3
"""Probability of an estimate where actions have no effect."""

_LEAST_SHARE = 0.1
"""Share of what past observations do not tell that actions must explain. What explains less may be
a controller's reaction to observations before those."""

_SMALLEST = 1e-9
"""Relative size of what is rounding."""


@final
@dataclass(frozen=True)
class Delay:
    """An estimated delay.

    Attributes:
        seconds: The delay.
        resolution: How fine it is known, in seconds.
        evidence: Nats by which actions with this delay explain observations better than none.
    """

    seconds: float
    resolution: float
    evidence: float


def estimate_delay(
    episodes: Sequence[tuple[Sequence[Stream], Sequence[Stream]]], *, gap: float | None = None
) -> Delay:
    r"""Estimate after which delay actions act upon observations.

    A line $o_{k+1} \approx \sum_j A_j o_{k-j} + B \bar u_k(d) + c$ is fitted for every delay $d$
    on a grid, where $\bar u_k(d)$ is the mean of the held action from $t_k - d$ to
    $t_{k+1} - d$. The delay with the smallest residuals is the most likely; past observations are
    in the fit, such that a controller's own reaction is not taken for an effect.

    Args:
        episodes: Observations and actions of each, as signals.
        gap: As of `resample`.

    Returns:
        The delay, known to half an interval of the observations.

    Raises:
        ValueError: If actions have no effect that could be seen.
    """
    interval = float(np.median(np.concatenate([np.diff(o[0].times) for o, _ in episodes])))
    lags = np.arange(_LONGEST * _FINENESS + 1) * interval / _FINENESS
    past, future, acted = [], [], []
    for observations, actions in episodes:
        _add_rows(observations, actions, lags, interval, gap, past, future, acted)
        if sum(map(len, past)) > _MOST_ROWS:
            break
    if not past:
        raise ValueError(
            f"Expected an episode of {_LONGEST + 3} rows or more to estimate the delay; got none."
        )
    before, after = (np.concatenate(each)[:_MOST_ROWS] for each in (past, future))
    taken = np.concatenate(acted, axis=1)[:, : len(before)]
    base = _basis(np.column_stack([np.ones(len(before)), before]))
    rest = after - base @ (base.T @ after)
    evidence = [0.5 * len(before) * _gain(rest, base, each) for each in taken]
    best = int(np.argmax(evidence))
    freedom = after.shape[1] * taken.shape[2]
    # Bound of the tail of a chi-squared variable (Laurent and Massart, 2000, Lemma 1), for all lags
    chance = np.log(len(lags) / _ERROR)
    least = max(
        0.5 * freedom + np.sqrt(freedom * chance) + chance,
        -0.5 * len(before) * np.log(1 - _LEAST_SHARE),
    )
    if not evidence[best] > least:
        raise ValueError(
            f"Expected actions to have an effect on observations within {lags[-1]:.3g} s, to "
            "estimate its delay; none could be seen. Choose --delay yourself, or log actions that "
            "vary more."
        )
    return Delay(float(lags[best]), interval / 2, float(evidence[best]))


def _add_rows(
    observations: Sequence[Stream],
    actions: Sequence[Stream],
    lags: np.ndarray,
    interval: float,
    gap: float | None,
    past: list[np.ndarray],
    future: list[np.ndarray],
    acted: list[np.ndarray],
) -> None:
    """Append what the fit needs of one episode: observations before and after, and actions."""
    for piece in resample(observations, actions, rate=1 / interval, gap=gap)[0]:
        seen, start = piece.observations, piece.start
        first = max(_PAST - 1, int(np.ceil((actions[0].times[0] + lags[-1] - start) / interval)))
        if len(seen) < first + 2:
            continue
        starts = start + np.arange(first, len(seen) - 1) * interval
        means = [
            np.concatenate([a.mean(starts - lag, starts - lag + interval) for a in actions], axis=1)
            for lag in lags
        ]
        rows = np.column_stack([seen[first - k : len(seen) - 1 - k] for k in range(_PAST)])
        good = np.isfinite(rows).all(1) & np.isfinite(seen[first + 1 :]).all(1)
        good &= np.isfinite(means).all((0, 2))
        past.append(rows[good])
        future.append(seen[first + 1 :][good])
        acted.append(np.stack(means)[:, good])


def _basis(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of what columns span."""
    scale = np.linalg.norm(columns, axis=0)
    columns = columns[:, scale > 0] / scale[scale > 0]
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, values > _SMALLEST * values.max(initial=0.0)]


def _gain(rest: np.ndarray, base: np.ndarray, actions: np.ndarray) -> float:
    """Return by how much these actions lower the log of the residual variances, summed."""
    free = actions - base @ (base.T @ actions)
    size, left = np.linalg.norm(actions, axis=0), np.linalg.norm(free, axis=0)
    free = _basis(free[:, left > _SMALLEST * size])
    before = np.sum(rest**2, axis=0)
    explained = np.sum((free.T @ rest) ** 2, axis=0) / np.where(before > 0, before, 1)
    return float(-np.log(np.maximum(1 - explained, _SMALLEST)).sum())
