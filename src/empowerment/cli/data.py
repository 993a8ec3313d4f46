"""`empower data`."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

from empowerment.cli.collect import check_out
from empowerment.cli.console import log, table_console
from empowerment.data import (
    RepairMode,
    Summary,
    Trajectories,
    from_table,
    read_minari,
    refuse,
    repair,
    summarise,
)

_TABLES = (".csv", ".parquet", ".pq")
_MINARI = "minari:"


@dataclasses.dataclass(frozen=True)
class DataCommand:
    """Describe data, check them, and repair them on request.

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
    """Write the data to this file, if nothing is wrong with them (any more)."""

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
    """Show the traceback of an error."""

    def run(self) -> None:
        """Read, repair, describe, check, and write."""
        if self.repair is not None and self.out is None:
            raise ValueError(f"Expected --out beside --repair {self.repair}; got none.")
        if self.out is not None:
            check_out(self.out)
        data = self._read()
        if self.repair is not None:
            before = data
            data = repair(before, self.repair)
            lost = before.num_transitions - data.num_transitions
            log(
                f"Repaired by {self.repair}: {lost} of {before.num_transitions} transitions were "
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
            log(f"The data are in {self.out}.")

    def _read(self) -> Trajectories:
        """Read the data, whatever their format."""
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


_COLUMNS = ("observations", "actions", "episode", "terminated", "truncated", "time")
_OF_TABLES = (*_COLUMNS, "interval", "action_low", "action_high")


def _words(text: str | None) -> list[str]:
    """Split names at commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _numbers(what: str, text: str | None) -> list[float] | None:
    """Split numbers at commas."""
    if text is None:
        return None
    try:
        return [float(word) for word in _words(text)]
    except ValueError:
        raise ValueError(f"Expected {what} to be numbers between commas; got {text!r}.") from None


def _show(found: Summary, name: str) -> None:
    """Print the summary: a table, and notes."""
    table = Table("", "column", "limits", "range", "mean", "scale", "not finite", "beyond")
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
    console = table_console(120)
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
    """Format a number; no limit is a dash."""
    return f"{value:.4g}" if math.isfinite(value) else "-"
