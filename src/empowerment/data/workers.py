"""Process pool for episodes with a heartbeat; dead or hung workers are restarted."""

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import cast

from empowerment.data.environments import describe_error
from empowerment.data.episodes import Job
from empowerment.data.trajectories import Episode

_POLL_SECONDS = 0.1
_START_SECONDS = 120.0
"""Timeout of the start of a worker, with its imports, on a busy machine."""

_MIN_FAILURES = 5
"""Failures before a collection can be aborted, which it is when most episodes fail."""


@dataclass(frozen=True)
class FailedEpisode:
    """An episode that failed.

    Attributes:
        index: The index of the episode.
        why: `died` or `hung` (the worker), or `failed` (the environment or policy).
        detail: The error or exit code.
    """

    index: int
    why: str
    detail: str


@dataclass
class EpisodeQueue:
    """Episodes as they are received, and those to keep, in the order of their indices.

    The result does not depend on the order of arrival: it is the shortest sequence of
    consecutive indices with enough steps.
    """

    steps: int
    episodes: list[Episode] = field(default_factory=list)
    failed: list[FailedEpisode] = field(default_factory=list)
    restarts: int = 0
    total: int = 0
    """Transitions in `episodes`."""
    num_received: int = 0
    """Transitions in all received episodes, also those out of order."""
    next_index: int = 0
    """Index of the next episode to run."""
    _next_kept: int = 0
    _waiting: dict[int, Episode | FailedEpisode] = field(default_factory=dict)
    _again: list[int] = field(default_factory=list)
    _lost: set[int] = field(default_factory=set)
    _num_completed: int = 0
    _num_failures: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether there are enough transitions."""
        return self.total >= self.steps

    @property
    def wants_more(self) -> bool:
        """Whether to start another episode."""
        return bool(self._again) or self.num_received < self.steps

    def take_index(self) -> int:
        """Return the index of the next episode to run."""
        if self._again:
            return self._again.pop(0)
        self.next_index += 1
        return self.next_index - 1

    def add(self, index: int, outcome: Episode | FailedEpisode) -> None:
        """Add the outcome of an episode."""
        self._waiting[index] = outcome
        if isinstance(outcome, Episode):
            self.num_received += outcome.length
            self._num_completed += 1
        else:
            self.note_failure(f"{outcome.why}: {outcome.detail}")
        while not self.is_complete and self._next_kept in self._waiting:
            outcome = self._waiting.pop(self._next_kept)
            self._next_kept += 1
            if isinstance(outcome, FailedEpisode):
                self.failed.append(outcome)
                continue
            missing = self.steps - self.total
            self.episodes.append(outcome if outcome.length <= missing else outcome.part(0, missing))
            self.total += min(outcome.length, missing)

    def lose(self, index: int, detail: str) -> None:
        """Run an episode whose worker died once more; dead twice, it has failed.

        So it makes no difference to the data that a machine is lost, but an environment that kills
        its worker costs the episode.
        """
        if index in self._lost:
            self.add(index, FailedEpisode(index, "died", detail))
            return
        self._lost.add(index)
        self._again.append(index)

    def note_failure(self, what: str) -> None:
        """Count a failure; abort if most episodes fail."""
        self._num_failures += 1
        if self._num_failures >= max(_MIN_FAILURES, self._num_completed + 1):
            raise ValueError(
                f"Expected the environment to finish its episodes; {self._num_failures} of the "
                f"first {self._num_failures + self._num_completed} did not (the last {what})."
            )


@dataclass
class _Worker:
    """A worker process and its status."""

    process: BaseProcess
    connection: Connection
    last_heartbeat: float
    is_ready: bool = False
    index: int | None = None
    steps: int = 0

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join(timeout=5.0)
        self.connection.close()


def run_workers(
    job: Job,
    queue: EpisodeQueue,
    *,
    workers: int,
    timeout: float,
    show: Callable[[int], None],
) -> None:
    """Run episodes in worker processes until the queue is complete.

    Args:
        job: The collection.
        queue: Receives the episodes.
        workers: The number of processes.
        timeout: The seconds in one step or reset after which a worker counts as hung.
        show: Called with the number of steps so far.
    """
    pool: list[_Worker] = []
    try:
        pool += [_start(job) for _ in range(workers)]
        polled = time.monotonic()
        while not queue.is_complete:
            for worker in pool:
                if worker.is_ready and worker.index is None and queue.wants_more:
                    worker.index, worker.steps = queue.take_index(), 0
                    worker.last_heartbeat = time.monotonic()
                    with contextlib.suppress(OSError):  # a dead worker is handled below
                        worker.connection.send(worker.index)
            readable = wait([worker.connection for worker in pool], timeout=_POLL_SECONDS)
            if time.monotonic() - polled > timeout / 2:
                # The parent was suspended: reset the heartbeats.
                for worker in pool:
                    worker.last_heartbeat = time.monotonic()
            polled = time.monotonic()
            for slot, worker in enumerate(pool):
                why = _receive(worker, queue, timeout, is_readable=worker.connection in readable)
                if why is not None:
                    pool[slot] = _restart(worker, why, job, queue)
            show(queue.num_received + sum(worker.steps for worker in pool))
    finally:
        for worker in pool:
            worker.kill()


def _start(job: Job) -> _Worker:
    """Start a worker by `spawn`, since threads do not survive a fork."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, job), daemon=True)
    try:
        process.start()
    except OSError:
        raise
    except Exception as error:  # pickling raises many types
        raise ValueError(
            "Expected the environment and the policy to be functions of a module, so that workers "
            f"can import them; got {describe_error(error)}. Or collect with workers=0."
        ) from error
    theirs.close()
    return _Worker(process, cast(Connection, ours), time.monotonic())


