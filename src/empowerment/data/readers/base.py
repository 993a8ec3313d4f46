"""What every reader of logs shares: its options, what it returns, and how it refuses."""

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, final

import numpy as np
from tyro.conf import arg

from empowerment.data.clocks import Stream
from empowerment.data.trajectories import Trajectories


@final
@dataclass(frozen=True)
class LogOptions:
    """How to read a log that does not say everything itself."""

    format: str | None = None
    """Of the log; told from its name or its files by default."""

    observations: Annotated[str | None, arg(metavar="A,B,...")] = None
    """What is observed: columns of a table, features of a LeRobot dataset, or fields of messages
    in a bag, such as /joint_states.position."""

    actions: Annotated[str | None, arg(metavar="U,...")] = None
    """What was done, named alike."""

    episode: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: tells which episode a row is of. All are of one if not given."""

    terminated: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: 1 in the last row of an episode that came to an end of its own."""

    truncated: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: 1 in the last row of an episode that was cut."""

    reward: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: what the action of a row was paid. Other formats that have rewards say so."""

    time: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: seconds. Where they jump, the episode is cut."""

    interval: Annotated[float | None, arg(metavar="SECONDS")] = None
    """Between two rows, where the log has no times."""

    rate: Annotated[float | None, arg(metavar="HZ")] = None
    """Resample the log to so many rows a second: actions are held until the next one."""

    fill: Literal["interpolate", "last"] = "interpolate"
    """Of resampling: observations between two that were logged are on the line between them, or
    the last of them."""

    gap: Annotated[float | None, arg(metavar="SECONDS")] = None
    """Of resampling: a longer silence cuts the episode; by default 3.5 intervals of a signal."""

    delay: Annotated[str | None, arg(metavar="SECONDS|auto")] = None
    """After which an action begins to act; each observation is paired with the action that acts
    upon it. auto estimates it from the log."""

    limits: Annotated[str | None, arg(metavar="LOW:HIGH,...")] = None
    """The least and the most that each action can be, or one pair for all; by default what the
    log says, or has."""

    def given(self) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        return [f.name for f in dataclasses.fields(self) if getattr(self, f.name) != f.default]

    def names(self, what: Literal["observations", "actions"]) -> list[str]:
        """Split names at commas."""
        return [word.strip() for word in (getattr(self, what) or "").split(",") if word.strip()]

    def bounds(self, count: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the lower and upper limits of so many actions, if they are given."""
        if self.limits is None:
            return None
        try:
            pairs = [[float(n) for n in pair.split(":")] for pair in self.limits.split(",")]
            low, high = np.array(pairs * count if len(pairs) == 1 else pairs).reshape(-1, 2).T
        except ValueError:
            raise ValueError(
                f"Expected --limits to be LOW:HIGH for each action; got {self.limits!r}."
            ) from None
        if len(low) != count or not np.all(low < high) or not np.isfinite([low, high]).all():
            raise ValueError(
                f"Expected --limits to be one pair LOW:HIGH of finite numbers, or {count} for so "
                f"many actions, each with LOW below HIGH; got {self.limits!r}."
            )
        return low, high

    def delay_seconds(self) -> float | Literal["auto"] | None:
        """Return the delay as a number, `auto`, or none."""
        if self.delay is None or self.delay == "auto":
            return self.delay
        try:
            seconds = float(self.delay)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < np.inf:
            raise ValueError(
                f"Expected --delay to be auto or seconds, 0 or more; got {self.delay!r}."
            )
        return seconds

    def check(self) -> None:
        """Raise a `ValueError` if the options cannot be."""
        for name in ("interval", "rate", "gap"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise ValueError(f"Expected --{name} to be positive and finite; got {value}.")
        self.delay_seconds()


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """A log with one row for each time, before it is cut into episodes.

    Attributes:
        observations: A row for each time.
        actions: As many rows.
        observation_names: A name for each column.
        action_names: A name for each column.
        terminated: A flag for each row.
        truncated: A flag for each row.
        episode: The name of the episode of each row.
        times: The time of each row in seconds.
        interval: Seconds between rows, if there are no times.
        rewards: What the action of each row was paid, if the log says it.
        limits: The bounds of actions, if the log says them.
        about: Metadata.
    """

    observations: np.ndarray
    actions: np.ndarray
    observation_names: Sequence[str]
    action_names: Sequence[str]
    terminated: np.ndarray | None = None
    truncated: np.ndarray | None = None
    episode: np.ndarray | None = None
    times: np.ndarray | None = None
    interval: float | None = None
    rewards: np.ndarray | None = None
    limits: tuple[np.ndarray, np.ndarray] | None = None
    about: dict[str, Any] = dataclasses.field(default_factory=dict)


@final
@dataclass(frozen=True, eq=False)
class Signals:
    """A log whose signals have clocks of their own.

    Attributes:
        observations: Signals that together are the observation.
        actions: Signals that together are the action.
        observation_names: A name for each of their columns.
        action_names: A name for each of their columns.
        about: Metadata.
    """

    observations: Sequence[Stream]
    actions: Sequence[Stream]
    observation_names: Sequence[str]
    action_names: Sequence[str]
    about: dict[str, Any]


@final
@dataclass(frozen=True)
class Reader:
    """A format of logs.

    Attributes:
        about: What the format is.
        read: Reads a log.
        takes: The options that apply to it.
        suffixes: Of its files.
        is_like: Whether something that is not known by its suffix has this format.
    """

    about: str
    read: Callable[[str, LogOptions], Rows | Signals | Trajectories]
    takes: frozenset[str]
    suffixes: tuple[str, ...] = ()
    is_like: Callable[[str], bool] = lambda source: False


def optional(module: str, source: object) -> Any:
    """Import a module of an optional package.

    Raises:
        ValueError: If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ValueError(
            f"Expected {package} to be installed to read {source}; it is not. Install it with "
            "`pip install 'empowerment[readers]'`."
        ) from error


@contextmanager
def refusing(source: object, what: str, *errors: type[BaseException]) -> Iterator[None]:
    """Turn errors of a foreign library into one sentence; a plain `ValueError` is our own."""
    try:
        yield
    except errors as error:
        if type(error) is ValueError:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"Expected {source} to be {what}; got {reason.rstrip('.')[:200]}."
        ) from error


def file_of(source: str) -> Path:
    """Return the path of a log that is a file."""
    path = Path(source)
    if path.is_dir():
        raise ValueError(f"Expected {path} to be a regular file; got a directory.")
    return path
