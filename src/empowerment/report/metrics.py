"""The stream of metrics of a run, read while it is being written."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empowerment.files import read_bytes

METRICS = "metrics.jsonl"
"""File in a run folder to which a line is added whenever there are new diagnostics."""

MOST_METRICS = 1 << 30
"""Bytes of the largest file that is read."""

_RENAMED = {"held_out": "validation"}
"""Names of diagnostics in runs of earlier versions."""


@dataclass(frozen=True)
class Metrics:
    """Diagnostics of a stage after some of its updates.

    Attributes:
        stage: Name of the stage.
        round: Number of the round.
        update: Number of updates made.
        values: The diagnostics by name.
    """

    stage: str
    round: int
    update: int
    values: dict[str, float]


def read_metrics(folder: Path) -> tuple[list[Metrics], int]:
    """Read the lines that are whole, and count those that are not.

    The last line may be half written: it is not counted.
    """
    path = folder / METRICS
    if not path.exists():
        return [], 0
    return parse_metrics(read_bytes(path, most=MOST_METRICS))


def parse_metrics(data: bytes) -> tuple[list[Metrics], int]:
    """Read the lines of a stream of metrics; see `read_metrics`."""
    *lines, unfinished = data.split(b"\n")
    read = [_parsed(line) for line in lines if line.strip()]
    last = _parsed(unfinished)
    found = [each for each in (*read, last) if each is not None]
    return found, read.count(None)


def _parsed(line: bytes) -> Metrics | None:
    """Read a line; none if it is damaged."""
    try:
        entry: Any = json.loads(line)
        stage, number, update = entry.pop("stage"), entry.pop("round"), entry.pop("update")
        values = dict(_numbers(entry))
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
        return None
    if not isinstance(stage, str) or not _is_count(number) or not _is_count(update):
        return None
    return Metrics(stage, number, update, values)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _numbers(entry: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in entry.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield _RENAMED.get(name, name), float(value)
