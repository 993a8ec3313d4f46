"""Where the runs of a sweep are trained: a protocol, and the cores of this machine."""

import contextlib
import multiprocessing
import os
import signal
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Protocol, cast, runtime_checkable

from empowerment.sweep.jobs import Failure, Job, Outcome, Train, work

Result = tuple[str, Outcome | Failure]
"""Name of a run, and the result of an attempt."""


_END_SECONDS = 10.0
"""Timeout of the end of a process that has sent its result."""


@runtime_checkable
class Executor(Protocol):
    """Trains jobs somewhere else, `slots` at a time; what it does not report is still running."""

    slots: int

    def submit(self, job: Job) -> None: ...  # noqa: D102
    def wait(self, seconds: float) -> list[Result]: ...  # noqa: D102
    def cancel(self, name: str) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


@dataclass(frozen=True)
class _Worker:
    """A process, and where its result comes from."""

    process: BaseProcess
    connection: Connection


class LocalPool:
    """Executor with a process for each run, on this machine.

    Args:
        train: Trains a run.
        slots: Number of runs at a time.
        cpus: Number of cores, and so of threads, of each run.
    """

    def __init__(self, train: Train, *, slots: int, cpus: int):
        self.slots = slots
        self._train = train
        self._cpus = cpus
        self._workers: dict[str, _Worker] = {}

    def submit(self, job: Job) -> None:
        """Start a process, by `spawn`, since threads do not survive a fork."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        arguments = (theirs, self._train, job, self._cpus)
        process = context.Process(target=_main, args=arguments, daemon=True, name=job.name)
        process.start()
        theirs.close()
        self._workers[job.name] = _Worker(process, cast(Connection, ours))

    def wait(self, seconds: float) -> list[Result]:
        """Wait until a process has a result or has died, or the time is over."""
        ready = wait([worker.connection for worker in self._workers.values()], timeout=seconds)
        done = [name for name, each in self._workers.items() if each.connection in ready]
        return [(name, self._result(name)) for name in done]

    def _result(self, name: str) -> Outcome | Failure:
        worker = self._workers.pop(name)
        try:
            result = worker.connection.recv()
        except (EOFError, OSError):
            result = None
        worker.process.join(timeout=_END_SECONDS)
        worker.process.kill()
        worker.connection.close()
        code = worker.process.exitcode
        return result or Failure(f"its worker ended with exit code {code} before it was done")

    def cancel(self, name: str) -> None:
        """Kill a process."""
        worker = self._workers.pop(name)
        worker.process.kill()
        worker.process.join()
        worker.connection.close()

    def close(self) -> None:
        """Kill all processes."""
        for name in list(self._workers):
            self.cancel(name)


def _main(connection: Connection, train: Train, job: Job, cpus: int) -> None:
    """Run the main function of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The driver kills its workers.
    threading.Thread(target=_end_with_driver, daemon=True).start()
    result = work(train, job, cpus)
    with contextlib.suppress(OSError):
        connection.send(result)


def _end_with_driver() -> None:
    """End this process at once when its driver is killed; the run resumes from its checkpoint."""
    driver = multiprocessing.parent_process()
    assert driver is not None
    wait([driver.sentinel])
    os._exit(1)
