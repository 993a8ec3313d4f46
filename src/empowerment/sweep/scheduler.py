"""The scheduler of a sweep: a state machine without clock, files or processes."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from empowerment.sweep.jobs import Failure, Outcome

State = Literal["waiting", "running", "finished", "failed", "pruned"]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """What is known about a run of a sweep.

    Attributes:
        settings: Its settings, where they differ from those of its preset or environment.
        state: Its state.
        attempts: How often it was started.
        why: Why it failed or was stopped, or failed before it was tried again.
        figures: Its numbers once it is finished.
        hash: SHA-256 of its files.
        seconds: How long its last attempt took.
        core_seconds: Processor time of its training; 0 if it was resumed.
    """

    settings: dict[str, Any]
    state: State = "waiting"
    attempts: _Count = 0
    why: str | None = None
    figures: dict[str, float] = {}
    hash: str | None = None
    seconds: float = 0.0
    core_seconds: float = 0.0


class Scheduler:
    """Decides which run is started next, and what a failure means.

    A run that failed goes to the end of the queue, until it has failed once more than it is to be
    retried. The first run of each kind, of which others differ in the seed alone, comes before all
    others: what it compiles they find, and no two compile the same at a time. Else runs come in
    their order.

    Args:
        entries: The runs by their names; it keeps them up to date.
        retries: How often a failed run is retried.
    """

    def __init__(self, entries: dict[str, Entry], *, retries: int):
        self._entries = entries
        self._retries = retries
        waiting = [name for name, each in entries.items() if each.state == "waiting"]
        first = {_kind(name): name for name in reversed(waiting)}
        self._waiting = deque(sorted(waiting, key=lambda name: first[_kind(name)] != name))
        self._counts = Counter(each.state for each in entries.values())

    @property
    def is_complete(self) -> bool:
        """Whether no run is waiting or running."""
        return not self._counts["waiting"] and not self._counts["running"]

    def count(self, state: State) -> int:
        """Return the number of runs in a state."""
        return self._counts[state]

    def start(self) -> str | None:
        """Start the next run, if one is waiting; return its name."""
        while self._waiting:
            name = self._waiting.popleft()
            if self._entries[name].state == "waiting":  # It may have finished after all.
                self._entries[name].attempts += 1
                self._move(name, "running")
                return name
        return None

    def end(self, name: str, result: Outcome | Failure) -> State:
        """Take the result of an attempt; return the new state of the run.

        Results may come twice, or late. A run that is finished stays so, since all attempts end
        with the same bits; a failure counts only for the attempt that is running.
        """
        entry = self._entries[name]
        if isinstance(result, Outcome):
            entry.figures, entry.hash = result.figures, result.hash
            entry.seconds, entry.core_seconds = result.seconds, result.core_seconds
            entry.why = None
            self._move(name, "finished")
        elif entry.state == "running":
            entry.why = result.why
            is_last = entry.attempts > self._retries
            self._move(name, "failed" if is_last else "waiting")
            if not is_last:
                self._waiting.append(name)
        return entry.state

    def prune(self, name: str, why: str) -> None:
        """Stop a running run, since it is worse than others."""
        assert self._entries[name].state == "running"
        self._entries[name].why = why
        self._move(name, "pruned")

    def _move(self, name: str, state: State) -> None:
        entry = self._entries[name]
        self._counts[entry.state] -= 1
        self._counts[state] += 1
        entry.state = state


def _kind(name: str) -> str:
    return name.rpartition("/")[0]


def released(entries: Iterable[Entry], *, keep_pruned: bool) -> None:
    """Let runs wait again that were running when the driver ended, or that had failed.

    Args:
        entries: The runs.
        keep_pruned: Whether runs that were stopped stay so.
    """
    for each in entries:
        if each.state in ("running", "failed") or (each.state == "pruned" and not keep_pruned):
            each.state, each.attempts, each.why = "waiting", 0, None
