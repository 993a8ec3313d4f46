"""Watching runs while they are trained: what their folders say, drawn again and again."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from empowerment.files import check_writable, read_json
from empowerment.report import (
    ROUNDS,
    Metrics,
    Training,
    read_metrics,
    read_rounds,
    write_watch,
)
from empowerment.report.charts import NUM_STYLES
from empowerment.runs.folder import CHECKPOINTS, MANIFEST, Log, read_manifest
from empowerment.runs.stage import named, path_of

_SHOWN = {
    "model": ("validation", "nats a row in validation"),
    "channel": ("bound", "nats"),
    "policy": ("bound", "nats"),
}
"""The diagnostic of each stage that is told in words, and its unit."""

_COUNT = re.compile(r"-(\d{7,})\.json")


def watch_runs(
    folders: Sequence[Path],
    path: Path,
    *,
    every: float = 5.0,
    sleep: Callable[[float], None] = time.sleep,
    log: Log = lambda sentence: None,
) -> None:
    """Draw runs again and again until they are finished.

    Runs are only read. A folder of runs, such as that of a sweep, is watched until it is
    interrupted, since more may begin in it.

    Args:
        folders: Run folders, and folders of runs.
        path: The page.
        every: Seconds between two looks.
        sleep: Waits for some seconds.
        log: Receives sentences for the user.

    Raises:
        ValueError: If a folder has no run, or if no run goes on but one is damaged, after what
            there is of it was drawn.
    """
    if not every > 0:
        raise ValueError(f"Expected the seconds between two looks to be above 0; got {every:g}.")
    for folder in folders:
        if not _runs_in(folder):
            raise ValueError(
                f"Expected {folder} to be a run folder, or one with run folders in it; there is no "
                f"{MANIFEST}. Start the training first."
            )
    check_writable(path)
    is_open = any(not (folder / MANIFEST).exists() for folder in folders)
    found, written = _look_at_all(folders), b""
    log(f"The page is {path}: open it in a browser. Ctrl-C stops watching.")
    try:
        while is_open or any(each.goes_on for each in found):
            written = _draw(found, path, every=every, before=written)
            sleep(every)
            found = _look_at_all(folders)
    except KeyboardInterrupt:
        _draw(found, path, every=None, before=written)
        log(f"Stopped watching; training goes on. The last page is {path}.")
        return
    _draw(found, path, every=None, before=written)
    damaged = [wrong for each in found for wrong in each.training.problems]
    if damaged:
        raise ValueError(f"{damaged[0]} The rest is in {path}.")
    log(f"Nothing is trained any more. The last page is {path}.")


@dataclass(frozen=True)
class _Found:
    """What was found in a run folder; `changed` is when it last had news."""

    training: Training
    goes_on: bool
    changed: float


def _look_at_all(folders: Sequence[Path]) -> list[_Found]:
    runs = [*dict.fromkeys(run for folder in folders for run in _runs_in(folder))]
    return [_look(run, name) for run, name in zip(runs, _names(runs), strict=True)]


def _draw(found: Sequence[_Found], path: Path, *, every: float | None, before: bytes) -> bytes:
    """Draw as many runs as can be told apart, those with the latest news."""
    newest = sorted(found, key=lambda each: -each.changed)[:NUM_STYLES]
    shown = [each.training for each in found if each in newest]
    fewer = f"The {len(shown)} of {len(found)} runs with the latest news. "
    note = "" if len(shown) == len(found) else fewer
    end = " Nothing is being watched any more." if every is None else ""
    note = f"{note}Progress of each stage by the number of its updates.{end}"
    return write_watch(shown, path, note=note, every=every, before=before)


def _runs_in(folder: Path) -> list[Path]:
    """Return a folder that has a run, or those in it that have one."""
    if (folder / MANIFEST).exists():
        return [folder]
    paths = (*folder.glob(f"*/{MANIFEST}"), *folder.glob(f"*/*/{MANIFEST}"))
    return sorted(path.parent for path in paths)


def _names(runs: Sequence[Path]) -> list[str]:
    """Return the name of each folder, or its path where names are not unique."""
    short = [run.resolve().name for run in runs]
    pairs = zip(runs, short, strict=True)
    return [name if short.count(name) == 1 else str(run) for run, name in pairs]


def _look(folder: Path, name: str) -> _Found:
    """Read what there is of a run, whatever is wrong with the rest."""
    problems: list[str] = []
    finished = is_damaged = False
    try:
        finished = read_manifest(folder)["finished"]
    except (ValueError, OSError) as error:
        problems.append(f"This run is damaged. {error}")
        is_damaged = True
    metrics, rounds, changed = list[Metrics](), None, 0.0
    try:
        changed = _last_change(folder)
        metrics, num_bad = read_metrics(folder)
        if num_bad:
            problems.append(
                f"Lines of the metrics of {name} that are damaged and left out: {num_bad}."
            )
        rounds = read_rounds(folder) if (folder / ROUNDS).exists() else None
    except (ValueError, OSError) as error:
        problems.append(str(error))
    state, done = ("finished", None) if finished else _progress(folder, metrics, changed)
    numbers = {each.round for each in metrics}
    fits = {n: error for n in numbers if (error := _fit_error(folder, n)) is not None}
    training = Training(name, state, done, metrics, rounds, fits, problems)
    return _Found(training, not (finished or is_damaged), changed)


def _last_change(folder: Path) -> float:
    """Return when a run last had news, in seconds since the epoch."""
    return max(path.stat().st_mtime for path in (folder, *folder.glob("*.json*")))


def _progress(folder: Path, metrics: Sequence[Metrics], changed: float) -> tuple[str, float | None]:
    """Describe how far a run is that is not finished, and the share of its stage that is done."""
    when = time.strftime("%H:%M:%S", time.localtime(changed))
    if not metrics:
        return f"not finished; no metrics yet; last change at {when}", None
    last = metrics[-1]
    total = _total(folder, named(last.stage, last.round))
    of = "" if total is None else f" of {total:,}"
    name, unit = _SHOWN.get(last.stage, ("", ""))
    value = f", {last.values[name]:.3f} {unit}" if name in last.values else ""
    number = f" of round {last.round}" if last.round else ""
    return (
        f"not finished; {last.stage}{number}, update {last.update:,}{of}{value}; last change at "
        f"{when}",
        None if not total else min(last.update / total, 1.0),
    )


class _Total(msgspec.Struct):
    total: int


class _Checkpoint(msgspec.Struct):
    """The description of a checkpoint, as far as it says how many updates there will be."""

    about: _Total


class _Fit(msgspec.Struct):
    error: float


class _Surrogate(msgspec.Struct):
    """The description of a fit to the bound, as far as it says how far off it is."""

    about: _Fit


def _total(folder: Path, stage: str) -> int | None:
    """Return the number of updates of a stage by its newest checkpoint, if there is one."""
    paths = (folder / CHECKPOINTS).glob(f"{stage}-*.json")
    counted = [path for path in paths if _COUNT.fullmatch(path.name.removeprefix(stage))]
    if not counted:
        return None
    try:
        found: _Checkpoint = read_json(max(counted), _Checkpoint, what="a checkpoint")
    except (ValueError, OSError):  # Removed since, or damaged: then training itself will say so.
        return None
    return found.about.total


def _fit_error(folder: Path, number: int) -> float | None:
    """Return the error of the fit to the bound of a round, if it is fitted."""
    path = path_of(folder, "surrogate", number).with_suffix(".json")
    if not path.exists():
        return None
    try:
        found: _Surrogate = read_json(path, _Surrogate, what="a fit to the bound")
    except (ValueError, OSError):
        return None
    return found.about.error
