"""The driver of a sweep: hands runs to an executor until all are finished or have failed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from empowerment.sweep.executors import Executor
from empowerment.sweep.folder import Sweep
from empowerment.sweep.jobs import Job, Outcome, read_outcome
from empowerment.sweep.metrics import MedianRule, bounds
from empowerment.sweep.scheduler import Entry, Scheduler, released
from empowerment.types import Progress

_POLL_SECONDS = 0.5
_PRUNE_SECONDS = 5.0
"""Seconds between two looks at the metrics of all running runs."""


@dataclass(frozen=True)
class Options:
    """How a sweep is driven.

    Attributes:
        retries: How often a failed run is retried.
        prune: Whether runs that are clearly worse than others are stopped.
        log: Receives a line for each run that has ended.
        progress: Receives progress.
    """

    retries: int
    prune: bool
    log: Callable[[str], None]
    progress: Progress


def adopt(sweep: Sweep, jobs: dict[str, Job], *, keep_pruned: bool) -> int:
    """Bring what is known about the runs up to date with their folders; return how many are done.

    A driver that was killed may not have noted the last ones.
    """
    for name, entry in sweep.entries.items():
        has_manifest = (jobs[name].folder / "manifest.json").exists()
        if entry.state == "finished" and not has_manifest:  # Removed by the user.
            entry.state = "running"
        if entry.state != "finished" and has_manifest and _is_done(jobs[name]):
            outcome = read_outcome(jobs[name].folder)
            entry.state, entry.why = "finished", None
            entry.figures, entry.hash = outcome.figures, outcome.hash
    released(sweep.entries.values(), keep_pruned=keep_pruned)
    return sum(entry.state == "finished" for entry in sweep.entries.values())


def _is_done(job: Job) -> bool:
    """Return whether nothing is left to do for a run: it is trained, and evaluated if need be."""
    from empowerment.runs import read_manifest

    manifest = read_manifest(job.folder)
    needs_figures = job.episodes > 0 and any(job.settings[each] for each in ("world", "env"))
    is_evaluated = "evaluation.json" in manifest["files"]
    return manifest["finished"] and (is_evaluated or not needs_figures)


def drive(sweep: Sweep, jobs: dict[str, Job], executor: Executor, options: Options) -> None:
    """Train all runs of a sweep that wait.

    Args:
        sweep: The sweep.
        jobs: The jobs of its runs.
        executor: Trains them.
        options: How.
    """
    scheduler = Scheduler(sweep.entries, retries=options.retries)
    pruner = _Pruner(sweep, jobs) if options.prune else None
    running: set[str] = set()
    total = len(sweep.entries)
    try:
        while not scheduler.is_complete:
            while len(running) < executor.slots and (name := scheduler.start()) is not None:
                executor.submit(jobs[name])
                running.add(name)
            for name, result in executor.wait(_POLL_SECONDS):
                running.discard(name)
                state = scheduler.end(name, result)
                said = result.said if isinstance(result, Outcome) else ()
                for sentence in (*(f"{name}: {each}" for each in said), _line(name, sweep)):
                    options.log(sentence)
                if pruner is not None and state == "finished":
                    pruner.add(name)
            for name, why in pruner.complaints(running) if pruner is not None else ():
                executor.cancel(name)
                running.discard(name)
                scheduler.prune(name, why)
                options.log(_line(name, sweep))
            sweep.save()
            done = total - scheduler.count("waiting") - len(running)
            options.progress(f"{len(running)} running", done, total)
    finally:
        executor.close()
        sweep.save(at_once=True)


def _line(name: str, sweep: Sweep) -> str:
    """Describe the latest event of a run in a line."""
    entry: Entry = sweep.entries[name]
    if entry.state == "finished":
        return f"{name}: finished in {entry.seconds:.0f} s, {str(entry.hash)[:12]}"
    if entry.state == "pruned":
        return f"{name}: stopped ({entry.why})"
    again = "failed" if entry.state == "failed" else "failed and is tried again"
    return f"{name}: {again} (attempt {entry.attempts}: {entry.why})"


class _Pruner:
    """Looks at the streamed metrics of running runs every few seconds."""

    def __init__(self, sweep: Sweep, jobs: dict[str, Job]):
        self._jobs = jobs
        self._rule = MedianRule()
        self._next = 0.0
        for name, entry in sweep.entries.items():
            if entry.state == "finished":
                self.add(name)

    def add(self, name: str) -> None:
        """Compare further runs with one that has finished, too."""
        self._rule.add(_group(name), bounds(self._folder(name)))

    def complaints(self, running: set[str]) -> list[tuple[str, str]]:
        """Return which runs are clearly worse, and why."""
        if time.monotonic() < self._next:
            return []
        self._next = time.monotonic() + _PRUNE_SECONDS
        found = []
        for name in sorted(running):
            why = self._rule.complaint(_group(name), bounds(self._folder(name)))
            if why is not None:
                found.append((name, why))
        return found

    def _folder(self, name: str) -> Path:
        return self._jobs[name].folder


def _group(name: str) -> str:
    """Return the preset or environment of a run."""
    return name.partition("/")[0]
