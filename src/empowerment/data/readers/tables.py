"""Tables with named columns: CSV, and Parquet if pyarrow is installed."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from empowerment.data.archive import MAX_BYTES, check_size
from empowerment.data.readers.base import LogOptions, Rows, file_of, optional, refusing
from empowerment.files import open_regular, open_table

_YES = {"1", "1.0", "true", "yes", "t"}
_NO = {"0", "0.0", "false", "no", "f", ""}
_MISSING = {"", "na", "n/a", "nan", "null", "none"}

_CHUNK = 1 << 16
"""Lines of a CSV file that are converted at once."""

Columns = dict[str, np.ndarray]


def read_csv(source: str, options: LogOptions, *, max_bytes: int = MAX_BYTES) -> Rows:
    """Read the named columns of a CSV file; empty cells become NaN."""
    return _read(source, options, _read_csv, max_bytes)


def read_parquet(source: str, options: LogOptions, *, max_bytes: int = MAX_BYTES) -> Rows:
    """Read the named columns of a Parquet file; empty cells become NaN."""
    return _read(source, options, _read_parquet, max_bytes)


def _read(source: str, options: LogOptions, read: Callable[..., Columns], max_bytes: int) -> Rows:
    path = file_of(source)
    observations, actions = options.names("observations"), options.names("actions")
    if not observations or not actions:
        raise ValueError(
            "Expected a table to have columns of observations and of actions; got "
            f"{observations} and {actions}. Name them by --observations and --actions."
        )
    numbers = [*observations, *actions]
    numbers += [name for name in (options.time, options.reward) if name]
    flags = [name for name in (options.terminated, options.truncated) if name]
    labels = [options.episode] if options.episode else []
    columns = read(path, sorted({*numbers, *flags, *labels}), numbers, flags, max_bytes)
    if not len(next(iter(columns.values()))):
        raise ValueError(f"Expected {path} to have at least one row of numbers; got none.")

    def column(name: str | None) -> np.ndarray | None:
        return columns[name] if name else None

    return Rows(
        np.stack([columns[name] for name in observations], axis=1),
        np.stack([columns[name] for name in actions], axis=1),
        observations,
        actions,
        terminated=column(options.terminated),
        truncated=column(options.truncated),
        episode=column(options.episode),
        times=column(options.time),
        interval=options.interval,
        rewards=column(options.reward),
        about={"file": path.name},
    )


def _read_csv(
    path: Path, names: list[str], numbers: list[str], flags: list[str], max_bytes: int
) -> Columns:
    done: dict[str, list[np.ndarray]] = {name: [] for name in names}
    with open_table(path) as file:
        check_size(path, path.stat().st_size, max_bytes)
        reader = csv.reader(file)
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_columns(path, names, header)
            places = {name: header.index(name) for name in names}
            waiting: list[tuple[int, list[str]]] = []

            def convert() -> None:
                for name, place in places.items():
                    cells = [row[place] if place < len(row) else "" for _, row in waiting]
                    lines = [line for line, _ in waiting]
                    done[name].append(_convert(cells, lines, name, numbers, flags, path))
                waiting.clear()

            for row in reader:
                if row:
                    waiting.append((reader.line_num, row))
                if len(waiting) == _CHUNK:
                    convert()
            convert()
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(
                f"Expected {path} to be a CSV file; got {error} after line {reader.line_num}."
            ) from error
    return {name: np.concatenate(parts) for name, parts in done.items()}


def _convert(
    cells: list[str],
    lines: Iterable[int],
    name: str,
    numbers: Sequence[str],
    flags: Sequence[str],
    path: Path,
) -> np.ndarray:
    """Convert the cells of a column."""
    if name in numbers:
        try:
            return np.array(list(map(float, cells)))
        except ValueError:  # Some are missing, or no numbers.
            return np.array([_number(*each, path) for each in zip(cells, lines, strict=True)])
    if name in flags:
        return np.array([_flag(*each, path) for each in zip(cells, lines, strict=True)], bool)
    return np.array([cell.strip() for cell in cells])


def _read_parquet(
    path: Path, names: list[str], numbers: list[str], flags: list[str], max_bytes: int
) -> Columns:
    parquet = optional("pyarrow.parquet", path)
    arrow = optional("pyarrow", path)
    with (
        refusing(path, "a table of numbers", arrow.ArrowException, OverflowError),
        open_regular(path) as raw,
        parquet.ParquetFile(raw) as file,
    ):
        _check_columns(path, names, file.schema_arrow.names)
        check_size(path, file.metadata.num_rows * len(names) * 8, max_bytes)
        table = file.read(columns=names)
        columns = {}
        for name in names:
            if name in numbers:
                columns[name] = arrow_numbers(table[name], name, path)
            elif name in flags:
                filled = arrow_numbers(table[name], name, path)
                columns[name] = np.nan_to_num(filled) != 0
            else:
                columns[name] = _labels(table[name], name, path, arrow)
    return columns


def _labels(column: Any, name: str, path: Path, arrow: Any) -> np.ndarray:
    """Convert a column that tells episodes apart."""
    kinds, kind = arrow.types, column.type
    is_text = any(getattr(kinds, f"is_{each}")(kind) for each in ("string", "large_string"))
    if column.null_count or not (is_text or kinds.is_integer(kind)):
        raise ValueError(
            f"Expected the column {name} of {path} to have text or a whole number in each row, to "
            f"tell episodes apart; got the type {kind!s:.80} with {column.null_count} empty."
        )
    return column.to_numpy().astype(str if is_text else np.int64)


def arrow_numbers(column: Any, name: str, source: object) -> np.ndarray:
    """Convert an Arrow column of numbers; what is missing becomes NaN."""
    arrow = optional("pyarrow", source)
    kinds = arrow.types
    kind = column.type
    is_number = any(
        getattr(kinds, f"is_{each}")(kind) for each in ("integer", "floating", "decimal", "boolean")
    )
    if not is_number and not kinds.is_null(kind):
        raise ValueError(
            f"Expected the column {name} of {source} to be numbers; got the type {kind!s:.80}."
        )
    through = arrow.int8() if kinds.is_boolean(kind) else kind
    numbers = column.cast(through).cast(arrow.float64(), safe=False)
    return numbers.to_numpy().astype(float, copy=False)


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


def _number(text: str, line: int, path: Path) -> float:
    """Parse a number; a missing one is NaN."""
    text = text.strip()
    if text.lower() in _MISSING:
        return np.nan
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"Expected every value in {path} to be a number; got {text!r:.60} in line {line}."
        ) from None


def _flag(text: str, line: int, path: Path) -> bool:
    text = text.strip().lower()
    if text not in _YES | _NO:
        raise ValueError(f"Expected flags in {path} to be 0 or 1; got {text!r:.60} in line {line}.")
    return text in _YES
