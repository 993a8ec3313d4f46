"""Resumable stages of a run: checkpoints while training, results afterwards, streamed metrics."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from empowerment.files import check_writable, convert, decode, read_bytes, write_atomic
from empowerment.optimise import Callback, Snapshot
from empowerment.report import METRICS, MOST_METRICS
from empowerment.runs.folder import Run
from empowerment.storage import is_saved, load_tree, read_about, save_tree
from empowerment.types import Progress

T = TypeVar("T")

_CALLS_PER_CHECKPOINT = 5

History = list[tuple[int, dict[str, float]]]
"""After each call: number of updates, and diagnostics; see `empowerment.optimise.Snapshot`."""

Describe = Callable[[str, Snapshot], str]
"""Describes the latest diagnostics of a stage in a few words, for the progress bar."""


def named(stage: str, number: int) -> str:
    """Return the name of a stage in a round; the first round goes without a number."""
    return f"{stage}-{number}" if number else stage


def path_of(folder: Path, stage: str, number: int) -> Path:
    """Return the file of the result of a stage in a round."""
    return folder / f"{named(stage, number)}.safetensors"


class _Checkpoint(TypedDict):
    """The description of a checkpoint: its snapshot but for the arrays."""

    history: History
    total: int
    stopped: str


class RunHooks:
    """Stores the stages of a round in a run folder; see `empowerment.agent.Hooks`."""

    def __init__(self, run: Run, number: int, progress: Progress, describe: Describe):
        self._run = run
        self._number = number
        self._progress = progress
        self._describe = describe

    def stage(self, name: str, like: T, train: Callable[[Callback], tuple[T, dict[str, Any]]]) -> T:
        """Load the result of a stage if it is complete; else train it from its checkpoint on."""
        path, stage = path_of(self._run.folder, name, self._number), named(name, self._number)
        if self.is_complete(name):
            return load_tree(like, path)
        for file in (path, path.with_suffix(".json")):
            check_writable(file)  # Now, rather than after the training.
        self._progress(stage, 0, 1)
        newest: Snapshot | None = None

        def resume(fresh: Snapshot) -> Snapshot:
            stored = self._run.load_checkpoint(stage, (fresh.state, fresh.best), _Checkpoint)
            at = fresh
            if stored is not None:
                (state, best), about = stored
                at = Snapshot(state, about["history"], about["total"], about["stopped"], best)
            self._rewrite_metrics(name, at.history)
            return at

        def save(at: Snapshot) -> None:
            about = {"history": at.history, "total": at.total, "stopped": at.stopped}
            self._run.save_checkpoint(stage, at.history[-1][0], (at.state, at.best), about)

        def on_update(at: Snapshot) -> None:
            nonlocal newest
            newest = at
            self._append_metrics(name, at)
            if len(at.history) % _CALLS_PER_CHECKPOINT == 0:
                save(at)
            self._progress(f"{stage}, {self._describe(name, at)}", at.history[-1][0], at.total)

        try:
            result, about = train(Callback(on_update, resume))
        except KeyboardInterrupt:
            if newest is not None:
                save(newest)
            raise
        if about.get("warning"):
            self._run.log(about["warning"])
        save_tree(result, path, about=about)
        self._run.remove_checkpoints(stage)
        return result

    def is_complete(self, name: str) -> bool:
        """Return whether a stage is complete, and tidy up after it if so.

        A stage of which a file was lost is not: it is trained anew, to the same bits.

        Raises:
            ValueError: If its files are there but damaged.
        """
        path, stage = path_of(self._run.folder, name, self._number), named(name, self._number)
        if not is_saved(path):
            return False
        about = read_about(path)
        try:
            history = convert(about.get("history"), History, what="a history", source=path)
        except ValueError:  # Not all stages have one, and in version 1 it was another.
            pass
        else:
            self._rewrite_metrics(name, history)
        self._run.remove_checkpoints(stage)
        return True

    def _line(self, stage: str, entry: tuple[int, dict[str, float]]) -> str:
        count, seen = entry
        return json.dumps({"stage": stage, "update": count, **seen, "round": self._number}) + "\n"

    def _append_metrics(self, stage: str, at: Snapshot) -> None:
        line = self._line(stage, at.history[-1]).encode()
        with (self._run.folder / METRICS).open("ab") as file:
            file.write(line)
        self._run.on_metrics(line)

    def _rewrite_metrics(self, stage: str, history: History) -> None:
        """Write the history of a stage as the last of its round.

        Since the stages of a run go through this in their order, all lines end up in it, whichever
        of them were lost.
        """
        path = self._run.folder / METRICS
        text = read_bytes(path, most=MOST_METRICS) if path.exists() else b""
        lines: list[tuple[int, str]] = []
        for line in text.splitlines():
            try:
                entry = decode(line, dict[str, Any], what="metrics", source=path)
                if (entry["stage"], entry["round"]) != (stage, self._number):
                    lines.append((int(entry["round"]), line.decode() + "\n"))
            except (ValueError, TypeError, KeyError):  # Cut off by a kill, or damaged.
                continue
        lines += [(self._number, self._line(stage, entry)) for entry in history]
        lines.sort(key=lambda line: line[0])
        data = "".join(line for _, line in lines).encode()
        write_atomic(path, data)
        self._run.on_metrics(data)
