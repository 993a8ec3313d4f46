"""What data are like, what is wrong with them, and how to mend it."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from empowerment.data.trajectories import Trajectories

_TOLERANCE = 1e-5
"""By how much of a limit a number may be beyond it: single precision rounds."""


@dataclass(frozen=True)
class Column:
    """One axis of the observations or actions.

    Attributes:
        kind: `observation` or `action`.
        name: Its name.
        low: The least that it may be.
        high: The most that it may be.
        least: The least that it is, where it is finite.
        most: The most that it is.
        mean: Its mean.
        scale: Its standard deviation.
        num_bad: How many of its numbers are not finite.
        num_outside: How many are beyond the limits.
        is_missing: Whether none of its numbers is finite.
        is_constant: Whether it is always the same.
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
    """What trajectories are like.

    Attributes:
        num_episodes: How many episodes.
        num_transitions: How many transitions in all.
        shortest: Transitions of the shortest episode.
        median: Of the median episode.
        longest: Of the longest.
        num_terminated: Episodes that came to an end of their own.
        interval: Seconds between two observations, if known.
        channels: Each axis of observations, then of actions.
        problems: What must be mended before anything is learnt from the data.
        notes: What is worth knowing.
        about: What is known about the data.
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
        """Give all of it for JSON, which has no infinity: what is not finite is null."""
        words = dataclasses.asdict(self)
        words["channels"] = [
            {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in c.items()}
            for c in words["channels"]
        ]
        return words


def summarise(trajectories: Trajectories) -> Summary:
    """Describe trajectories, and find what is wrong with them.

    Args:
        trajectories: The data; they may have anything in them.

    Returns:
        The description, with problems and notes in words.
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
    """Refuse data that should not be learnt from.

    Args:
        trajectories: The data.

    Raises:
        ValueError: One sentence that lists what is wrong and how to mend it.
    """
    refuse(summarise(trajectories))


def refuse(description: Summary) -> None:
    """Refuse data that are described as having problems.

    Args:
        description: What `summarise` gave.

    Raises:
        ValueError: One sentence that lists what is wrong and how to mend it.
    """
    if description.problems:
        raise ValueError(
            f"Expected the data to be fit to learn from; {'; '.join(description.problems)}. Mend "
            "it with `empower data FILE --repair reject|trim|split --out NEW`."
        )


def outside(values: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Tell which finite numbers are beyond the limits, by more than rounding.

    Args:
        values: The numbers.
        low: The least that they may be.
        high: The most that they may be.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    below = values < low - _TOLERANCE * np.maximum(1.0, np.abs(low))
    return np.isfinite(values) & (
        below | (values > high + _TOLERANCE * np.maximum(1.0, np.abs(high)))
    )


def _column(kind: str, name: str, low: float, high: float, values: np.ndarray) -> Column:
    """Describe one axis."""
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
    """Say what must be mended."""
    problems = []
    for column in columns:
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
    """Say where the first number that is not finite is."""
    axis = getattr(trajectories.spaces, f"{column.kind}_names").index(column.name)
    for index, episode in enumerate(trajectories.episodes):
        rows = getattr(episode, f"{column.kind}s")[:, axis]
        if not np.isfinite(rows).all():
            return f"the first in episode {index}, row {int(np.argmin(np.isfinite(rows)))}"
    raise AssertionError


def _notes(trajectories: Trajectories, columns: tuple[Column, ...]) -> list[str]:
    """Say what is worth knowing."""
    notes = [f"{c.kind} {c.name} is always {c.least:g}" for c in columns if c.is_constant]
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
    return notes
