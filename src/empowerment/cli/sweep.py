"""`empower sweep`."""

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from rich.table import Table
from tyro.conf import Positional, UseAppendAction, arg

from empowerment.cache import num_cores
from empowerment.cli.console import log, show_progress, table_console
from empowerment.data import close_environment, make_environment
from empowerment.errors import EmpowermentError
from empowerment.report.figures import check_drawable
from empowerment.runs import PRESETS
from empowerment.runs.loading import environment_of
from empowerment.sweep.driver import Options, adopt, drive
from empowerment.sweep.executors import Executor, LocalPool
from empowerment.sweep.folder import open_sweep, read_entries
from empowerment.sweep.grid import Grid, Point, parse_seeds, parse_settings, points
from empowerment.sweep.jobs import train
from empowerment.sweep.scheduler import Entry
from empowerment.sweep.table import Row, bootstrap, draw_rows, interquartile_mean, rows_of

_INCOMPARABLE = ("steps", "family", "perceive", "process_noise", "resolution", "action_repeat")
"""Settings that change what is measured: bounds of runs that differ in them do not compare."""

_STATES = ("finished", "running", "waiting", "failed", "pruned")


@dataclasses.dataclass(frozen=True)
class SweepCommand:
    """Train over a grid of environments, settings and seeds, or show the figures of such a sweep.

    Each run is an ordinary run folder below SWEEP/runs, and all are listed in SWEEP/sweep.json.
    A sweep can be interrupted at any moment; the same command goes on and repeats nothing.

    Try `empower sweep pendulum --seeds 0-9 --set horizon=8,16 --out sweeps/horizons`, then
    `empower sweep sweeps/horizons --table held_fraction`.
    """

    what: Annotated[Positional[str | None], arg(metavar="PRESET|SWEEP")] = None
    """Preset to train, or folder of a sweep to show. None with --env."""

    env: Annotated[tuple[str, ...], arg(metavar="ID ...")] = ()
    """Environments whose worlds are learnt, instead of a preset."""

    seeds: str = "0-9"
    """Random seeds, such as 0-9 or 0,3,5-7."""

    settings: Annotated[
        UseAppendAction[tuple[str, ...]], arg(name="set", metavar="NAME=VALUE,...")
    ] = ()
    """A setting of `empower train` and the values it takes, such as horizon=8,16,32. It may be
    given several times, for a grid; it goes before --budget."""

    out: Annotated[Path | None, arg(metavar="SWEEP")] = None
    """The folder of the sweep."""

    budget: Literal["smoke", "full"] = "full"
    """smoke: tiny runs, to test that everything works."""

    episodes: int = 100
    """Number of episodes that each run is evaluated by, by the seed of the run; 0 for none."""

    backend: Literal["local", "ray", "submitit"] = "local"
    """Where runs are trained: in processes of this machine, on Ray, or on SLURM by submitit."""

    address: Annotated[str, arg(metavar="auto|local|HOST:PORT")] = "auto"
    """Ray cluster: the running one, a new one on this machine, or one by its address. With
    submitit: SLURM, or processes of this machine."""

    cpus_per_run: int = 1
    """Number of cores of a run, which limits its threads. The bits of results depend on it."""

    retries: int = 2
    """Number of times that a failed run is tried again."""

    prune: bool = False
    """Stop runs whose bound is clearly below the median of finished ones of the same environment.
    The figures of what remains are then better than those of all."""

    collect_results: bool = False
    """With Ray: train on the disks of the nodes and send the folders back, where no disk is shared.
    A run that is interrupted then begins anew."""

    table: Annotated[str | None, arg(metavar="FIGURE")] = None
    """Print a figure of the sweep, such as survived_fraction, with mean, spread and all seeds."""

    figure: Annotated[Path | None, arg(metavar="FILE")] = None
    """Draw the figure of --table to this file: interquartile means with bootstrap intervals."""

    debug: bool = False
    """Show the traceback of an error."""

    command_line: ClassVar[str | None] = None

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        return f"Interrupted; everything so far is in {self.out}. The same command goes on."

    def run(self) -> None:
        """Train what is not trained yet, or show what there is."""
        if self.figure is not None and self.table is None:
            raise ValueError("Expected --figure to come with --table FIGURE; it does not.")
        if self.out is None:
            if self.what is None or self.env:
                raise ValueError(
                    "Expected --out SWEEP to train, or the folder of a sweep; got none."
                )
            if self.what in PRESETS:
                raise ValueError(f"Expected --out SWEEP, to train {self.what}; got none.")
            self._show(Path(self.what))
            return
        self._train(self.out)
        if self.table is not None:
            self._show(self.out)

    def _show(self, folder: Path) -> None:
        """Print the states of all runs, or a figure."""
        entries = read_entries(folder)
        if self.table is None:
            _print_states(entries)
            return
        if self.figure is not None:
            check_drawable((), self.figure)
        rows = rows_of(entries, self.table)
        _print_rows(rows, self.table)
        if self.figure is not None:
            draw_rows(rows, self.table, self.figure)
            log(f"The figure is in {self.figure}.")

    def _train(self, out: Path) -> None:
        start, grid = time.monotonic(), self._grid()
        found = points(grid)
        _check_environments(found)
        with open_sweep(out, grid, found) as sweep, show_progress(out.name) as progress:
            jobs = sweep.jobs(found, episodes=self.episodes, command=self.command_line)
            before = adopt(sweep, jobs, keep_pruned=self.prune)
            if before:
                log(f"{before} of {len(found)} runs are finished already.")
            if before < len(found):
                with self._executor(sweep.folder) as executor:
                    options = Options(self.retries, self.prune, log, progress)
                    drive(sweep, jobs, executor, options)
            sweep.save(at_once=True)
        failed = [name for name, each in sweep.entries.items() if each.state == "failed"]
        log(f"Swept in {time.monotonic() - start:.0f} s; the runs are in {out}.")
        if failed:
            raise EmpowermentError(
                f"{len(failed)} of {len(found)} runs failed, each {self.retries + 1} times; the "
                f"first is {failed[0]}: {sweep.entries[failed[0]].why} The same command tries them "
                "again."
            )

    def _grid(self) -> Grid:
        """Check the arguments."""
        if (self.what is None) == (not self.env) or (self.what and self.what not in PRESETS):
            raise ValueError(
                f"Expected either a preset, one of {', '.join(PRESETS)}, or environments by --env "
                f"ID; got {self.what or 'both' if self.env else self.what or 'none'}."
            )
        for name, least in (("cpus_per_run", 1), ("retries", 0), ("episodes", 0)):
            if getattr(self, name) < least:
                raise ValueError(
                    f"Expected --{name.replace('_', '-')} to be at least {least}; got "
                    f"{getattr(self, name)}."
                )
        if self.collect_results and self.backend != "ray":
            raise ValueError(
                f"Expected --collect-results with --backend ray; got {self.backend}, where runs "
                "are written to the folder of the sweep."
            )
        settings = parse_settings(self.settings)
        if self.prune:
            self._check_prunable(settings)
        return Grid(
            self.what,
            tuple(self.env),
            settings,
            parse_seeds(self.seeds),
            self.budget,
            self.episodes,
            self.cpus_per_run,
        )

    def _check_prunable(self, settings: dict[str, tuple]) -> None:
        """Refuse to compare what cannot be compared."""
        odd = [name for name in _INCOMPARABLE if len(settings.get(name, ())) > 1]
        if odd:
            raise ValueError(
                f"Expected --prune to compare bounds of the same channel; runs differ in "
                f"{', '.join(odd)}, which changes what is measured."
            )
        if self.collect_results:
            raise ValueError(
                "Expected --prune without --collect-results: metrics are read from run folders as "
                "they are written, on a disk that is shared."
            )

    @contextlib.contextmanager
    def _executor(self, folder: Path) -> Iterator[Executor]:
        """Start the backend."""
        if self.backend == "ray":
            from empowerment.sweep.ray import RayCluster

            executor = RayCluster(
                train, address=self.address, cpus=self.cpus_per_run, collect=self.collect_results
            )
        elif self.backend == "submitit":
            from empowerment.sweep.submitit import SlurmQueue

            executor = SlurmQueue(
                train, folder=folder / "slurm", address=self.address, cpus=self.cpus_per_run
            )
        else:
            slots = max(num_cores() // self.cpus_per_run, 1)
            executor = LocalPool(train, slots=slots, cpus=self.cpus_per_run)
        yield executor


def _check_environments(found: list[Point]) -> None:
    """Make each environment once: a mistake in its name ends the sweep before it begins."""
    for experiment in {point.base: point.experiment for point in found}.values():
        if experiment.has_environment:  # How long an action lasts is chosen by each run.
            close_environment(
                make_environment(environment_of(dataclasses.replace(experiment, action_repeat=1)))
            )


def _print_states(entries: dict[str, Entry]) -> None:
    """Print how many runs of each cell are in which state."""
    counts: dict[str, list[str]] = {}
    for name, entry in entries.items():
        counts.setdefault(name.rpartition("/")[0].replace("/", " "), []).append(entry.state)
    table = Table("runs", *_STATES)
    for cell, states in counts.items():
        table.add_row(cell, *(str(states.count(each)) for each in _STATES))
    table_console(120).print(table)
    figures = sorted({name for entry in entries.values() for name in entry.figures})
    if figures:
        log(f"Figures for --table: {', '.join(figures)}.")


def _print_rows(rows: Sequence[Row], figure: str) -> None:
    """Print mean, spread and all seeds of each row."""
    table = Table("runs", "mean", "spread", "middle half", "95 %", "seeds", title=figure)
    for row in rows:
        missing = [f"{count} {state}" for state, count in sorted(row.missing.items())]
        if not row.strata:
            table.add_row(row.name, "", "", "", "", ", ".join(missing))
            continue
        low, high = bootstrap(row.strata)
        table.add_row(
            row.name,
            f"{row.values.mean():.4g}",
            "" if row.spread is None else f"{row.spread:.2g}",
            f"{interquartile_mean(row.values):.4g}",
            f"{low:.4g} to {high:.4g}",
            " ".join([*(f"{value:.4g}" for value in row.values), *missing]),
        )
    table_console(120).print(table)


def for_arguments(arguments: Sequence[str]) -> type[SweepCommand]:
    """Return the command with its own command line, which is kept with each run."""

    @dataclasses.dataclass(frozen=True)
    class Typed(SweepCommand):
        pass

    Typed.__doc__ = SweepCommand.__doc__
    Typed.command_line = shlex.join(["empower", "sweep", *arguments])
    return Typed
