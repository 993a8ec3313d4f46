"""Import of datasets from arrays."""

from typing import Any

import numpy as np

from empowerment.data.clocks import check_increase, check_usable
from empowerment.data.spaces import Spaces, numbered_spaces
from empowerment.data.trajectories import Episode, Trajectories

_GAP = 0.5
"""Tolerance of the interval between rows, as a fraction of its median."""


def from_arrays(
    observations: Any,
    actions: Any,
    *,
    terminated: Any = None,
    truncated: Any = None,
    episode: Any = None,
    times: Any = None,
    rewards: Any = None,
    spaces: Spaces | None = None,
    about: dict[str, Any] | None = None,
) -> Trajectories:
    """Cut a log into episodes.

    Each row has an observation and the action that was taken at it; the action of the last row
    of an episode, whose successor was not observed, is not used.

    Args:
        observations: A row for each time.
        actions: As many rows.
        terminated: A flag for each row: whether its observation is a terminal state.
        truncated: A flag for each row: whether the episode was truncated there.
        episode: The name of the episode of each row; the rows of an episode are contiguous.
        times: The time of each row in seconds, increasing within an episode. The median difference
            becomes the interval, and episodes are cut where the time jumps or begins anew.
        rewards: What the action of each row was paid.
        spaces: Bounds and names of observations and actions; unbounded by default.
        about: Metadata.

    Returns:
        The episodes.
    """
    observations, actions = _matrix("observations", observations), _matrix("actions", actions)
    rows = len(observations)
    for what, values in (
        ("actions", actions),
        ("terminated", terminated),
        ("truncated", truncated),
        ("episode", episode),
        ("times", times),
        ("rewards", rewards),
    ):
        if values is not None and len(values) != rows:
            raise ValueError(
                f"Expected {what} to have a row for each of {rows} observations; got {len(values)}."
            )
    if rows == 0:
        raise ValueError("Expected observations to have at least one row; got none.")
    metadata = dict(about or {})
    ends = np.zeros(rows, bool) if terminated is None else np.asarray(terminated, bool)
    is_last = last_rows(rows, terminated=ends, truncated=truncated, episode=episode, times=times)
    if times is not None:
        interval, jumps = _jumps(np.asarray(times, float), is_last)
        metadata |= {"interval": interval, "gaps": int(jumps.sum())}
        is_last[:-1] |= jumps
    last = np.flatnonzero(is_last)
    first = np.concatenate([[0], last[:-1] + 1])
    episodes = [
        Episode(
            observations[start : stop + 1],
            actions[start:stop],
            terminated=bool(ends[stop]),
            truncated=not ends[stop],
            rewards=None if rewards is None else np.asarray(rewards, float)[start:stop],
        )
        for start, stop in zip(first.tolist(), last.tolist(), strict=True)
    ]
    return Trajectories(
        tuple(episodes),
        spaces or numbered_spaces(observations.shape[1], actions.shape[1]),
        metadata,
    )


def last_rows(
    rows: int,
    *,
    terminated: np.ndarray | None = None,
    truncated: Any = None,
    episode: Any = None,
    times: Any = None,
) -> np.ndarray:
    """Return for each row whether it is the last of an episode; see `from_arrays`.

    A clock that begins anew begins an episode.

    Raises:
        ValueError: If the rows of an episode are not together, or its times do not increase.
    """
    is_last = np.zeros(rows, bool) if terminated is None else terminated.copy()
    is_last[-1] = True
    if truncated is not None:
        is_last |= np.asarray(truncated, bool)
    if episode is not None:
        is_last[:-1] |= _changes(episode)
    if times is not None:
        clock = np.asarray(times, float)
        check_usable(clock, "times")
        _end_at_restarts(clock, is_last)
        check_increase(clock, "times", ~is_last[:-1])
    return is_last


def _end_at_restarts(times: np.ndarray, is_last: np.ndarray) -> None:
    """Let an episode end where the clock goes back to its beginning or before it."""
    back = np.flatnonzero((np.diff(times) < 0) & ~is_last[:-1])
    first = np.concatenate([[0], np.flatnonzero(is_last[:-1]) + 1])
    start = 0
    for row in back.tolist():
        start = max(start, int(first[np.searchsorted(first, row, side="right") - 1]))
        if times[row + 1] <= times[start]:
            is_last[row], start = True, row + 1


def _matrix(what: str, values: Any) -> np.ndarray:
    matrix = np.asarray(values, float)
    if matrix.ndim != 2:
        raise ValueError(f"Expected {what} to be rows of numbers; got the shape {matrix.shape}.")
    return matrix


def _changes(episode: Any) -> np.ndarray:
    """Return for each row but the last whether the next one is of another episode."""
    names = np.asarray(episode)
    changes = names[1:] != names[:-1]
    starts = names[np.concatenate([[True], changes])]
    if len(np.unique(starts)) < len(starts):
        values, counts = np.unique(starts, return_counts=True)
        raise ValueError(
            "Expected the rows of an episode to be together; those of episode "
            f"{values[counts > 1][0]} are not. Sort them, or give each its own name."
        )
    return changes


def _jumps(times: np.ndarray, is_last: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the median interval, and for each row but the last whether the time jumps after it."""
    intervals, is_within = np.diff(times), ~is_last[:-1]
    if not is_within.any():
        raise ValueError("Expected an episode to have two rows or more; all have one.")
    median = float(np.median(intervals[is_within]))
    return median, is_within & ~(np.abs(intervals - median) <= _GAP * median)
