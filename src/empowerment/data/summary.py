"""Summary statistics and validation of datasets."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from empowerment.data.trajectories import Trajectories

_TOLERANCE = 1e-5
"""Relative tolerance of bounds, for the rounding of single precision."""


@dataclass(frozen=True)
class Column:
    """Statistics of one axis of the observations or actions, over its finite numbers.

    Attributes:
        kind: `observation`, `action` or `reward`.
        name: The name of the axis.
        low: The lower bound.
        high: The upper bound.
        least: The minimum.
        most: The maximum.
        mean: The mean.
        scale: The standard deviation.
        num_bad: The count of numbers that are not finite.
        num_outside: The count of numbers beyond the bounds.
        is_missing: Whether no number is finite.
        is_constant: Whether all numbers are equal.
    """

    kind: str
    name: str
    low: float
    high: float
    least: float
    most: float
    mean: float
    scale: float
    num_bad: int
    num_outside: int
    is_missing: bool
    is_constant: bool


@dataclass(frozen=True)
class Summary:
    """Summary of a dataset.

    Attributes:
        num_episodes: The number of episodes.
        num_transitions: The number of transitions.
        shortest: The length of the shortest episode, in transitions.
        median: The median length.
        longest: The length of the longest episode.
        num_terminated: The number of episodes that terminated.
        interval: Seconds between two observations, if known.
        columns: Each axis of the observations, then of the actions; then the reward, if recorded.
        problems: Defects that must be repaired before training.
        notes: Observations that are not defects.
        about: Metadata of the dataset.
    """

    num_episodes: int
    num_transitions: int
    shortest: int
    median: float
    longest: int
    num_terminated: int
    interval: float | None
    columns: tuple[Column, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    about: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Encode the summary for JSON, which has no infinity: it becomes null."""
        fields = dataclasses.asdict(self)
        fields["columns"] = [
            {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in c.items()}
            for c in fields["columns"]
        ]
        return fields


def summarise(trajectories: Trajectories) -> Summary:
    """Compute summary statistics of trajectories, and find their problems.

    Args:
        trajectories: The data; numbers may be not finite.

    Returns:
        The summary.
    """
    spaces, episodes = trajectories.spaces, trajectories.episodes
    observations = np.concatenate([episode.observations for episode in episodes])
    actions = np.concatenate([episode.actions for episode in episodes])
    kinds = (
        ("observation", observations, spaces.observation_names),
        ("action", actions, spaces.action_names),
    )
    columns = tuple(
        _column(
            kind,
            name,
            float(getattr(spaces, f"{kind}_low")[axis]),
            float(getattr(spaces, f"{kind}_high")[axis]),
            values[:, axis],
        )
        for kind, values, names in kinds
        for axis, name in enumerate(names)
    )
    if trajectories.has_rewards:
        free = -math.inf, math.inf
        columns += (_column("reward", "of an action", *free, trajectories.rewards),)
    interval = trajectories.about.get("interval")
    lengths = np.array([episode.length for episode in episodes])
    return Summary(
        num_episodes=len(episodes),
        num_transitions=int(lengths.sum()),
        shortest=int(lengths.min()),
        median=float(np.median(lengths)),
        longest=int(lengths.max()),
        num_terminated=sum(episode.terminated for episode in episodes),
        interval=float(interval) if isinstance(interval, int | float) else None,
        columns=columns,
        problems=tuple(_problems(trajectories, columns)),
        notes=tuple(_notes(trajectories, columns)),
        about=trajectories.about,
    )


def check(trajectories: Trajectories) -> None:
    """Check that data are fit for training.

    Args:
        trajectories: The data.

    Raises:
        ValueError: With all problems and the remedy, in one line.
    """
    refuse(summarise(trajectories))


def refuse(summary: Summary) -> None:
    """Raise an error if a summary has problems.

    Args:
        summary: The summary of the data.

    Raises:
        ValueError: With all problems and the remedy, in one line.
    """
    if summary.problems:
        raise ValueError(
            f"Expected the data to be fit to learn from; {'; '.join(summary.problems)}. Repair "
            "it with `empower data FILE --repair reject|trim|split --out NEW`."
        )


