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
    LogOptions,
    RepairMode,
    Summary,
    Trajectories,
    join,
    read_log,
    refuse,
    repair,
    summarise,
)


@dataclasses.dataclass(frozen=True)
class DataCommand:
    """Describe data, check them, and repair them on request.

    Takes what `empower collect` writes, a table (.csv, .parquet) whose columns you name, a
    LeRobot dataset, a bag of ROS 2 (.mcap, .db3 or its folder) whose fields you name, an HDF5 file
    as D4RL's, or a Minari dataset (minari:ID). In a table each row has an observation and the
    action that was taken upon it. Exit code 2 means that something is wrong with the data.

    Try `empower data pendulum.npz`, or `empower data log.csv --observations angle,velocity
    --actions torque --episode run --limits=-2:2 --out log.npz`.
    """

    file: Annotated[Positional[str], arg(metavar="FILE")]
    """The data."""

    repair: RepairMode | None = None
    """What to do with rows that have numbers which are not finite, or actions beyond their
    limits. reject: drop their episodes. trim: cut the episodes before them. split: cut the rows
    out. It needs --out."""

    add: Annotated[tuple[Path, ...], arg(metavar="FILE.npz")] = ()
    """Further data of the same columns and limits, whose episodes are added at the end."""

    out: Annotated[Path | None, arg(metavar="FILE.npz")] = None
    """Write the data to this file, if nothing is wrong with them (any more)."""

    json: bool = False
    """Print the description as JSON to standard output."""

    debug: bool = False
    """Show the traceback of an error."""

    options: Annotated[LogOptions, arg(name="")] = dataclasses.field(default_factory=LogOptions)
    """What the log does not say itself."""

    def run(self) -> None:
        """Read, repair, describe, check, and write."""
        if self.repair is not None and self.out is None:
            raise ValueError(f"Expected --out beside --repair {self.repair}; got none.")
        if self.out is not None:
            check_out(self.out)
        data = read_log(self.file, self.options)
        if self.add:
            data = join(data, *map(Trajectories.load, self.add))
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
