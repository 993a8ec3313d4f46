"""The folder of a sweep: `sweep.json`, one folder for each run, and a lock."""

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec

from empowerment.files import encode, read_json, write_atomic
from empowerment.runs.experiment import to_json
from empowerment.runs.folder import locked
from empowerment.settings import difference
from empowerment.sweep.grid import Grid, Point
from empowerment.sweep.jobs import Job
from empowerment.sweep.scheduler import Entry

_FILE, _RUNS = "sweep.json", "runs"
_FORMAT = "empowerment sweep, version 1"

_SECONDS, _SHARE = 2.0, 0.05
"""Least seconds between two writes of `sweep.json`, and largest share of the time they take. What
a killed driver did not write is read from the run folders."""


class _Content(TypedDict):
    """What `sweep.json` says; its SHA-256 is of all other fields."""

    format: Literal["empowerment sweep, version 1"]
    grid: dict[str, Any]
    bases: dict[str, dict[str, Any]]
    runs: dict[str, Entry]
    sha256: str


class Sweep:
    """The folder of a sweep, locked against other drivers.

    Attributes:
        folder: The folder.
        entries: What is known about its runs, by their names.
    """

    def __init__(
        self,
        folder: Path,
        grid: Grid | None,
        entries: dict[str, Entry],
        others: dict[str, Entry] | None = None,
    ):
        self.folder = folder
        self.entries = entries
        self._others = others or {}
        self._grid = {} if grid is None else _facts(grid)
        bases = {} if grid is None else grid.bases
        self._bases = {name: to_json(each, 0) for name, each in bases.items()}
        self._next = 0.0

    def jobs(self, points: list[Point], *, episodes: int, command: str | None) -> dict[str, Job]:
        """Return the jobs of all runs, by their names."""
        return {
            each.name: Job(each.name, self.run_folder(each.name), each.settings, episodes, command)
            for each in points
        }

    def run_folder(self, name: str) -> Path:
        """Return the folder of a run."""
        return run_folder(self.folder, name)

    def save(self, *, at_once: bool = False) -> None:
        """Write `sweep.json`, unless it was written just now."""
        start = time.monotonic()
        if start < self._next and not at_once:
            return
        content = {
            "format": _FORMAT,
            "grid": self._grid,
            "bases": self._bases,
            "runs": msgspec.to_builtins({**self._others, **self.entries}),
        }
        write_atomic(self.folder / _FILE, encode({**content, "sha256": _digest(content)}))
        end = time.monotonic()
        self._next = end + max(_SECONDS, (end - start) / _SHARE)


@contextlib.contextmanager
def open_sweep(folder: Path, grid: Grid, points: list[Point]) -> Iterator[Sweep]:
    """Open the folder of a sweep: a new one, or one that was begun with the same grid.

    Raises:
        ValueError: If another driver has it, or it is of another grid.
    """
    with _locked_folder(folder) as (folder, content):
        if content is not None:
            if content["grid"] != _facts(grid):
                raise ValueError(
                    f"Expected the grid of the sweep in {folder}; "
                    f"{difference(content['grid'], _facts(grid))}. Choose another folder."
                )
            if list(content["runs"]) != [point.name for point in points]:
                raise ValueError(f"Expected the runs of the sweep in {folder}; they differ.")
            yield Sweep(folder, grid, content["runs"])
            return
        entries = {point.name: Entry({**point.changes, "seed": point.seed}) for point in points}
        sweep = Sweep(folder, grid, entries)
        sweep.save(at_once=True)
        yield sweep


@contextlib.contextmanager
def open_growing(folder: Path, settings: Mapping[str, dict[str, Any]]) -> Iterator[Sweep]:
    """Open a sweep without a grid: whatever runs are asked for are added to those that it has.

    Args:
        folder: The folder, a new one or one that was opened like this before.
        settings: Settings of the runs that are asked for, by their names; other runs stay as they
            are.

    Raises:
        ValueError: If another driver has it, or a run was begun with other settings.
    """
    with _locked_folder(folder) as (folder, content):
        known = {} if content is None else content["runs"]
        entries = {}
        for name, given in settings.items():
            now: dict[str, Any] = json.loads(encode(given))
            entries[name] = entry = known.pop(name, None) or Entry(now)
            if entry.settings != now:
                raise ValueError(
                    f"Expected the settings of {name} in {folder}; "
                    f"{difference(entry.settings, now)}. Choose another folder."
                )
        yield Sweep(folder, None, entries, known)


@contextlib.contextmanager
def _locked_folder(folder: Path) -> Iterator[tuple[Path, _Content | None]]:
    """Lock the folder of a sweep, and read what it says if it is not new."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if (folder / _FILE).exists():
            yield folder, _read(folder)
            return
        if any(path.name != ".lock" for path in folder.iterdir()):
            raise ValueError(
                f"Expected {folder} to be a new folder or one of a sweep; it has other files. "
                "Choose another folder."
            )
        yield folder, None


def run_folder(folder: Path, name: str) -> Path:
    """Return the folder of a run of a sweep."""
    return folder / _RUNS / name


def read_entries(folder: Path) -> dict[str, Entry]:
    """Read what is known about the runs of a sweep."""
    if not (folder / _FILE).exists():
        raise ValueError(f"Expected {folder} to be the folder of a sweep; it has no {_FILE}.")
    return _read(folder)["runs"]


def _read(folder: Path) -> _Content:
    path = folder / _FILE
    content: _Content = read_json(path, _Content, what="the file of a sweep")
    fields = msgspec.to_builtins({k: v for k, v in content.items() if k != "sha256"})
    if _digest(fields) != content["sha256"]:
        raise ValueError(
            f"Expected {path} to be as it was written; the SHA-256 differs. The file is damaged or "
            "was changed."
        )
    return content


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(encode(content)).hexdigest()


def _facts(grid: Grid) -> dict[str, Any]:
    """Return a grid as JSON."""
    return msgspec.json.decode(msgspec.json.encode(grid))
