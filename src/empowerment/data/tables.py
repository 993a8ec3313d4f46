"""Import of tables with named columns: CSV, and Parquet if pyarrow is installed."""

import csv
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from empowerment.data.archive import MAX_BYTES
from empowerment.data.imports import from_arrays
from empowerment.data.spaces import free_spaces
from empowerment.data.trajectories import Trajectories
from empowerment.files import open_regular, open_table

_YES = {"1", "1.0", "true", "yes", "t"}
_NO = {"0", "0.0", "false", "no", "f", ""}
_MISSING = {"", "na", "n/a", "nan", "null", "none"}


def from_table(
    path: Path,
    *,
    observations: Sequence[str],
    actions: Sequence[str],
    episode: str | None = None,
    terminated: str | None = None,
    truncated: str | None = None,
    time: str | None = None,
    action_low: Sequence[float] | None = None,
    action_high: Sequence[float] | None = None,
    interval: float | None = None,
    max_bytes: int = MAX_BYTES,
) -> Trajectories:
    """Read a log from the named columns of a table; other columns are ignored.

    Each row has an observation and the action that was taken at it, in the order of time. Empty
    cells become NaN, which `check` finds.

    Args:
        path: A `.csv` or `.parquet` file.
        observations: The columns of the observation.
        actions: The columns of the action.
        episode: The column with the name of the episode; all rows are one episode by default.
        terminated: The column that flags terminal states, in the last row of an episode.
        truncated: The column that flags truncation, in the last row of an episode.
        time: The column of the time in seconds.
        action_low: The lower bound of each action, if known.
        action_high: The upper bound of each action, if known.
        interval: Seconds between rows, if there is no time column.
        max_bytes: The largest size of the file, and of its columns in memory.

    Returns:
        The episodes.
    """
    if not observations or not actions:
        raise ValueError(
            "Expected a table to have columns of observations and of actions; got "
            f"{list(observations)} and {list(actions)}. Name them by --observations and --actions."
        )
    if interval is not None and not 0 < interval < float("inf"):
        raise ValueError(f"Expected the interval to be positive and finite; got {interval}.")
    numbers = [*observations, *actions, *([time] if time else [])]
    flags = [name for name in (terminated, truncated) if name]
    names: list[str] = sorted({*numbers, *flags, *([episode] if episode else [])})
    read = _read_parquet if path.suffix in (".parquet", ".pq") else _read_csv
    columns = read(path, names, numbers, flags, max_bytes)
    spaces = free_spaces(observations, actions, action_low=action_low, action_high=action_high)
    about = {"environment": None, "file": path.name, "interval": interval}
    return from_arrays(
        np.stack([columns[name] for name in observations], axis=1),
        np.stack([columns[name] for name in actions], axis=1),
        terminated=columns[terminated] if terminated else None,
        truncated=columns[truncated] if truncated else None,
        episode=columns[episode] if episode else None,
        times=columns[time] if time else None,
        spaces=spaces,
        about=about,
    )


def _read_csv(
    path: Path, names: list[str], numbers: list[str], flags: list[str], max_bytes: int
) -> dict[str, np.ndarray]:
    columns: dict[str, list[Any]] = {name: [] for name in names}
    with open_table(path) as file:
        _check_size(path, path.stat().st_size, max_bytes)
        reader = csv.reader(file)
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_columns(path, names, header)
            positions = {name: header.index(name) for name in names}
            for row in reader:
                if not row:
                    continue
                for name, position in positions.items():
                    text = row[position].strip() if position < len(row) else ""
                    columns[name].append(
                        _number(text, path, reader.line_num)
                        if name in numbers
                        else _flag(text, path, reader.line_num)
                        if name in flags
                        else text
                    )
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(
                f"Expected {path} to be a CSV file; got {error} after line {reader.line_num}."
            ) from error
    if not columns[names[0]]:
        raise ValueError(f"Expected {path} to have at least one row of numbers; got none.")
    return {name: np.array(values) for name, values in columns.items()}


def _read_parquet(
    path: Path, names: list[str], numbers: list[str], flags: list[str], max_bytes: int
) -> dict[str, np.ndarray]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ValueError(
            f"Expected pyarrow to be installed to read {path}; it is not. Install it with "
            "`pip install 'empowerment[readers]'`, or convert it to CSV."
        ) from error
    arrow_error = importlib.import_module("pyarrow").ArrowException
    try:
        with open_regular(path) as raw, parquet.ParquetFile(raw) as file:
            _check_columns(path, names, file.schema_arrow.names)
            _check_size(path, file.metadata.num_rows * len(names) * 8, max_bytes)
            table = file.read(columns=names)
        columns = {}
        for name in names:
            values = table[name].to_numpy()
            if name in numbers:
                values = np.array([np.nan if v is None else v for v in values], float)
            elif name in flags:
                values = np.array([v is not None and v == v and bool(v) for v in values])
            columns[name] = values
    except (arrow_error, TypeError) as error:
        raise ValueError(f"Expected {path} to be a table of numbers; got {error}.") from error
    if table.num_rows == 0:
        raise ValueError(f"Expected {path} to have at least one row of numbers; got none.")
    return columns


def _check_columns(path: Path, names: Sequence[str], header: Sequence[str]) -> None:
    """Check that a table has every column exactly once."""
    missing = [name for name in names if name not in header]
    if missing:
        raise ValueError(
            f"Expected {path} to have the columns {', '.join(names)}; {', '.join(missing)} is "
            f"missing from {', '.join(header) or 'an empty file'}."
        )
    twice = [name for name in names if list(header).count(name) > 1]
    if twice:
        raise ValueError(f"Expected {path} to have each column once; got {twice[0]} twice.")


def _check_size(path: Path, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise ValueError(f"Expected {path} to have at most {max_bytes} bytes; got {size}.")


def _number(text: str, path: Path, line: int) -> float:
    """Parse a number; a missing one is NaN."""
    if text.lower() in _MISSING:
        return np.nan
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"Expected every value in {path} to be a number; got {text!r} in line {line}."
        ) from None


def _flag(text: str, path: Path, line: int) -> bool:
    if text.lower() not in _YES | _NO:
        raise ValueError(f"Expected flags in {path} to be 0 or 1; got {text!r} in line {line}.")
    return text.lower() in _YES
