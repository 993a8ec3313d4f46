"""Tables of empowerment on disk: a CSV to read anywhere, a JSON that says what it is."""

import csv
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from empowerment.files import write_atomic

MAX_ROWS = 10_000_000
"""Rows that are read at most, so that a wrong file does not fill the memory."""


@dataclass(frozen=True)
class Landscape:
    """The empowerment of many states.

    Attributes:
        names: A word for each coordinate of a state.
        states: The states.
        empowerment: In nats.
        lower: What the empowerment is at least, if the estimator proves it.
        upper: What the empowerment is at most, if the estimator proves it.
        about: How it was made: world, noise, constraint, estimator, steps, seed, versions.
    """

    names: tuple[str, ...]
    states: Float[np.ndarray, "states axes"]
    empowerment: Float[np.ndarray, " states"]
    lower: Float[np.ndarray, " states"] | None
    upper: Float[np.ndarray, " states"] | None
    about: dict[str, Any]


def write_landscape(landscape: Landscape, path: Path) -> None:
    """Write a landscape to a CSV file, and what it is to a JSON file beside it.

    Args:
        landscape: The landscape.
        path: The CSV file; the other has the same name with the ending `.json`.
    """
    if path.suffix == ".json":
        raise ValueError(f"Expected the table's file not to end in .json; got {str(path)!r}.")
    write_atomic(path, to_csv(landscape).encode())
    about = json.dumps(landscape.about, indent=2) + "\n"
    write_atomic(path.with_suffix(".json"), about.encode())


def read_landscape(path: Path) -> Landscape:
    """Read a landscape as `write_landscape` has written it.

    Args:
        path: The CSV file.
    """
    with path.open(newline="", encoding="utf-8") as file:
        header = next(csv.reader(file), [])
    values = read_states(path, header)
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    place = header.index("empowerment") if "empowerment" in header else len(header)
    if place == len(header):
        raise ValueError(f"Expected {path} to have a column empowerment; it has none.")
    bounds = {name: values[:, header.index(name)] for name in header[place + 1 :]}
    return Landscape(
        tuple(header[:place]),
        values[:, :place],
        values[:, place],
        bounds.get("lower"),
        bounds.get("upper"),
        about,
    )


def to_csv(landscape: Landscape) -> str:
    """Give the text of a CSV file: a column for each coordinate, then nats."""
    columns = {name: landscape.states[:, axis] for axis, name in enumerate(landscape.names)}
    columns["empowerment"] = landscape.empowerment
    if landscape.lower is not None and landscape.upper is not None:
        columns |= {"lower": landscape.lower, "upper": landscape.upper}
    return _columns_to_csv(columns)


def write_columns(columns: Mapping[str, np.ndarray], path: Path) -> None:
    """Write columns of numbers to a CSV file.

    Args:
        columns: By their names, all of one length.
        path: The file.
    """
    write_atomic(path, _columns_to_csv(columns).encode())


def _columns_to_csv(columns: Mapping[str, np.ndarray]) -> str:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(f"{value:.9g}" for value in row) for row in rows)]
    return "\n".join(lines) + "\n"


def read_states(path: Path, names: Sequence[str]) -> Float[np.ndarray, "states axes"]:
    """Read states from the named columns of a CSV file; other columns are ignored.

    Args:
        path: The file; its first line names the columns.
        names: The columns to read, one for each coordinate.

    Returns:
        One row for each state.

    Raises:
        ValueError: If a column is missing, or a value is not a finite number.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        missing = [name for name in names if name not in header]
        if missing:
            raise ValueError(
                f"Expected {path} to have the columns {', '.join(names)}; "
                f"{', '.join(missing)} is missing from {', '.join(header) or 'an empty file'}."
            )
        places = [header.index(name) for name in names]
        states = []
        try:
            for row in reader:
                if not row:
                    continue
                if len(states) == MAX_ROWS:
                    raise ValueError(f"Expected {path} to have at most {MAX_ROWS} rows; got more.")
                line = reader.line_num
                states.append([_number(row, place, path, line) for place in places])
        except csv.Error as error:
            raise ValueError(
                f"Expected {path} to be a CSV file; got line {reader.line_num}: {error}."
            ) from error
    if not states:
        raise ValueError(f"Expected {path} to have at least one row of numbers; got none.")
    return np.array(states)


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


def check_writable(path: Path) -> None:
    """Raise an `OSError` now if a file could not be written later."""
    if path.is_dir():
        raise IsADirectoryError(f"Expected {path} to be a file; got a directory.")
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}."):
        pass
