"""Ray as a backend: runs of a sweep are tasks of a cluster."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from empowerment.cluster import connect
from empowerment.packing import pack_folder, unpack_folder
from empowerment.sweep.executors import Result
from empowerment.sweep.jobs import Failure, Job, Outcome, Train, work

_MOST_TASKS = 10_000
"""Largest number of tasks that wait in Ray: enough for any cluster to grow by."""


@dataclass(frozen=True)
class _Packed:
    """A result that is sent back with its run folder, as a tar."""

    result: Outcome | Failure
    folder: bytes | None


def _task(train: Train, job: Job, cpus: int, *, pack: bool) -> _Packed:
    """Train a run in a worker of Ray, on a disk of its own if the folder is to be sent back."""
    if not pack:
        return _Packed(work(train, job, cpus), None)
    with tempfile.TemporaryDirectory() as here:
        folder = Path(here) / "run"
        result = work(train, replace(job, folder=folder), cpus)
        return _Packed(result, pack_folder(folder) if isinstance(result, Outcome) else None)


class RayCluster:
    """Executor whose runs are tasks of a Ray cluster.

    Ray retries nothing: that a worker or a node is lost is a failure like others, and counted by
    the scheduler.

    Args:
        train: Trains a run.
        address: Address of the cluster, see `empowerment.cluster.connect`.
        cpus: Number of cores, and so of threads, of each run.
        collect: Whether run folders are sent back, since no disk is shared.
    """

    slots = _MOST_TASKS

    def __init__(self, train: Train, *, address: str, cpus: int, collect: bool):
        connect(address)
        largest = max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"])
        if cpus > largest:
            ray.shutdown()
            raise ValueError(
                f"Expected a node with the {cpus} cores of --cpus-per-run; the largest of the "
                f"cluster has {largest:.0f}."
            )
        options: Any = ray.remote(num_cpus=cpus, max_retries=0)
        self._task = options(_task)
        self._train = train
        self._cpus = cpus
        self._collect = collect
        self._jobs: dict[Any, Job] = {}

    def submit(self, job: Job) -> None:
        """Send a run to the cluster."""
        task = self._task.remote(self._train, job, self._cpus, pack=self._collect)
        self._jobs[task] = job

    def wait(self, seconds: float) -> list[Result]:
        """Wait until tasks have ended, or the time is over."""
        ready, _ = ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        if ready:  # And all others that are.
            ready, _ = ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        return [self._result(task) for task in ready]

    def _result(self, task: Any) -> Result:
        job = self._jobs.pop(task)
        try:
            packed: _Packed = ray.get(task)
        except RayError as error:
            reason = (str(error).strip().splitlines() or ["no reason is given"])[0]
            return job.name, Failure(f"its worker was lost: {type(error).__name__}, {reason:.200}")
        if packed.folder is not None:
            try:
                unpack_folder(packed.folder, job.folder)
            except (OSError, ValueError) as error:
                return job.name, Failure(f"its folder could not be stored: {error}")
        return job.name, packed.result

    def cancel(self, name: str) -> None:
        """Kill the worker of a run."""
        task = next(task for task, job in self._jobs.items() if job.name == name)
        del self._jobs[task]
        ray.cancel(task, force=True)

    def close(self) -> None:
        """Kill all workers, and disconnect."""
        ray.shutdown()
