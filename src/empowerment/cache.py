"""Keeping compiled programs from one command to the next: most of a short run is compilation."""

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

_MOST_BYTES = 1 << 30
"""Size above which the programs that were not used for longest are removed."""

GRANTED = "NPROC"
"""The compiler of JAX takes its number of threads from here, before it counts cores."""

_DIRECTORY = "JAX_COMPILATION_CACHE_DIR"
_KEEP_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""JAX reads these when it is imported."""


def use_cache(log: Callable[[str], None] = lambda sentence: None) -> None:
    """Let JAX keep what it compiles in the user's cache, unless the user has named another place.

    It has to be called before JAX is imported. A cache that cannot be written to is no error.

    Args:
        log: Receives a sentence if it cannot.
    """
    if _DIRECTORY in os.environ:
        return
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        limit_size(folder.parent, _MOST_BYTES)
    except OSError as error:
        log(f"Compiled programs cannot be kept in {folder} ({error.strerror}): it takes longer.")
        return
    os.environ |= {_DIRECTORY: str(folder), **_KEEP_ALL}


def cache_folder() -> Path:
    """Return the folder of programs that were compiled for this processor and as many cores.

    Bits of results depend on both: the compiler splits sums by the cores that there are.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cores = os.environ.get(GRANTED) or num_cores()
    kind = f"{platform.machine()} {_processor()}"
    name = f"{hashlib.sha256(kind.encode()).hexdigest()[:12]}-{cores}"
    return Path(home) / "empowerment" / "xla" / name


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_size(folder: Path, most: int) -> None:
    """Remove the files that were not used for longest, until the rest is small enough."""
    found = [(path, path.stat()) for path in folder.rglob("*") if path.is_file()]
    total = sum(status.st_size for _, status in found)
    for path, status in sorted(found, key=lambda file: max(file[1].st_atime, file[1].st_mtime)):
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= status.st_size


def _processor() -> str:
    """Return what the processor can do, where it is told."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    told = ("model name", "flags", "Features")
    return " ".join(sorted({line for line in lines if line.startswith(told)}))