def outside(values: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Return which finite numbers are beyond their bounds by more than rounding.

    Args:
        values: The numbers.
        low: The lower bounds.
        high: The upper bounds.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    below = values < low - _TOLERANCE * np.maximum(1.0, np.abs(low))
    return np.isfinite(values) & (
        below | (values > high + _TOLERANCE * np.maximum(1.0, np.abs(high)))
    )


def _column(kind: str, name: str, low: float, high: float, values: np.ndarray) -> Column:
    finite = values[np.isfinite(values)].astype(float)
    has_any = len(finite) > 0
    least, most = (finite.min(), finite.max()) if has_any else (math.nan, math.nan)
    return Column(
        kind=kind,
        name=name,
        low=low,
        high=high,
        least=float(least),
        most=float(most),
        mean=float(finite.mean()) if has_any else math.nan,
        scale=float(finite.std()) if has_any else math.nan,
        num_bad=len(values) - len(finite),
        num_outside=int(outside(values, low, high).sum()),
        is_missing=len(values) > 0 and not has_any,
        is_constant=has_any and len(values) > 1 and bool(least == most),
    )


def _problems(trajectories: Trajectories, columns: tuple[Column, ...]) -> list[str]:
    problems = []
    for column in columns:
        if column.kind == "reward":  # Only to learn it, it has to be there: see the notes.
            continue
        what = f"{column.kind} {column.name}"
        if column.is_missing:
            problems.append(f"{what} is missing: none of its numbers is finite")
        elif column.num_bad:
            where = _first_bad(trajectories, column)
            problems.append(f"{what} has {column.num_bad} numbers that are not finite, {where}")
        if column.num_outside and column.kind == "action":
            problems.append(
                f"{what} has {column.num_outside} numbers beyond its limits "
                f"{column.low:g} and {column.high:g}"
            )
    empty = sum(episode.length == 0 for episode in trajectories.episodes)
    if empty:
        problems.append(f"{empty} episodes have no transition")
    return problems


def _first_bad(trajectories: Trajectories, column: Column) -> str:
    """Describe the position of the first number that is not finite."""
    axis = getattr(trajectories.spaces, f"{column.kind}_names").index(column.name)
    for index, episode in enumerate(trajectories.episodes):
        rows = getattr(episode, f"{column.kind}s")[:, axis]
        if not np.isfinite(rows).all():
            return f"the first in episode {index}, row {int(np.argmin(np.isfinite(rows)))}"
    raise AssertionError


def _notes(trajectories: Trajectories, columns: tuple[Column, ...]) -> list[str]:
    notes = [
        f"{c.kind} {c.name} is always {c.least:g}"
        for c in columns
        if c.is_constant and c.kind != "reward"
    ]
    notes += [
        f"the reward is not finite for {c.num_bad} actions, and cannot be learnt"
        for c in columns
        if c.num_bad and c.kind == "reward"
    ]
    notes += [
        f"observation {c.name} has {c.num_outside} numbers beyond {c.low:g} and {c.high:g}"
        for c in columns
        if c.num_outside and c.kind == "observation"
    ]
    notes += [
        f"action {c.name} has no limits"
        for c in columns
        if c.kind == "action" and not (math.isfinite(c.low) and math.isfinite(c.high))
    ]
    if trajectories.about.get("interval") is None:
        notes.append("the interval between observations is not known")
    gaps = trajectories.about.get("gaps")
    if gaps:
        notes.append(f"the clock jumps {gaps} times, and episodes were cut there")
    about = trajectories.about
    notes += [f"{each} is ignored" for each in about.get("ignored", [])]
    if about.get("unseen_ends"):
        notes.append(
            f"{about['unseen_ends']} terminal states were not logged, and count as truncations"
        )
    if about.get("delay_resolution"):
        notes.append(
            f"actions act {about['delay']:.3g} s after they were logged (estimated, give or take "
            f"{about['delay_resolution']:.2g} s), and were moved by it"
        )
    elif about.get("delay"):
        notes.append(f"actions were moved by a delay of {about['delay']:.3g} s")
    return notes
