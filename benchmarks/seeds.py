"""Runs over seeds, for tables: a sweep on the cores of this machine.

Runs stay below `OUT/runs`, finished ones are not repeated, interrupted ones resume from their
checkpoints, and failed ones are tried again.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables import Table, write_table
from empowerment.cache import num_cores
from empowerment.cli.console import log, show_progress
from empowerment.files import encode, write_atomic
from empowerment.runs import Experiment
from empowerment.runs.experiment import to_json
from empowerment.runs.folder import open_run
from empowerment.sweep.driver import Options, adopt, drive
from empowerment.sweep.executors import LocalPool
from empowerment.sweep.folder import open_growing, run_folder
from empowerment.sweep.grid import parse_seeds
from empowerment.sweep.jobs import Job, Outcome, Train, read_outcome, train

_RETRIES = 2
_ROWS = "rows.json"


@dataclass(frozen=True)
class Trained:
    """A run of a case with a seed.

    Attributes:
        case: Name of the case.
        seed: The seed.
        folder: The run folder.
        core_seconds: Processor time of the training; 0 if it was resumed.
        why: Why it failed, if it did.
    """

    case: str
    seed: int
    folder: Path
    core_seconds: float
    why: str | None

    @property
    def figures(self) -> dict[str, Any]:
        """What the evaluation found."""
        return json.loads((self.folder / "evaluation.json").read_text("utf-8"))

    @property
    def seconds(self) -> str:
        """Format the processor time."""
        return f"{self.core_seconds:.0f}" if self.core_seconds else ""


@dataclass(frozen=True)
class Sweeper:
    """What all benchmarks that train over seeds have in common on the command line."""

    seeds: tuple[int, ...]
    episodes: int
    out: Path
    jobs: int
    budget: str

    def folder(self, case: str, seed: int) -> Path:
        """Return the folder of a run."""
        return run_folder(self.out, _name(case, seed))

    def train(self, cases: Mapping[str, Experiment], *, evaluate: bool = True) -> list[Trained]:
        """Train cases with all seeds.

        Args:
            cases: Settings, by the name of their folder.
            evaluate: Whether to evaluate each run by its seed.
        """
        settings = {
            (case, seed): to_json(experiment.with_budget(self.budget), seed)
            for case, experiment in cases.items()
            for seed in self.seeds
        }
        return self.run(settings, train, episodes=self.episodes if evaluate else 0)

    def run(
        self, settings: Mapping[tuple[str, int], dict[str, Any]], train: Train, *, episodes: int = 0
    ) -> list[Trained]:
        """Run jobs, given their settings by case and seed."""
        names = {(case, seed): _name(case, seed) for case, seed in settings}
        with (
            open_growing(self.out, {names[at]: given for at, given in settings.items()}) as sweep,
            show_progress(self.out.name) as progress,
        ):
            jobs = {
                names[at]: Job(names[at], sweep.run_folder(names[at]), given, episodes)
                for at, given in settings.items()
            }
            if adopt(sweep, jobs, keep_pruned=False) < len(jobs):
                pool = LocalPool(train, slots=self.jobs, cpus=1)
                drive(sweep, jobs, pool, Options(_RETRIES, prune=False, log=log, progress=progress))
            found = []
            for (case, seed), name in names.items():
                entry = sweep.entries[name]
                why = entry.why if entry.state == "failed" else None
                found.append(Trained(case, seed, jobs[name].folder, entry.core_seconds, why))
            return found

    def write(self, name: str, rows: Table, *, by: tuple[str, ...] = ()) -> None:
        """Write a table to the documentation, or show it alone if the budget was tiny."""
        write_table(name, rows, by=by, store=self.budget == "full")


def _name(case: str, seed: int) -> str:
    return f"{case}/seed-{seed}"


def parser(about: str | None, *, out: str, seeds: str, episodes: int) -> argparse.ArgumentParser:
    """Build a parser with the options that all have, and their defaults."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--seeds", default=seeds, help="such as 0-9 or 0,3,5-7")
    made.add_argument("--episodes", type=int, default=episodes, help="episodes of each evaluation")
    made.add_argument("--out", type=Path, default=Path("results") / out, help="folder of the runs")
    made.add_argument("--jobs", type=int, default=num_cores(), help="runs at a time, a core each")
    made.add_argument("--budget", choices=("smoke", "full"), default="full", help="smoke: tiny")
    return made


def sweeper(options: argparse.Namespace) -> Sweeper:
    """Return what the options say; runs of a tiny budget have a folder of their own."""
    out = (
        options.out
        if options.budget == "full"
        else options.out.with_name(f"{options.out.name}-smoke")
    )
    return Sweeper(parse_seeds(options.seeds), options.episodes, out, options.jobs, options.budget)


def slug(words: str) -> str:
    """Return words as the name of a folder."""
    return "-".join(re.findall(r"[\w.=]+", words))


def finished(runs: Iterable[Trained]) -> list[Trained]:
    """Return the runs that did not fail; say of the others why."""
    kept = []
    for run in runs:
        if run.why is None:
            kept.append(run)
        else:
            print(f"{run.case}, seed {run.seed}: {run.why}", file=sys.stderr, flush=True)
    return kept


def keep_rows(
    job: Job, measure: Callable[[], Mapping[str, Sequence[Mapping[str, object]]]]
) -> Outcome:
    """Measure something that is no run, and keep its rows in a folder like one of a run."""
    with open_run(job.folder, job.settings, resume=True, log=log) as run:
        write_atomic(job.folder / _ROWS, encode(measure()))
        run.write_manifest(finished=True)
    return read_outcome(job.folder)


def read_rows(run: Trained) -> dict[str, Table]:
    """Read what `keep_rows` kept."""
    return json.loads((run.folder / _ROWS).read_text("utf-8"))
