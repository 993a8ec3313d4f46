"""Run folders: settings, checkpoints and results, safe from interruption."""

import contextlib
import fcntl
import hashlib
import os
import platform
import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar

import msgspec

from empowerment.files import encode, read_json, remove_temporary, write_atomic
from empowerment.processes import ALONE
from empowerment.settings import difference
from empowerment.storage import load_tree, read_about, save_tree

_TreeT = TypeVar("_TreeT")

_FORMAT = "empowerment run, version 3"
MANIFEST = "manifest.json"
_LOCK, CHECKPOINTS = ".lock", "checkpoints"
_NUM_KEPT = 2
"""Number of checkpoints that are kept: should the newest be damaged, there is one before it."""

Log = Callable[[str], None]
"""Receives sentences for the user."""


class Manifest(TypedDict):
    """What a run folder says about itself; `command` and `noise` are of runs with an agent.

    `kept_round` and `num_rounds` are of those whose world is learnt. Since version 3 it has a
    SHA-256 of all its other fields.
    """

    format: Literal[
        "empowerment run, version 3", "empowerment run, version 2", "empowerment run, version 1"
    ]
    settings: dict[str, Any]
    versions: dict[str, str]
    finished: bool
    files: dict[str, str]
    command: NotRequired[str | None]
    noise: NotRequired[dict[str, list[float]] | None]
    kept_round: NotRequired[Annotated[int, msgspec.Meta(ge=0, le=999)]]
    num_rounds: NotRequired[Annotated[int, msgspec.Meta(ge=1, le=1000)]]
    sha256: NotRequired[str]


class LockedError(ValueError):
    """A folder is in use by another process."""


class Run:
    """A run folder opened for training, locked against other processes.

    Attributes:
        folder: The folder.
        settings: Settings of the run.
        facts: Further fields of its manifest.
        log: Receives sentences for the user.
        on_metrics: Receives each line that is added to the metrics, and all when they are
            rewritten.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], facts: dict[str, Any], log: Log):
        self.folder = folder
        self.settings = settings
        self.facts = facts
        self.log = log
        self.team = ALONE
        self.on_metrics: Callable[[bytes], None] = lambda lines: None

    def save_checkpoint(self, stage: str, count: int, tree: Any, about: dict[str, Any]) -> None:
        """Write a checkpoint of a stage, and remove all but the newest two."""
        save_tree(tree, self._checkpoint(stage, count), about=about)
        self.remove_checkpoints(stage, keep=_NUM_KEPT)

    def load_checkpoint(
        self, stage: str, like: _TreeT, kind: Any = dict[str, Any]
    ) -> tuple[_TreeT, Any] | None:
        """Read the newest checkpoint of a stage, or the one before if it is damaged.

        Args:
            stage: Name of the stage.
            like: Of the structure of the checkpoint.
            kind: Type of its description, as in `empowerment.files.decode`.
        """
        for count in reversed(self._counts(stage)):
            path = self._checkpoint(stage, count)
            try:
                return load_tree(like, path), read_about(path, kind)
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
        _write_manifest(self.folder, manifest)

    def _checkpoint(self, stage: str, count: int) -> Path:
        return self.folder / CHECKPOINTS / f"{stage}-{count:07d}.safetensors"

    def _counts(self, stage: str) -> list[int]:
        name = re.compile(rf"{re.escape(stage)}-(\d{{7,}})\.json")
        paths = (self.folder / CHECKPOINTS).glob("*.json")
        return sorted(int(found[1]) for path in paths if (found := name.fullmatch(path.name)))

    def _remove(self, stage: str, count: int) -> None:
        path = self._checkpoint(stage, count)
        for each in (path.with_suffix(".json"), path):  # The manifest first: it makes it valid.
            if each.is_dir() and not each.is_symlink():  # Not ours: out of the way, but kept.
                each.rename(each.with_name(f"{each.name}.aside"))
            else:
                each.unlink(missing_ok=True)


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

    Temporary files that a killed process left in it are removed.

    Raises:
        ValueError: If the folder is in use, has a run that is not to be resumed, one with other
            settings, or results without a manifest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if (folder / MANIFEST).exists():
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
            remove_temporary(folder)
            kept = {name: manifest.get(name, fact) for name, fact in (facts or {}).items()}
            yield Run(folder, settings, kept, log)
            return
        if any(folder.glob("*.safetensors")):
            raise ValueError(
                f"Expected {folder} to be a new folder; it has results, but no {MANIFEST} that "
                "says what they are of. Choose another folder."
            )
        run = Run(folder, settings, facts or {}, log)
        run.write_manifest(finished=False)
        yield run


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; raise a `LockedError` if one has it."""
    # Opened for reading too, a pipe does not block; a lock on it is as good as any.
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    lock = os.open(folder / _LOCK, flags, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                f"Expected {folder} to be free; another process is writing to it right now."
            ) from None
        yield
    finally:
        os.close(lock)


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a run folder."""
    path = folder / MANIFEST
    if not path.exists():
        raise ValueError(f"Expected {folder} to be a run folder; there is no {MANIFEST} in it.")
    manifest: Manifest = read_json(path, Manifest, what="the manifest of a run")
    stored = manifest.get("sha256")
    has_to_match = manifest["format"] == _FORMAT or stored is not None
    if has_to_match and stored != _digest({**manifest}):
        raise ValueError(
            f"Expected {path} to be as it was written; the SHA-256 differs. The file is damaged or "
            "was changed."
        )
    return manifest


def refresh_manifest(folder: Path) -> None:
    """Compute the SHA-256 of every file anew, after files were added to a finished run."""
    _write_manifest(folder, {**read_manifest(folder), "format": _FORMAT, "files": hashes(folder)})


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with its SHA-256."""
    write_atomic(folder / MANIFEST, encode({**manifest, "sha256": _digest(manifest)}))


def _digest(manifest: dict[str, Any]) -> str:
    """Compute the SHA-256 of all fields of a manifest but itself."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(encode(fields)).hexdigest()


def hashes(folder: Path) -> dict[str, str]:
    """Compute the SHA-256 of every file of a run but the manifest, by its path in the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.name not in (MANIFEST, _LOCK) and not path.name.startswith(".")
    }
