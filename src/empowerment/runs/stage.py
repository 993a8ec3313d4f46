"""Resumable stages of a run: checkpoints while training, results afterwards, streamed metrics."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from empowerment.files import write_atomic
from empowerment.optimise import Callback, Snapshot
from empowerment.runs.folder import Run
from empowerment.storage import load_tree, save_tree
from empowerment.types import Progress

T = TypeVar("T")

METRICS = "metrics.jsonl"
_CALLS_PER_CHECKPOINT = 5

Describe = Callable[[str, Snapshot], str]
"""Describes the latest diagnostics of a stage in a few words, for the progress bar."""


def named(stage: str, number: int) -> str:
    """Return the name of a stage in a round; the first round goes without a number."""
    return f"{stage}-{number}" if number else stage


def path_of(folder: Path, stage: str, number: int) -> Path:
    """Return the file of the result of a stage in a round."""
    return folder / f"{named(stage, number)}.safetensors"


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
        if path.with_suffix(".json").exists():
            self._run.remove_checkpoints(stage)
            return load_tree(like, path)
        self._progress(stage, 0, 1)
        newest: Snapshot | None = None

        def resume(fresh: Snapshot) -> Snapshot:
            stored = self._run.load_checkpoint(stage, (fresh.state, fresh.best))
            at = fresh
            if stored is not None:
                (state, best), about = stored
                history = [(count, seen) for count, seen in about["history"]]
                at = Snapshot(state, history, about["total"], about["stopped"], best)
            self._rewrite_metrics(name, at)
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
        save_tree(result, path, about=about)
        self._run.remove_checkpoints(stage)
        return result

    def _line(self, stage: str, entry: tuple[int, dict[str, float]]) -> str:
        count, seen = entry
        return json.dumps({"stage": stage, "update": count, **seen, "round": self._number}) + "\n"

    def _append_metrics(self, stage: str, at: Snapshot) -> None:
        with (self._run.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(self._line(stage, at.history[-1]))

    def _rewrite_metrics(self, stage: str, at: Snapshot) -> None:
        """Write the history of a stage that begins or resumes after those of complete stages."""
        path = self._run.folder / METRICS
        before = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        kept = [line + "\n" for line in before[:-1] if not self._is_of(line, stage)]
        lines = [*kept, *(self._line(stage, entry) for entry in at.history)]
        write_atomic(path, "".join(lines).encode())

    def _is_of(self, line: str, stage: str) -> bool:
        entry = json.loads(line)
        return (entry["stage"], entry["round"]) == (stage, self._number)
