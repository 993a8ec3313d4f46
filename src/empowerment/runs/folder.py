"""Run folders: settings, checkpoints and results, safe from interruption."""

import contextlib
import fcntl
import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from empowerment.files import write_atomic
from empowerment.settings import difference
from empowerment.storage import load_tree, read_about, save_tree

_TreeT = TypeVar("_TreeT")

_FORMAT = "empowerment run, version 2"
_KNOWN = (_FORMAT, "empowerment run, version 1")
_MANIFEST, _LOCK, _CHECKPOINTS = "manifest.json", ".lock", "checkpoints"
_NUM_KEPT = 2
"""Number of checkpoints that are kept: should the newest be damaged, there is one before it."""

Log = Callable[[str], None]
"""Receives sentences for the user."""


class Run:
    """A run folder opened for training, locked against other processes."""

    def __init__(self, folder: Path, settings: dict[str, Any], facts: dict[str, Any], log: Log):
        self.folder = folder
        self.settings = settings
        self.facts = facts
        self.log = log

    def save_checkpoint(self, stage: str, count: int, tree: Any, about: dict[str, Any]) -> None:
        """Write a checkpoint of a stage, and remove all but the newest two."""
        save_tree(tree, self._checkpoint(stage, count), about=about)
        self.remove_checkpoints(stage, keep=_NUM_KEPT)

    def load_checkpoint(self, stage: str, like: _TreeT) -> tuple[_TreeT, dict[str, Any]] | None:
        """Read the newest checkpoint of a stage, or the one before if it is damaged."""
        for count in reversed(self._counts(stage)):
            path = self._checkpoint(stage, count)
            try:
                return load_tree(like, path), read_about(path)
            except (ValueError, OSError) as error:
                self.log(f"The checkpoint {path} cannot be used: {error} Trying the one before.")
                self._remove(stage, count)
        return None

    def remove_checkpoints(self, stage: str, *, keep: int = 0) -> None:
        """Remove the checkpoints of a stage but the newest few."""
        counts = self._counts(stage)
        for old in counts[: len(counts) - keep]:
            self._remove(stage, old)

    def write_manifest(self, *, finished: bool) -> None:
        """Write settings, versions, and the SHA-256 of every file."""
        names = ("empowerment", "jax", "equinox", "optax", "numpy")
        manifest = {
            "format": _FORMAT,
            "settings": self.settings,
            **self.facts,
            "versions": {"python": platform.python_version(), **{n: version(n) for n in names}},
            "finished": finished,
            "files": hashes(self.folder) if finished else {},
        }
        write_atomic(self.folder / _MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())

    def _checkpoint(self, stage: str, count: int) -> Path:
        return self.folder / _CHECKPOINTS / f"{stage}-{count:07d}.safetensors"

    def _counts(self, stage: str) -> list[int]:
        manifests = (self.folder / _CHECKPOINTS).glob(f"{stage}-*.json")
        names = (path.stem.rsplit("-", 1) for path in manifests)
        return sorted(int(count) for name, count in names if name == stage)

    def _remove(self, stage: str, count: int) -> None:
        path = self._checkpoint(stage, count)
        path.with_suffix(".json").unlink(missing_ok=True)  # The manifest first: it makes it valid.
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def open_run(
    folder: Path,
    settings: dict[str, Any],
    *,
    resume: bool,
    log: Log,
    facts: dict[str, Any] | None = None,
    read: Callable[[dict[str, Any]], dict[str, Any]] = lambda settings: settings,
) -> Iterator[Run]:
    """Open a run folder: a new one, or one that was begun with the same settings.

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
        if (folder / _MANIFEST).exists():
            if not resume:
                raise ValueError(
                    f"Expected {folder} to be a new folder; there is a run in it. Resume it with "
                    "--resume, or choose another folder."
                )
            manifest = read_manifest(folder)
            before = read(manifest["settings"])
            if before != settings:
                raise ValueError(
                    f"Expected the settings of the run in {folder}; {difference(before, settings)}."
                )
            kept = {name: manifest.get(name, fact) for name, fact in (facts or {}).items()}
            yield Run(folder, settings, kept, log)
            return
        run = Run(folder, settings, facts or {}, log)
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
    if not isinstance(manifest, dict) or manifest.get("format") not in _KNOWN:
        raise ValueError(f"Expected {path} to be the manifest of a run; it is not.")
    return manifest


def refresh_manifest(folder: Path) -> None:
    """Compute the SHA-256 of every file anew, after files were added to a finished run."""
    manifest = {**read_manifest(folder), "files": hashes(folder)}
    write_atomic(folder / _MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())


def hashes(folder: Path) -> dict[str, str]:
    """Compute the SHA-256 of every file of a run but the manifest, by its path in the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.name not in (_MANIFEST, _LOCK) and not path.name.startswith(".")
    }
