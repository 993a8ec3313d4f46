"""Atomic file writes, and columns of numbers as CSV."""

import csv
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

MAX_ROWS = 10_000_000
"""Maximal number of rows that are read, so that a wrong file does not fill the memory."""


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file through a temporary one, so that no reader ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the permissions that new files must not have; they can only be read by setting."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def check_writable(path: Path) -> None:
    """Raise an `OSError` now if a file could not be written later."""
    if path.is_dir():
        raise IsADirectoryError(f"Expected {path} to be a file; got a directory.")
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}."):
        pass


def to_csv(columns: Mapping[str, np.ndarray]) -> str:
    """Return the text of a CSV file."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(f"{value:.9g}" for value in row) for row in rows)]
    return "\n".join(lines) + "\n"


def write_columns(columns: Mapping[str, np.ndarray], path: Path) -> None:
    """Write columns of numbers to a CSV file."""
    write_atomic(path, to_csv(columns).encode())


def read_header(path: Path) -> list[str]:
    """Read the names of the columns of a CSV file."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [name.strip() for name in next(csv.reader(file), [])]


def read_columns(path: Path, names: Sequence[str]) -> Float[np.ndarray, "rows columns"]:
    """Read the named columns of a CSV file; other columns are ignored.

    Args:
        path: The file; its first line names the columns.
        names: The columns to read.

    Returns:
        The values, a row for each line.

    Raises:
        ValueError: If a column is missing, or a value is not a finite number.
    """
    header = read_header(path)
    missing = [name for name in names if name not in header]
    if missing:
        raise ValueError(
            f"Expected {path} to have the columns {', '.join(names)}; "
            f"{', '.join(missing)} is missing from {', '.join(header) or 'an empty file'}."
        )
    places = [header.index(name) for name in names]
    rows = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        next(reader)
        try:
            for row in reader:
                if not row:
                    continue
                if len(rows) == MAX_ROWS:
                    raise ValueError(f"Expected {path} to have at most {MAX_ROWS} rows; got more.")
                rows.append([_number(row, place, path, reader.line_num) for place in places])
        except csv.Error as error:
            raise ValueError(
                f"Expected {path} to be a CSV file; got line {reader.line_num}: {error}."
            ) from error
    if not rows:
        raise ValueError(f"Expected {path} to have at least one row of numbers; got none.")
    return np.array(rows)


def _number(row: list[str], place: int, path: Path, line: int) -> float:
    """Read one finite number."""
    text = row[place].strip() if place < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"Expected every value in {path} to be a finite number; got {text!r} in line {line}."
        )
    return value
