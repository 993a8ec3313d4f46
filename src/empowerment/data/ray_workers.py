"""Episodes on a Ray cluster: an actor for each worker, with a heartbeat; lost ones are replaced."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import ray
from ray.exceptions import RayError

from empowerment.cluster import connect
from empowerment.data.environments import describe_error
from empowerment.data.episodes import Actor, Job
from empowerment.data.trajectories import Episode
from empowerment.data.workers import EpisodeQueue, FailedEpisode

_POLL_SECONDS = 0.1


class _Remote:
    """What runs on the cluster: one environment with its actor.

    Two threads serve it, so that it answers while an episode runs.
    """

    def __init__(self, job: Job):
        self._job = job
        self._made: tuple[gymnasium.Env, Actor] | None = None
        self._steps = 0

    def make(self) -> str | None:
        """Make environment and actor; return what is wrong with them."""
        try:
            self._made = self._job.make()
        except BaseException as error:  # Whatever it raises, it is not the keyboard.
            return str(error) if isinstance(error, ValueError) else describe_error(error)
        return None

    def run(self, index: int) -> Episode | str:
        """Run an episode; return why it failed, if it did."""
        self._steps = 0
        try:
            made = self._made or self._job.make()
            self._made = None
            episode = self._job.run(*made, index=index, heartbeat=self._note)
        except BaseException as error:
            return describe_error(error)
        self._made = made
        return episode

    def beat(self) -> int:
        """Return the number of steps of the episode so far."""
        return self._steps

    def _note(self, steps: int) -> None:
        self._steps = steps


class _Worker:
    """A worker of the cluster as its driver sees it."""

    def __init__(self, remote: Any, job: Job):
        self._actor = remote.remote(job)
        self.task: Any = self._actor.make.remote()
        self.index: int | None = None
        self.steps = 0
        self._is_ready = False
        self._beat: Any = None
        self._last = time.monotonic()

    @property
    def is_free(self) -> bool:
        """Whether it can run an episode."""
        return self.task is None

    def begin(self, index: int) -> None:
        """Run an episode."""
        self.index, self.steps, self._last = index, 0, time.monotonic()
        self.task = self._actor.run.remote(index)

    def end(self) -> Episode | str | None:
        """Take the result of its task."""
        result: Any = ray.get([self.task])[0]
        self.task = None
        if not self._is_ready and result is not None:
            raise ValueError(result)
        self._is_ready, self.steps = True, 0
        return result

    def is_hung(self, timeout: float) -> bool:
        """Return whether no step was taken for longer than the timeout; the start may wait."""
        if self.index is None:
            return False
        if self._beat is None:
            self._beat = self._actor.beat.remote()
        if ray.wait([self._beat], timeout=0)[0]:
            steps: Any = ray.get(self._beat)
            self._beat = None
            if steps != self.steps:
                self.steps, self._last = steps, time.monotonic()
        return time.monotonic() - self._last > timeout

    def kill(self) -> None:
        """Kill it."""
        ray.kill(self._actor)


def run_on_ray(
    job: Job,
    queue: EpisodeQueue,
    *,
    address: str,
    workers: int,
    timeout: float,
    show: Callable[[int], None],
) -> None:
    """Run episodes on a Ray cluster until the queue is complete; see `run_workers`.

    Args:
        job: The collection.
        queue: Receives the episodes.
        address: Address of the cluster.
        workers: The number of cores; those that the cluster does not have are waited for.
        timeout: The seconds in one step or reset after which a worker counts as hung.
        show: Called with the number of steps so far.
    """
    was_connected = ray.is_initialized()
    connect(address)
    decorate: Any = ray.remote
    remote = decorate(num_cpus=1, max_restarts=0, max_concurrency=2)(_Remote)
    pool: list[_Worker] = []
    try:
        pool += [_Worker(remote, job) for _ in range(workers)]
        while not queue.is_complete:
            for worker in pool:
                if worker.is_free and queue.wants_more:
                    worker.begin(queue.take_index())
            tasks = [worker.task for worker in pool if worker.task is not None]
            ready, _ = ray.wait(tasks, timeout=_POLL_SECONDS)
            for slot, worker in enumerate(pool):
                if not _serve(worker, queue, timeout, is_done=worker.task in ready):
                    worker.kill()
                    queue.restarts += 1
                    pool[slot] = _Worker(remote, job)
            show(queue.num_received + sum(worker.steps for worker in pool))
    finally:
        for worker in pool:
            worker.kill()
        if not was_connected:
            ray.shutdown()


def _serve(worker: _Worker, queue: EpisodeQueue, timeout: float, *, is_done: bool) -> bool:
    """Take what a worker has to say; return whether it is still of use."""
    index = worker.index
    try:
        if not is_done:
            if not worker.is_hung(timeout):
                return True
            detail = "a worker was killed since its heartbeat had stopped"
            queue.add(index or 0, FailedEpisode(index or 0, "hung", detail))
            return False
        result, worker.index = worker.end(), None
    except RayError as error:
        detail = f"a worker of the cluster was lost: {type(error).__name__}"
        if index is None:
            queue.note_failure(f"died: {detail}")
        else:
            queue.lose(index, detail)
        return False
    if index is not None and result is not None:
        failed = isinstance(result, str)
        queue.add(index, FailedEpisode(index, "failed", result) if failed else result)
    return True
