"""The metrics of a run as TensorBoard event files; tensorboardX is imported when used."""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empowerment.report import parse_metrics
from empowerment.runs.folder import Run

EVENTS = "tensorboard"
"""Folder in a run folder that has the event files, in a folder for each round."""


class EventWriter:
    """Writes what is new among lines of metrics to event files.

    They are made from the stream of metrics alone: what it had before, of a run that is resumed,
    is written again to new files.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path):
        import tensorboardX

        self._make = tensorboardX.SummaryWriter
        self._folder = folder / EVENTS
        for old in self._folder.rglob("events.out.tfevents.*"):
            old.unlink()
        self._writers: dict[int, Any] = {}
        self._written: set[tuple[int, str, int]] = set()

    def __call__(self, lines: bytes) -> None:
        """Write the lines that are not written yet.

        A line that comes again is the same: training is resumed to the same bits.
        """
        for each in parse_metrics(lines)[0]:
            place = each.round, each.stage, each.update
            if place in self._written:
                continue
            self._written.add(place)
            writer = self._writers.get(each.round)
            if writer is None:
                writer = self._make(str(self._folder / f"round-{each.round}"))
                self._writers[each.round] = writer
            for name, value in each.values.items():
                writer.add_scalar(f"{each.stage}/{name}", value, each.update)
            writer.flush()

    def close(self) -> None:
        """Complete the files."""
        for writer in self._writers.values():
            writer.close()


def check_event_files(*, wanted: bool) -> None:
    """Raise a `ModuleNotFoundError` now if event files are wanted and could not be written."""
    if wanted:
        importlib.import_module("tensorboardX")


@contextlib.contextmanager
def event_files(run: Run, *, wanted: bool) -> Iterator[None]:
    """Write the metrics of a run to event files as well, if that is wanted."""
    if not wanted:
        yield
        return
    writer = EventWriter(run.folder)
    run.on_metrics = writer
    try:
        yield
    finally:
        writer.close()
