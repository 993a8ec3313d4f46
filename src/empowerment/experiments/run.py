"""Run folders: what was asked for, how far it came, and what came out, safe from interruption."""

import contextlib
import fcntl
import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from empowerment.experiments.config import difference
from empowerment.files import write_atomic
from empowerment.storage import load_tree, read_about, save_tree

_TreeT = TypeVar("_TreeT")

_FORMAT = "empowerment run, version 1"
_MANIFEST, _LOCK, _CHECKPOINTS = "manifest.json", ".lock", "checkpoints"
_NUM_KEPT = 2
"""Checkpoints that are kept: should the newest be damaged, there is one before it."""

_CALLS_PER_CHECKPOINT = 5

Say = Callable[[str], None]


class Run:
    """A run folder that is open for training; nobody else can open it meanwhile.

    Args:
        folder: The folder.
        settings: What was asked for.
        say: Tells the user.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], say: Say):
        self.folder = folder
        self.settings = settings
        self.say = say

    def save_checkpoint(self, stage: str, count: int, tree: Any, about: dict[str, Any]) -> None:
        """Keep where a stage stands, and forget all but the newest two of it."""
        path = self._checkpoint(stage, count)
        save_tree(tree, path, about=about)
        for old in self._counts(stage)[:-_NUM_KEPT]:
            self._remove(stage, old)

    def load_checkpoint(self, stage: str, like: _TreeT) -> tuple[_TreeT, dict[str, Any]] | None:
        """Give where a stage stood: its newest checkpoint, or the one before if it is damaged."""
        for count in reversed(self._counts(stage)):
            path = self._checkpoint(stage, count)
            try:
                return load_tree(like, path), read_about(path)
            except (ValueError, OSError) as error:
                self.say(f"The checkpoint {path} cannot be used: {error} Trying the one before.")
                self._remove(stage, count)
        return None

    def end_stage(self, stage: str, count: int) -> None:
        """Keep only the last checkpoint of a stage that is done."""
        for old in self._counts(stage):
            if old != count:
                self._remove(stage, old)

    def write_manifest(self, *, finished: bool) -> None:
        """Write what was asked for, with what, and the SHA-256 of every file."""
        names = ("empowerment", "jax", "equinox", "optax", "numpy")
        manifest = {
            "format": _FORMAT,
            "settings": self.settings,
            "versions": {"python": platform.python_version(), **{n: version(n) for n in names}},
            "finished": finished,
            "files": hashes(self.folder) if finished else {},
        }
        write_atomic(self.folder / _MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())

    def _checkpoint(self, stage: str, count: int) -> Path:
        return self.folder / _CHECKPOINTS / f"{stage}-{count:07d}.safetensors"

    def _counts(self, stage: str) -> list[int]:
        found = (self.folder / _CHECKPOINTS).glob(f"{stage}-*.json")
        return sorted(int(path.stem.rsplit("-", 1)[1]) for path in found)

    def _remove(self, stage: str, count: int) -> None:
        path = self._checkpoint(stage, count)
        path.with_suffix(".json").unlink(missing_ok=True)  # First what makes it whole.
        path.unlink(missing_ok=True)


class Keeper:
    """Saves a checkpoint now and then, and when training is interrupted."""

    def __init__(self, run: Run, stage: str):
        self.run, self.stage = run, stage
        self.newest: tuple[int, Any, dict[str, Any]] | None = None

    def keep(self, calls: int, made: int, state: Any, about: dict[str, Any]) -> None:
        """Remember where training stands; every few calls on disk."""
        self.newest = (made, state, about)
        if calls % _CALLS_PER_CHECKPOINT == 0:
            self.run.save_checkpoint(self.stage, made, state, about)

    def __enter__(self) -> "Keeper":
        """Begin to watch a stage."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Save where the stage stands if the user interrupts it."""
        if kind is KeyboardInterrupt and self.newest is not None:
            self.run.save_checkpoint(self.stage, *self.newest)


@contextlib.contextmanager
def open_run(folder: Path, settings: dict[str, Any], *, resume: bool, say: Say) -> Iterator[Run]:
    """Open a run folder: a new one, or one that was begun with the same settings.

    Args:
        folder: The folder; it is made if need be.
        settings: What is asked for.
        resume: Whether to go on with what is there.
        say: Tells the user.

    Raises:
        ValueError: If the folder is in use, has a run that is not to be resumed, or one with
            other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Expected {folder} to be free; another run is writing to it right now."
            ) from None
        run = Run(folder, settings, say)
        if (folder / _MANIFEST).exists():
            if not resume:
                raise ValueError(
                    f"Expected {folder} to be a new folder; there is a run in it. Go on with it by "
                    "--resume, or name another."
                )
            before = read_manifest(folder)["settings"]
            if before != settings:
                raise ValueError(
                    f"Expected the settings of the run in {folder}; {difference(before, settings)}."
                )
        else:
            run.write_manifest(finished=False)
        yield run


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check the manifest of a run folder."""
    path = folder / _MANIFEST
    if not path.is_file():
        raise ValueError(f"Expected {folder} to be a run folder; there is no {_MANIFEST} in it.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"Expected {path} to be a manifest; got {error}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ValueError(f"Expected {path} to be the manifest of a run; it is not.")
    return manifest


def refresh_manifest(folder: Path) -> None:
    """Write the SHA-256 of every file anew, after something was added to a finished run."""
    manifest = {**read_manifest(folder), "files": hashes(folder)}
    write_atomic(folder / _MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())


def hashes(folder: Path) -> dict[str, str]:
    """Give the SHA-256 of every file of a run but the manifest, by its name in the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.name not in (_MANIFEST, _LOCK) and not path.name.startswith(".")
    }
