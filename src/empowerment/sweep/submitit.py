"""SLURM as a backend, by submitit: runs of a sweep are jobs of a queue."""

import os
import time
from pathlib import Path
from typing import Any

import submitit

from empowerment.sweep.executors import Result
from empowerment.sweep.jobs import Failure, Job, Outcome, Train, work

_MOST_JOBS = 500
"""Largest number of jobs in the queue: many clusters allow no more."""

_MINUTES = 24 * 60
"""Time limit of a job; the environment variable SBATCH_TIMELIMIT overrides it."""

_POLL_SECONDS = 0.2


class SlurmQueue:
    """Executor whose runs are jobs of SLURM, or processes of this machine to try it out.

    Args:
        train: Trains a run.
        folder: Where submitit keeps scripts, output and results, on a shared disk.
        address: `auto` for SLURM, `local` for this machine.
        cpus: Number of cores, and so of threads, of each run.
    """

    slots = _MOST_JOBS

    def __init__(self, train: Train, *, folder: Path, address: str, cpus: int):
        if address not in ("auto", "local"):
            raise ValueError(
                f"Expected --address to be auto or local with submitit; got {address}."
            )
        self._executor = submitit.AutoExecutor(folder, "local" if address == "local" else None)
        if address == "auto" and self._executor.cluster != "slurm":
            raise ValueError(
                "Expected SLURM on this machine; there is no srun. Use --address local to try it "
                "out without."
            )
        self._executor.update_parameters(cpus_per_task=cpus, timeout_min=_MINUTES, name="empower")
        if address == "local":
            self.slots = max((os.cpu_count() or 1) // cpus, 1)
        self._train = train
        self._cpus = cpus
        self._jobs: dict[str, submitit.Job[Any]] = {}

    def submit(self, job: Job) -> None:
        """Put a run into the queue."""
        self._jobs[job.name] = self._executor.submit(work, self._train, job, self._cpus)

    def wait(self, seconds: float) -> list[Result]:
        """Wait until jobs have ended, or the time is over."""
        end = time.monotonic() + seconds
        while True:
            done = [name for name, job in self._jobs.items() if job.done()]
            if done or time.monotonic() >= end:
                return [(name, self._result(name)) for name in done]
            time.sleep(_POLL_SECONDS)

    def _result(self, name: str) -> Outcome | Failure:
        try:
            return self._jobs.pop(name).result()
        except Exception as error:  # submitit's own, or whatever the job could not return
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return Failure(f"its job was lost: {lines[0]:.200}")

    def cancel(self, name: str) -> None:
        """Take a run out of the queue, running or not."""
        self._jobs.pop(name).cancel()

    def close(self) -> None:
        """Take all runs out of the queue."""
        for name in list(self._jobs):
            self.cancel(name)
