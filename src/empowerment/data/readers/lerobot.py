"""LeRobot datasets of versions 2 and 3, by pyarrow alone."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, final

import msgspec
import numpy as np

from empowerment.data.archive import MAX_BYTES, check_size
from empowerment.data.readers.base import LogOptions, Rows, optional, refusing
from empowerment.data.readers.tables import arrow_numbers
from empowerment.data.spaces import single
from empowerment.files import convert, open_regular, read_bytes, read_json

_INFO = "meta/info.json"
_STATS = "meta/stats.json"
_EPISODE_STATS = "meta/episodes_stats.jsonl"
_FILES = {"v3": "data/chunk-*/file-*.parquet", "v2": "data/chunk-*/episode_*.parquet"}
_MAX_STATS = 1 << 28
_NUMBERS = ("float", "int", "uint", "bool")
_WHAT = "a LeRobot dataset"
_REWARD = "next.reward"
"""The feature that some datasets have: what the action of a frame was paid."""


class _Feature(msgspec.Struct):
    """A column, as the description of a dataset has it."""

    dtype: str
    shape: list[Annotated[int, msgspec.Meta(ge=1)]]
    names: Any = None


class _Info(msgspec.Struct):
    """What is read of the description of a dataset."""

    codebase_version: str
    total_frames: Annotated[int, msgspec.Meta(ge=0)]
    fps: Annotated[float, msgspec.Meta(gt=0, le=1e6)]
    features: dict[str, _Feature]


@final
@dataclass(frozen=True)
class _Choice:
    """Some axes of a feature."""

    feature: str
    axes: list[int]
    names: list[str]


def is_lerobot(source: str) -> bool:
    """Return whether a folder has the description of a dataset."""
    return (Path(source) / _INFO).is_file()


def read_lerobot(source: str, options: LogOptions, *, max_bytes: int = MAX_BYTES) -> Rows:
    """Read states and actions; an episode's end is a truncation, and videos are ignored."""
    folder = Path(source)
    info: _Info = read_json(folder / _INFO, _Info, what=f"the description of {_WHAT}")
    version = info.codebase_version[:2]
    if version not in _FILES:
        raise ValueError(
            f"Expected {folder} to be {_WHAT} of version 2 or 3; got {info.codebase_version!r:.20}."
        )
    defaults = [
        name
        for name, feature in info.features.items()
        if name.startswith("observation.") and _is_vector(feature)
    ]
    seen = _choose(options.names("observations") or defaults, info, folder)
    done = _choose(options.names("actions") or ["action"], info, folder)
    if not seen:
        raise ValueError(f"Expected {folder} to have vectors of observations; got none.")
    choices = [*seen, *done]
    width = sum(len(choice.axes) for choice in choices) + 2
    check_size(folder, info.total_frames * width * 8, max_bytes)
    needed = sorted({choice.feature for choice in choices})
    paid = info.features.get(_REWARD)
    has_rewards = paid is not None and _is_vector(paid) and paid.shape == [1]
    if has_rewards and _REWARD not in needed:
        needed.append(_REWARD)
    columns = _read_files(folder, _FILES[version], needed, info)
    observations, actions = (
        np.concatenate([columns[each.feature][:, each.axes] for each in part], axis=1)
        for part in (seen, done)
    )
    ignored = [
        f"{name} ({feature.dtype})"
        for name, feature in info.features.items()
        if feature.dtype in ("video", "image")
    ]
    return Rows(
        observations,
        actions,
        [name for choice in seen for name in choice.names],
        [name for choice in done for name in choice.names],
        episode=columns["episode_index"][:, 0],
        # The dataset states one rate; its times, in single precision, are of use for another only.
        times=columns["timestamp"][:, 0] if options.rate else None,
        interval=1 / info.fps,
        rewards=columns[_REWARD][:, 0] if has_rewards else None,
        limits=_limits(folder, done),
        about={"dataset": folder.resolve().name, "ignored": ignored},
    )


def _is_vector(feature: _Feature) -> bool:
    return len(feature.shape) == 1 and feature.dtype.startswith(_NUMBERS)


def _choose(words: Sequence[str], info: _Info, folder: Path) -> list[_Choice]:
    """Find features, or axes of them, by `feature` or `feature.axis`."""
    choices = []
    for word in words:
        feature = max(
            (name for name in info.features if word == name or word.startswith(f"{name}.")),
            key=len,
            default=None,
        )
        if feature is None or not _is_vector(info.features[feature]):
            vectors = [name for name, each in info.features.items() if _is_vector(each)]
            raise ValueError(
                f"Expected {word} to be a vector of numbers of {folder}; it has "
                f"{', '.join(vectors) or 'none'}."
            )
        names = _axis_names(info.features[feature])
        axes = list(range(len(names)))
        if word != feature:
            axis = word.removeprefix(f"{feature}.")
            if axis not in names:
                raise ValueError(
                    f"Expected {feature} of {folder} to have the axis {axis}; it has "
                    f"{', '.join(names)}."
                )
            axes = [names.index(axis)]
        choices.append(_Choice(feature, axes, [f"{feature}.{names[axis]}" for axis in axes]))
    return choices


