"""Import of datasets from arrays and from Minari."""

import importlib
from typing import Any

import numpy as np

from empowerment.data.archive import MAX_BYTES
from empowerment.data.environments import vector_spaces
from empowerment.data.repair import RepairMode, repair
from empowerment.data.spaces import Spaces, numbered_spaces
from empowerment.data.summary import check
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
        times: The time of each row in seconds. The median difference becomes the interval, and
            episodes are cut where the time jumps.
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
    ):
        if values is not None and len(values) != rows:
            raise ValueError(
                f"Expected {what} to have a row for each of {rows} observations; got {len(values)}."
            )
    if rows == 0:
        raise ValueError("Expected observations to have at least one row; got none.")
    metadata = dict(about or {})
    ends = np.zeros(rows, bool) if terminated is None else np.asarray(terminated, bool)
    is_last = ends.copy()
    is_last[-1] = True
    if truncated is not None:
        is_last |= np.asarray(truncated, bool)
    if episode is not None:
        is_last[:-1] |= _changes(episode)
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
        )
        for start, stop in zip(first.tolist(), last.tolist(), strict=True)
    ]
    return Trajectories(
        tuple(episodes),
        spaces or numbered_spaces(observations.shape[1], actions.shape[1]),
        metadata,
    )


def from_minari(dataset: Any, *, repair_mode: RepairMode | None = None) -> Trajectories:
    """Read a Minari dataset, and check or repair it.

    Args:
        dataset: Its id, or the dataset itself.
        repair_mode: How to repair bad rows; if None, they are an error.

    Returns:
        The episodes.

    Raises:
        ValueError: If Minari is not installed, spaces are not vectors of numbers, or episodes
            are not aligned or have numbers that are not finite.
    """
    trajectories = read_minari(dataset)
    if repair_mode is not None:
        return repair(trajectories, repair_mode)
    check(trajectories)
    return trajectories


def read_minari(dataset: Any) -> Trajectories:
    """Read a Minari dataset without a check of its numbers.

    Args:
        dataset: Its id, or the dataset itself.

    Returns:
        The episodes.
    """
    if isinstance(dataset, str):
        dataset = _minari().load_dataset(dataset)
    name = str(dataset.spec.dataset_id)
    spaces = vector_spaces(dataset.observation_space, dataset.action_space, name)
    size = 4 * int(dataset.total_steps) * (len(spaces.observation_names) + len(spaces.action_names))
    if size > MAX_BYTES:
        raise ValueError(f"Expected {name} to have at most {MAX_BYTES} bytes; got {size}.")
    episodes = tuple(_from_minari(each, name) for each in dataset.iterate_episodes())
    spec = dataset.spec.env_spec
    about = {"environment": None if spec is None else spec.id, "dataset": name, "interval": None}
    return Trajectories(episodes, spaces, about)


def _minari() -> Any:
    try:
        return importlib.import_module("minari")
    except ImportError as error:
        raise ValueError(
            "Expected Minari to be installed to read its datasets; it is not. Install it with "
            "`pip install 'empowerment[readers]'`."
        ) from error


def _from_minari(episode: Any, name: str) -> Episode:
    """Convert one episode; Minari itself checks hardly anything."""
    observations, actions = np.asarray(episode.observations), np.asarray(episode.actions)
    terminations, truncations = np.asarray(episode.terminations), np.asarray(episode.truncations)
    steps = len(actions)
    if (
        len(observations) != steps + 1
        or (len(terminations), len(truncations)) != (steps, steps)
        or (terminations[:-1] | truncations[:-1]).any()
    ):
        raise ValueError(
            f"Expected episode {episode.id} of {name} to have one observation more than actions, "
            f"and to end at its last step only; got {len(observations)} observations, {steps} "
            f"actions and ends at {np.flatnonzero(terminations | truncations).tolist()[:5]}."
        )
    ends = steps > 0 and bool(terminations[-1])
    if actions.ndim == 1:  # Of a discrete space: one number each.
        actions = actions[:, None]
    return Episode(observations, actions, terminated=ends, truncated=not ends)


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
    within = intervals[is_within & np.isfinite(intervals)]
    median = float(np.median(within)) if len(within) else np.nan
    if not median > 0:
        raise ValueError(
            f"Expected times to increase within episodes; their median difference is {median:g}."
        )
    return median, is_within & ~(np.abs(intervals - median) <= _GAP * median)
