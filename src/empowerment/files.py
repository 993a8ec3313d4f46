"""Files: read with limits, written atomically; JSON as typed records, columns as CSV."""

import csv
import dataclasses
import errno
import io
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints, is_typeddict

import msgspec
import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

MAX_ROWS = 10_000_000
"""Maximal number of rows that are read, so that a wrong file does not fill the memory."""

MAX_JSON = 1 << 26
MAX_TABLE = 1 << 32
"""Maximal size of a JSON or CSV file in bytes."""

_MAX_HEADER = 1 << 20
"""Maximal size of the header of a safetensors file in bytes."""

_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}\.tmp")
"""Names of the temporary files of `write_atomic`."""

_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file through a temporary one, so that no reader ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
    )
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


def remove_temporary(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder and below it."""
    for path in folder.rglob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
            path.unlink()


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
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", suffix=".tmp"):
        pass


def open_regular(path: Path, *, most: int | None = None, links: bool = True) -> io.BufferedReader:
    """Open a file for reading, but nothing else: neither a pipe, which could block, nor a folder.

    Args:
        path: The file.
        most: Maximal size in bytes; unlimited by default.
        links: Whether to follow a link.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not a regular file, too large, or a link that is not to be followed.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not links:
            raise ValueError(
                f"Expected {path} to be a file in the folder itself; it is a link."
            ) from None
        raise type(error)(
            f"Expected {path} to be a file; it cannot be read ({error.strerror})."
        ) from error
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and (most is None or status.st_size <= most):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISREG(status.st_mode):
        raise ValueError(f"Expected {path} to have at most {most} bytes; got {status.st_size}.")
    found = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
    raise ValueError(f"Expected {path} to be a regular file; got {found}.")


def read_bytes(path: Path, *, most: int, links: bool = True) -> bytes:
    """Read a regular file of limited size; see `open_regular`."""
    with open_regular(path, most=most, links=links) as file:
        return file.read(most)


def encode(value: Any) -> bytes:
    """Encode a value as the text of a JSON file.

    Raises:
        ValueError: If a number is not finite.
    """
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def decode(data: bytes, kind: Any, *, what: str, source: Path | str) -> Any:
    """Decode JSON into a typed record.

    Args:
        data: The text.
        kind: Type of the record: a dataclass or `TypedDict`, with no other fields than its own
            and none left out that has to be there, or any type that msgspec knows.
        what: What the text has to be, for error messages.
        source: Where it is from, for error messages.

    Raises:
        ValueError: If it is not JSON, or not of this type.
    """
    if len(data) > MAX_JSON:
        raise ValueError(f"Expected {source} to have at most {MAX_JSON} bytes; got {len(data)}.")
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {source} to be {what}; got {_reason(error)}.") from error
    return convert(value, kind, what=what, source=source)


def convert(value: Any, kind: Any, *, what: str, source: Path | str) -> Any:
    """Convert decoded JSON to a typed record; see `decode`."""
    try:
        if isinstance(value, dict):
            _check_names(value, kind)
        return msgspec.convert(value, kind)
    except (ValueError, RecursionError) as error:
        own = error.__cause__  # A sentence, if it is from the record's own checks.
        reason = f"it is invalid. {own}" if own is not None else f"got {_reason(error)}."
        raise ValueError(f"Expected {source} to be {what}; {reason}") from error


def read_json(path: Path, kind: Any, *, what: str) -> Any:
    """Read a JSON file into a typed record; see `decode`."""
    return decode(read_bytes(path, most=MAX_JSON), kind, what=what, source=path)


def _check_names(value: dict[str, Any], kind: Any) -> None:
    """Refuse fields that a record does not have, and those left out that it must have."""
    if dataclasses.is_dataclass(kind):
        names = required = {field.name for field in dataclasses.fields(kind)}
    elif is_typeddict(kind):
        names, required = set(get_type_hints(kind)), kind.__required_keys__
    else:
        return
    if odd := sorted((set(value) - names) | (required - set(value))):
        raise ValueError(f"missing or unexpected fields: {', '.join(odd)}")


_WORDS = (
    ("Object missing required field", "an object without the field"),
    ("Object contains unknown field", "an object with the unknown field"),
    ("Invalid enum value", "the unknown value"),
    ("Input data was truncated", "JSON that is cut off"),
    ("Integer value out of range", "a number out of range"),
    ("Number out of range", "a number out of range"),
    ("JSON is malformed:", "malformed JSON:"),
    (" - at $.", " at "),
)


def _reason(error: BaseException) -> str:
    """Return in a few words what is wrong with JSON."""
    if isinstance(error, RecursionError):
        return "JSON that is nested too deeply"
    text = str(error).replace("`", "")
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    text = re.sub(r"^Expected (.+), got (.+?)( at .+)?$", r"\2 instead of \1\3", text)
    return " ".join(text.split())[:200].rstrip(".")


def to_arrays(data: bytes, path: Path) -> dict[str, np.ndarray]:
    """Decode safetensors.

    Args:
        data: The content of the file.
        path: The file, for error messages.
    """
    header = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if not 0 <= header <= min(_MAX_HEADER, len(data) - 8):
        raise ValueError(f"Expected the header of {path} to fit the file; it does not.")
    try:
        return load_tensors(data)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"Expected {path} to be a safetensors file; got {error!s:.200}."
        ) from error


def to_csv(columns: Mapping[str, np.ndarray]) -> str:
    """Return the text of a CSV file."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(f"{value:.9g}" for value in row) for row in rows)]
    return "\n".join(lines) + "\n"


def write_columns(columns: Mapping[str, np.ndarray], path: Path) -> None:
    """Write columns of numbers to a CSV file."""
    write_atomic(path, to_csv(columns).encode())


def open_table(path: Path) -> io.TextIOWrapper:
    """Open a CSV file for reading."""
    file = open_regular(path, most=MAX_TABLE)
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def read_header(path: Path) -> list[str]:
    """Read the names of the columns of a CSV file."""
    with open_table(path) as file:
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
    with open_table(path) as file:
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