def _axis_names(feature: _Feature) -> list[str]:
    """Return the names of the axes of a vector, or their numbers."""
    size, names = feature.shape[0], feature.names
    if isinstance(names, dict) and len(names) == 1:
        names = next(iter(names.values()))
    if isinstance(names, dict):
        names = list(names)
    is_usable = isinstance(names, list) and len(names) == size
    if is_usable and all(isinstance(n, str) for n in names) and len(set(names)) == size:
        return list(names)
    return [str(axis) for axis in range(size)]


def _read_files(
    folder: Path, pattern: str, features: Sequence[str], info: _Info
) -> dict[str, np.ndarray]:
    """Read columns of all files."""
    parquet, arrow = optional("pyarrow.parquet", folder), optional("pyarrow", folder)
    sizes = {name: info.features[name].shape[0] for name in features}
    sizes |= {"episode_index": 1, "timestamp": 1}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in sizes}
    for path in sorted(folder.glob(pattern)):
        with (
            refusing(path, f"a file of {_WHAT}", arrow.ArrowException, OverflowError),
            open_regular(path) as raw,
            parquet.ParquetFile(raw) as file,
        ):
            missing = [name for name in sizes if name not in file.schema_arrow.names]
            if missing:
                raise ValueError(
                    f"Expected {path} to have the column {missing[0]}; it has "
                    f"{', '.join(file.schema_arrow.names)[:200]}."
                )
            if file.metadata.num_rows > info.total_frames:
                raise _of_other_size(folder, info.total_frames, f"{file.metadata.num_rows} or more")
            table = file.read(columns=list(sizes))
            for name, size in sizes.items():
                parts[name].append(_vectors(table[name], size, name, path, arrow))
    columns = {name: np.concatenate([np.zeros((0, sizes[name])), *parts[name]]) for name in sizes}
    rows = len(columns["timestamp"])
    if rows != info.total_frames or not rows:
        raise _of_other_size(folder, info.total_frames, str(rows))
    return columns


def _of_other_size(folder: Path, said: int, found: str) -> ValueError:
    return ValueError(
        f"Expected {folder} to have one frame or more, and as many as {_INFO} says, {said}; its "
        f"files have {found}."
    )


def _vectors(column: Any, size: int, name: str, path: Path, arrow: Any) -> np.ndarray:
    """Convert a column of vectors, or of numbers where they have one axis, to rows."""
    kinds = arrow.types
    kind = column.type
    if size == 1 and not (kinds.is_list(kind) or kinds.is_fixed_size_list(kind)):
        return arrow_numbers(column, name, path)[:, None]
    rows = []
    for chunk in column.chunks:
        is_list = any(
            getattr(kinds, f"is_{each}list")(kind) for each in ("", "large_", "fixed_size_")
        )
        lengths = (
            arrow.compute.list_value_length(chunk).to_numpy(zero_copy_only=False) if is_list else []
        )
        if not is_list or not np.array_equal(lengths, np.full(len(chunk), size)):
            raise ValueError(
                f"Expected every row of {name} in {path} to have {size} numbers, as {_INFO} says; "
                "some have not."
            )
        values = arrow.chunked_array([chunk.flatten()])
        rows.append(arrow_numbers(values, name, path).reshape(len(chunk), size))
    return np.concatenate([np.zeros((0, size)), *rows])


def _limits(folder: Path, done: Sequence[_Choice]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the least and the most of each action that the dataset states, if it does."""
    if (folder / _STATS).exists():
        stats = [read_json(folder / _STATS, dict[str, Any], what=f"statistics of {_WHAT}")]
    elif (folder / _EPISODE_STATS).exists():
        text = read_bytes(folder / _EPISODE_STATS, most=_MAX_STATS)
        with refusing(
            folder / _EPISODE_STATS, f"statistics of {_WHAT}", ValueError, RecursionError
        ):
            lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        kind = list[dict[str, Any]]
        found = convert(lines, kind, what="lines of objects", source=folder / _EPISODE_STATS)
        stats = [each.get("stats", {}) for each in found]
    else:
        return None
    if not stats:
        return None
    ends = {
        end: np.array([_numbers(each, done, end, folder) for each in stats])
        for end in ("min", "max")
    }
    return ends["min"].min(axis=0), ends["max"].max(axis=0)


def _numbers(stats: Any, done: Sequence[_Choice], end: str, folder: Path) -> list[float]:
    """Return a statistic of every chosen axis of the actions."""
    numbers: list[float] = []
    for choice in done:
        try:
            values = single(stats[choice.feature][end])
            numbers += values[choice.axes].tolist()
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            values = np.full(1, np.nan)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise ValueError(
                f"Expected the statistics in {folder / 'meta'} to have the {end} of each axis of "
                f"{choice.feature}, a finite number; they do not."
            )
    return numbers
