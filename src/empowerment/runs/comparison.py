"""Comparing runs: the report of each, and one page with all of them side by side."""

from collections.abc import Sequence
from pathlib import Path

from empowerment.files import check_writable
from empowerment.report import Compared, write_comparison
from empowerment.runs.folder import read_manifest
from empowerment.settings import flat


def compare_runs(folders: Sequence[Path], path: Path) -> Path:
    """Write a page that compares finished runs that have a report each.

    Args:
        folders: The run folders.
        path: The page.

    Returns:
        The page.
    """
    check_writable(path)
    return write_comparison([_compared(folder, folders) for folder in folders], path)


def _compared(folder: Path, folders: Sequence[Path]) -> Compared:
    manifest = read_manifest(folder)
    short = [each.resolve().name for each in folders].count(folder.resolve().name) == 1
    noise = manifest.get("noise")
    return Compared(
        folder.resolve().name if short else str(folder),
        folder,
        flat(manifest["settings"]),
        None if noise is None else noise["perception"],
        manifest.get("command"),
    )
