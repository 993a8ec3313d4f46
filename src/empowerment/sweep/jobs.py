"""One run of a sweep: what a worker is sent, how it trains, and what is left of it.

Nothing is imported here that computes: threads are limited before.
"""

import hashlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empowerment.cache import GRANTED, use_cache

_THREADS = (
    GRANTED,
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Environment variables that limit the threads of XLA and BLAS; libraries read them when they are
imported."""

_LOCKED_SECONDS = 120.0
"""Seconds to wait for a run folder that another process is writing to: a worker that was cut off
from its driver ends within that time."""


@dataclass(frozen=True)
class Job:
    """A run to train.

    Attributes:
        name: Its name in the sweep.
        folder: The run folder.
        settings: Its settings and seed, as in its manifest.
        episodes: Number of episodes to evaluate it by; with 0 it is not evaluated.
        command: Command line that started it, for the report.
    """

    name: str
    folder: Path
    settings: dict[str, Any]
    episodes: int
    command: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What is left of a finished run.

    Attributes:
        figures: Its numbers, by their names.
        hash: SHA-256 of all its files.
        seconds: How long it took.
        core_seconds: Processor time of its training; 0 if it was resumed.
        said: What it said to the user.
    """

    figures: dict[str, float]
    hash: str
    seconds: float = 0.0
    core_seconds: float = 0.0
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why a run has failed."""

    why: str


Train = Callable[[Job], Outcome]
"""Trains a run, or resumes it; a function of a module, so that workers can import it."""


def work(train: Train, job: Job, cpus: int) -> Outcome | Failure:
    """Train a run in a process of its own, with as many threads as it was granted cores."""
    os.environ |= dict.fromkeys(_THREADS, str(cpus))
    use_cache()
    from threadpoolctl import threadpool_limits

    from empowerment.data.environments import describe_error

    try:
        with threadpool_limits(cpus):
            return train(job)
    except Exception as error:  # Of an environment's own making, too: the driver reports it.
        is_ours = isinstance(error, ValueError | OSError)
        return Failure(str(error) if is_ours else describe_error(error))


def train(job: Job) -> Outcome:
    """Train and evaluate a run in its folder, from wherever it was interrupted."""
    from empowerment.runs import evaluate_run, refresh_manifest
    from empowerment.runs.experiment import from_json
    from empowerment.runs.folder import MANIFEST, LockedError
    from empowerment.runs.pipeline import train_run

    start, begun, said = time.monotonic(), time.process_time(), []
    experiment, seed = from_json(job.settings, job.name)
    is_new = not (job.folder / MANIFEST).exists()
    while True:
        try:
            train_run(
                experiment,
                folder=job.folder,
                seed=seed,
                resume=True,
                command=job.command,
                log=said.append,
            )
            break
        except LockedError:
            if time.monotonic() - start > _LOCKED_SECONDS:
                raise
            time.sleep(1.0)
    core_seconds = time.process_time() - begun if is_new else 0.0
    if job.episodes and experiment.has_environment:
        evaluate_run(job.folder, episodes=job.episodes, seed=seed, env=experiment.env)
        refresh_manifest(job.folder)
    return replace(
        read_outcome(job.folder),
        seconds=time.monotonic() - start,
        core_seconds=core_seconds,
        said=tuple(said),
    )


def read_outcome(folder: Path) -> Outcome:
    """Read what is left of a finished run.

    Raises:
        ValueError: If it is not finished.
    """
    from empowerment.files import MAX_JSON, decode, encode, read_bytes
    from empowerment.runs import read_manifest
    from empowerment.settings import flat
    from empowerment.sweep.metrics import bounds

    manifest = read_manifest(folder)
    if not manifest["finished"]:
        raise ValueError(f"Expected the run in {folder} to be finished; it was interrupted.")
    figures: dict[str, Any] = {}
    if along := bounds(folder):
        figures["bound"] = along[-1][1]
    if "evaluation.json" in manifest["files"]:
        path = folder / "evaluation.json"
        text = read_bytes(path, most=MAX_JSON)
        figures |= flat(decode(text, dict[str, Any], what="the figures of a run", source=path))
    digest = hashlib.sha256(encode(manifest["files"])).hexdigest()
    return Outcome({k: float(v) for k, v in figures.items() if _is_figure(v)}, digest)


def _is_figure(value: object) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