def _restart(worker: _Worker, why: str, job: Job, queue: EpisodeQueue) -> _Worker:
    """Replace a dead or hung worker; its episode has failed."""
    worker.kill()
    if why == "died":
        detail = f"a worker ended with exit code {worker.process.exitcode}"
    else:
        detail = "a worker was killed since its heartbeat had stopped"
    queue.restarts += 1
    if worker.index is None:
        queue.note_failure(f"{why}: {detail}")
    elif why == "died":
        queue.lose(worker.index, detail)
    else:
        queue.add(worker.index, FailedEpisode(worker.index, why, detail))
    return _start(job)


def _receive(
    worker: _Worker, queue: EpisodeQueue, timeout: float, *, is_readable: bool
) -> str | None:
    """Handle a message of a worker; return why it has to be restarted, if it has to."""
    if not is_readable:
        allowed = timeout if worker.is_ready else max(timeout, _START_SECONDS)
        is_due = worker.index is not None or not worker.is_ready
        return "hung" if is_due and time.monotonic() - worker.last_heartbeat > allowed else None
    try:
        kind, content = worker.connection.recv()
    except (EOFError, OSError):
        return "died"
    worker.last_heartbeat = time.monotonic()
    if kind == "unable":
        raise ValueError(content)
    if kind == "ready":
        worker.is_ready = True
    elif kind == "steps":
        worker.steps = content
    else:
        index = worker.index
        assert index is not None
        worker.index, worker.steps = None, 0
        queue.add(index, content if kind == "done" else FailedEpisode(index, "failed", content))
    return None


def work(connection: Connection, job: Job) -> None:
    """Run the main loop of a worker process: receive indices, run and send their episodes.

    Args:
        connection: To the parent.
        job: The collection.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills its workers
    with contextlib.suppress(EOFError, OSError):  # the parent has exited
        try:
            made = job.make()
        except BaseException as error:  # Whatever it raises, it is not the keyboard.
            is_ours = isinstance(error, ValueError)
            connection.send(("unable", str(error) if is_ours else describe_error(error)))
            return
        connection.send(("ready", None))
        while True:
            index = connection.recv()
            try:
                made = made or job.make()
                episode = job.run(
                    *made,
                    index=index,
                    heartbeat=lambda steps: connection.send(("steps", steps)),
                )
            except BaseException as error:
                connection.send(("failed", describe_error(error)))
                made = None
            else:
                connection.send(("done", episode))
