"""`empower collect` and `empower data`."""

import dataclasses
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

from empowerment.cli.console import say, show_progress
from empowerment.data import (
    Actor,
    RandomActor,
    RepairMode,
    Spaces,
    Summary,
    Trajectories,
    collect,
    from_table,
    read_minari,
    refuse,
    repair,
    summarise,
)
from empowerment.experiments import Acting, read_manifest
from empowerment.report import check_writable

_TABLES = (".csv", ".parquet", ".pq")
_MINARI = "minari:"


@dataclasses.dataclass(frozen=True)
class CollectCommand:
    """Act in a Gymnasium environment and keep what is seen and done.

    Observations and actions must be vectors of numbers (Box spaces). The data are the same for
    any number of workers. A worker that dies or hangs is replaced, and its episode dropped.

    Try `empower collect Pendulum-v1 --steps 10000 --out pendulum.npz`, or an environment of your
    own: `empower collect my_module:Mine-v0 --steps 10000 --out mine.npz`.
    """

    environment: Annotated[Positional[str], arg(metavar="ENV")]
    """Its Gymnasium id; `module:ID` imports the module first, also from the current folder."""

    out: Annotated[Path, arg(metavar="FILE.npz")]
    """The file of the data."""

    steps: int
    """How many transitions."""

    policy: Annotated[str, arg(metavar="uniform|RUN")] = "uniform"
    """Who acts: uniform is at random, evenly within the limits of the actions;
    a run folder is its policy, by its filter, drawing actions."""

    workers: int = 1
    """How many processes."""

    seed: int = 0
    """Of everything random."""

    hang_timeout: Annotated[float, arg(metavar="SECONDS")] = 60.0
    """A worker that takes longer for one step counts as hung."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Check everything, collect, write, and say how it went."""
        if self.workers < 1:
            raise ValueError(f"Expected --workers to be at least 1; got {self.workers}.")
        _check_out(self.out)
        policy = _policy(self.policy)
        with show_progress(self.environment) as progress:
            data, report = collect(
                self.environment,
                steps=self.steps,
                seed=self.seed,
                policy=policy,
                workers=self.workers,
                timeout=self.hang_timeout,
                progress=progress,
            )
        data.save(self.out)
        say(report.summary())
        say(f"The data are in {self.out}: look at them with empower data {self.out}")
        refuse(summarise(data))


