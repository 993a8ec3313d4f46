"""Workers that run episodes in processes of their own; those that die or hang are replaced."""

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import cast

from empowerment.data.episodes import Job, run_episode
from empowerment.data.trajectories import Episode

_POLL_SECONDS = 0.1
_START_SECONDS = 120.0
"""What a process may take to import and to make the environment, however busy the machine."""

_PATIENCE = 5
"""Losses that are borne in any case; then, while they are no more than half."""


@dataclass(frozen=True)
class FailedEpisode:
    """An episode that did not come to its end.

    Attributes:
        index: Its number.
        why: `died` and `hung` are of a worker, `failed` is of the environment or policy.
        detail: What is known about it.
    """

    index: int
    why: str
    detail: str


@dataclass
class EpisodeQueue:
    """Episodes as they come in, and those that are wanted, in the order of their numbers.

    Who runs them and which are first makes no difference: the result is the shortest run of
    numbers that has enough steps.
    """

    steps: int
    episodes: list[Episode] = field(default_factory=list)
    failed: list[FailedEpisode] = field(default_factory=list)
    restarts: int = 0
    total: int = 0
    """Transitions in `episodes`."""
    found: int = 0
    """Transitions in all that came in, also out of turn."""
    next_index: int = 0
    """Of the next episode to run."""
    _turn: int = 0
    _waiting: dict[int, Episode | FailedEpisode] = field(default_factory=dict)
    _num_whole: int = 0
    _num_failures: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.total >= self.steps

    @property
    def wants_more(self) -> bool:
        """Whether to begin another episode."""
        return self.found < self.steps

    def take_index(self) -> int:
        """Give the number of the next episode to run."""
        self.next_index += 1
        return self.next_index - 1

    def add(self, index: int, outcome: Episode | FailedEpisode) -> None:
        """Take in what became of an episode."""
        self._waiting[index] = outcome
        if isinstance(outcome, Episode):
            self.found += outcome.length
            self._num_whole += 1
        else:
            self.note_failure(f"{outcome.why}: {outcome.detail}")
        while not self.is_whole and self._turn in self._waiting:
            outcome = self._waiting.pop(self._turn)
            self._turn += 1
            if isinstance(outcome, FailedEpisode):
                self.failed.append(outcome)
                continue
            missing = self.steps - self.total
            self.episodes.append(outcome if outcome.length <= missing else outcome.part(0, missing))
            self.total += min(outcome.length, missing)

    def note_failure(self, what: str) -> None:
        """Give up where most of what comes in are failures."""
        self._num_failures += 1
        if self._num_failures >= max(_PATIENCE, self._num_whole + 1):
            raise ValueError(
                f"Expected the environment to finish its episodes; {self._num_failures} of the "
                f"first {self._num_failures + self._num_whole} did not (the last {what})."
            )


def describe_error(error: BaseException) -> str:
    """Say in one line what went wrong."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@dataclass
class _Worker:
    """A process, and what is known of it."""

    process: BaseProcess
    connection: Connection
    heard: float
    is_ready: bool = False
    index: int | None = None
    steps: int = 0

    def dismiss(self) -> None:
        """End the process, whatever it does."""
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
    """Have processes run episodes until the harvest is whole.

    Args:
        job: What the episodes are of.
        queue: Where they go.
        workers: How many processes.
        timeout: After so many seconds in one step or reset, a worker counts as hung.
        show: Told now and then how many steps are done.
    """
    pool: list[_Worker] = []
    try:
        pool += [_hire(job) for _ in range(workers)]
        looked = time.monotonic()
        while not queue.is_whole:
            for worker in pool:
                if worker.is_ready and worker.index is None and queue.wants_more:
                    worker.index, worker.steps = queue.take_index(), 0
                    worker.heard = time.monotonic()
                    with contextlib.suppress(OSError):  # a dead one is seen below
                        worker.connection.send(worker.index)
            speaking = wait([worker.connection for worker in pool], timeout=_POLL_SECONDS)
            if time.monotonic() - looked > timeout / 2:  # we were asleep, not they
                for worker in pool:
                    worker.heard = time.monotonic()
            looked = time.monotonic()
            for place, worker in enumerate(pool):
                why = _listen(worker, queue, timeout, is_speaking=worker.connection in speaking)
                if why is not None:
                    pool[place] = _replace(worker, why, job, queue)
            show(queue.found + sum(worker.steps for worker in pool))
    finally:
        for worker in pool:
            worker.dismiss()


def _hire(job: Job) -> _Worker:
    """Start a process; a fresh interpreter, since threads do not survive a fork."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, job), daemon=True)
    try:
        process.start()
    except OSError:
        raise
    except Exception as error:  # what cannot be sent raises one of many
        raise ValueError(
            "Expected the environment and the policy to be functions of a module, so that workers "
            f"can import them; got {describe_error(error)}. Or collect with workers=0."
        ) from error
    theirs.close()
    return _Worker(process, cast(Connection, ours), time.monotonic())


def _replace(worker: _Worker, why: str, job: Job, queue: EpisodeQueue) -> _Worker:
    """Start another process for one that died or hung, and write off its episode."""
    worker.dismiss()
    if why == "died":
        detail = f"a worker ended with exit code {worker.process.exitcode}"
    else:
        detail = "a worker was ended after it gave no sign of life for too long"
    queue.restarts += 1
    if worker.index is None:
        queue.note_failure(f"{why}: {detail}")
    else:
        queue.add(worker.index, FailedEpisode(worker.index, why, detail))
    return _hire(job)


def _listen(
    worker: _Worker, queue: EpisodeQueue, timeout: float, *, is_speaking: bool
) -> str | None:
    """Take in what a worker says; tell what is wrong with it, if anything."""
    if not is_speaking:
        allowed = timeout if worker.is_ready else max(timeout, _START_SECONDS)
        is_due = worker.index is not None or not worker.is_ready
        return "hung" if is_due and time.monotonic() - worker.heard > allowed else None
    try:
        kind, said = worker.connection.recv()
    except (EOFError, OSError):
        return "died"
    worker.heard = time.monotonic()
    if kind == "unable":
        raise ValueError(said)
    if kind == "ready":
        worker.is_ready = True
    elif kind == "steps":
        worker.steps = said
    else:
        index = worker.index
        assert index is not None
        worker.index, worker.steps = None, 0
        queue.add(index, said if kind == "whole" else FailedEpisode(index, "failed", said))
    return None


def work(connection: Connection, job: Job) -> None:
    """Run the episodes whose numbers come in; this is what a worker does.

    Args:
        connection: To the one that asks.
        job: What the episodes are of.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asks ends us
    with contextlib.suppress(EOFError, OSError):  # nobody is there any more
        try:
            environment, actor = job.make()
        except Exception as error:
            connection.send(("unable", str(error)))
            return
        connection.send(("ready", None))
        while True:
            index = connection.recv()
            try:
                episode = run_episode(
                    job,
                    environment,
                    actor,
                    index=index,
                    beat=lambda steps: connection.send(("steps", steps)),
                )
            except Exception as error:
                connection.send(("failed", describe_error(error)))
                environment, actor = job.make()
            else:
                connection.send(("whole", episode))
