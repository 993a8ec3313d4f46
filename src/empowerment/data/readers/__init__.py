"""Readers of logs, one for each format, behind one door."""

from pathlib import Path

import numpy as np

from empowerment.data.readers.assembly import (
    from_rows,
    from_signals,
    with_limits as with_limits,
)
from empowerment.data.readers.base import (
    LogOptions as LogOptions,
    Reader as Reader,
    Rows as Rows,
    Signals as Signals,
)
from empowerment.data.readers.hdf5 import read_hdf5
from empowerment.data.readers.lerobot import is_lerobot, read_lerobot
from empowerment.data.readers.minari import PREFIX, from_minari as from_minari, read_minari
from empowerment.data.readers.rosbag import is_rosbag, read_rosbag
from empowerment.data.readers.tables import read_csv, read_parquet
from empowerment.data.trajectories import Trajectories

_LIMITS = frozenset({"limits"})
_CLOCK = _LIMITS | {"rate", "fill", "gap", "delay"}
_NAMED = _CLOCK | {"observations", "actions"}
_TABLE = _NAMED | {"episode", "terminated", "truncated", "reward", "time", "interval"}

_NPZ = "npz"

READERS = {
    _NPZ: Reader(
        "what `empower collect` and `empower data` write",
        lambda source, options: Trajectories.load(Path(source)),
        _LIMITS,
        (".npz",),
    ),
    "csv": Reader("a table with named columns", read_csv, _TABLE, (".csv",)),
    "parquet": Reader("a table with named columns", read_parquet, _TABLE, (".parquet", ".pq")),
    "hdf5": Reader("arrays as in D4RL", read_hdf5, _LIMITS | {"interval"}, (".hdf5", ".h5")),
    "minari": Reader(
        "a dataset, minari:ID",
        read_minari,
        _LIMITS,
        is_like=lambda source: source.startswith(PREFIX),
    ),
    "lerobot": Reader("a LeRobot dataset, version 2 or 3", read_lerobot, _NAMED, (), is_lerobot),
    "rosbag2": Reader("a bag of ROS 2", read_rosbag, _NAMED, (".mcap", ".db3"), is_rosbag),
}
"""The formats of logs, by the name that `--format` takes."""


def format_of(source: str) -> str:
    """Return the name of the format of a log, told from its name and its files."""
    for name, reader in READERS.items():
        if reader.is_like(source):
            return name
    suffix = Path(source).suffix.lower()
    for name, reader in READERS.items():
        if suffix in reader.suffixes:
            return name
    if Path(source).is_dir():
        raise ValueError(
            f"Expected the folder {source} to be a LeRobot dataset, with meta/info.json, or a bag "
            "of ROS 2, with metadata.yaml; it has neither."
        )
    return _NPZ  # Its reader says what was expected.


def read_log(source: str | Path, options: LogOptions | None = None) -> Trajectories:
    """Read a log of any format, without a check of all its numbers; see `check`.

    Args:
        source: A file, a folder, or minari:ID.
        options: What the log does not say itself.

    Returns:
        The episodes.

    Raises:
        ValueError: If it cannot be read, has no limits that can be, or nothing varies in it.
    """
    source, options = str(source), options or LogOptions()
    if options.format is not None and options.format not in READERS:
        raise ValueError(
            f"Expected the format to be one of {', '.join(READERS)}; got {options.format!r}."
        )
    options.check()
    name = options.format or format_of(source)
    reader = READERS[name]
    wrong = [given for given in options.given() if given not in reader.takes | {"format"}]
    if wrong:
        takers = [name for name, each in READERS.items() if wrong[0] in each.takes]
        raise ValueError(
            f"Expected --{wrong[0]} for a log of the format {' or '.join(takers)} only; got "
            f"{source}, {name}."
        )
    found = reader.read(source, options)
    if isinstance(found, Rows):
        found = from_rows(found, options, source)
    elif isinstance(found, Signals):
        found = from_signals(found, options, source)
    if name != _NPZ:
        _refuse_constant(found, source)
    return with_limits(found, options.bounds(found.action_size))


def _refuse_constant(data: Trajectories, source: str) -> None:
    """Refuse a log from which no effect of an action could be learnt."""
    for what, names in (
        ("actions", data.spaces.action_names),
        ("observations", data.spaces.observation_names),
    ):
        rows = np.concatenate([getattr(episode, what) for episode in data.episodes])
        if not len(rows):
            continue
        constant = (rows == rows[0]).all(axis=0)
        if constant.all() if what == "observations" else constant.any():
            name = names[int(np.argmax(constant))]
            raise ValueError(
                f"Expected the {what} in {source} to vary; {name} is always "
                f"{rows[0, int(np.argmax(constant))]:g}. Leave it out of --{what}."
            )