@dataclasses.dataclass(frozen=True)
class DataCommand:
    """Describe data, check them, and mend them on request.

    Takes what `empower collect` writes, a table (.csv, .parquet) whose columns you name, or a
    Minari dataset (minari:ID). In a table each row has an observation and the action that was
    taken upon it. Exit code 2 means that something is wrong with the data.

    Try `empower data pendulum.npz`, or `empower data log.csv --observations angle,velocity
    --actions torque --episode run --action-low -2 --action-high 2 --out log.npz`.
    """

    file: Annotated[Positional[str], arg(metavar="FILE")]
    """The data."""

    repair: RepairMode | None = None
    """What to do with rows that have numbers which are not finite, or actions beyond their
    limits. reject: drop their episodes. trim: cut the episodes before them. split: cut the rows
    out. It needs --out."""

    out: Annotated[Path | None, arg(metavar="FILE.npz")] = None
    """Write the data here, if nothing is wrong with them (any more)."""

    observations: Annotated[str | None, arg(metavar="A,B,...")] = None
    """Of a table: the columns of the observation."""

    actions: Annotated[str | None, arg(metavar="U,...")] = None
    """Of a table: the columns of the action."""

    episode: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: tells which episode a row is of. All are of one if not given."""

    terminated: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: 1 in the last row of an episode that came to an end of its own."""

    truncated: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: 1 in the last row of an episode that was cut."""

    time: Annotated[str | None, arg(metavar="COLUMN")] = None
    """Of a table: seconds. Where they jump, the episode is cut."""

    interval: Annotated[float | None, arg(metavar="SECONDS")] = None
    """Of a table: between two rows, where there is no column of the time."""

    action_low: Annotated[str | None, arg(metavar="LOW,...")] = None
    """Of a table: the least that each action can be."""

    action_high: Annotated[str | None, arg(metavar="HIGH,...")] = None
    """Of a table: the most that each action can be."""

    json: bool = False
    """Print the description as JSON to standard output."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Read, mend, describe, check, and write."""
        if self.repair is not None and self.out is None:
            raise ValueError(f"Expected --out beside --repair {self.repair}; got none.")
        if self.out is not None:
            _check_out(self.out)
        data = self._read()
        if self.repair is not None:
            before = data
            data = repair(before, self.repair)
            lost = before.num_transitions - data.num_transitions
            say(
                f"Mended by {self.repair}: {lost} of {before.num_transitions} transitions were "
                f"dropped; {len(before.episodes)} episodes became {len(data.episodes)}."
            )
        found = summarise(data)
        if self.json:
            print(json.dumps(found.to_json(), indent=2, allow_nan=False))
        else:
            _show(found, self.file)
        refuse(found)
        if self.out is not None:
            data.save(self.out)
            say(f"The data are in {self.out}.")

    def _read(self) -> Trajectories:
        """Read the data, whatever they are."""
        path = Path(self.file)
        if path.suffix in _TABLES:
            return from_table(
                path,
                observations=_words(self.observations),
                actions=_words(self.actions),
                episode=self.episode,
                terminated=self.terminated,
                truncated=self.truncated,
                time=self.time,
                interval=self.interval,
                action_low=_numbers("--action-low", self.action_low),
                action_high=_numbers("--action-high", self.action_high),
            )
        given = [name for name in _OF_TABLES if getattr(self, name) is not None]
        if given:
            raise ValueError(
                f"Expected --{given[0].replace('_', '-')} for a table ({', '.join(_TABLES)}) only; "
                f"got {self.file}."
            )
        if self.file.startswith(_MINARI):
            return read_minari(self.file.removeprefix(_MINARI))
        return Trajectories.load(path)


_OF_TABLES = (
    "observations",
    "actions",
    "episode",
    "terminated",
    "truncated",
    "time",
    "interval",
    "action_low",
    "action_high",
)


def _policy(name: str) -> Callable[[Spaces], Actor]:
    """Give who acts: at random, or the controller of a run."""
    if name == "uniform":
        return RandomActor
    read_manifest(Path(name))  # so that a mistake is known before workers are
    return Acting(Path(name))


def _check_out(path: Path) -> None:
    """Refuse now what could not be written later, or not be read again."""
    if path.suffix != ".npz":
        raise ValueError(f"Expected --out to end in .npz; got {path}.")
    check_writable(path)


def _words(text: str | None) -> list[str]:
    """Read names between commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _numbers(what: str, text: str | None) -> list[float] | None:
    """Read numbers between commas."""
    if text is None:
        return None
    try:
        return [float(word) for word in _words(text)]
    except ValueError:
        raise ValueError(f"Expected {what} to be numbers between commas; got {text!r}.") from None


def _show(found: Summary, name: str) -> None:
    """Print the description: a table, and what is worth knowing."""
    table = Table("", "channel", "limits", "found", "mean", "scale", "not finite", "beyond")
    for column in found.columns:
        table.add_row(
            column.kind,
            escape(column.name),
            f"{_short(column.low)} .. {_short(column.high)}",
            f"{_short(column.least)} .. {_short(column.most)}",
            _short(column.mean),
            _short(column.scale),
            str(column.num_bad or ""),
            str(column.num_outside or ""),
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    environment = found.about.get("environment")
    lengths = f"{found.shortest} to {found.longest}, median {found.median:g}"
    lines = [
        f"{name}{f', of {environment}' if environment else ''}",
        f"{found.num_transitions} transitions in {found.num_episodes} episodes of {lengths}; "
        f"{found.num_terminated} terminated",
    ]
    if found.interval is not None:
        lines.append(f"every {found.interval:g} s ({1 / found.interval:g} Hz)")
    console.print("\n".join(lines), highlight=False, markup=False)
    console.print(table)
    for note in found.notes:
        console.print(f"Note: {note}.", highlight=False, markup=False)


def _short(value: Any) -> str:
    """Write a number shortly; no limit is a dash."""
    return f"{value:.4g}" if math.isfinite(value) else "-"
