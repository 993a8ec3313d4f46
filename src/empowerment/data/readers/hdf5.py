"""HDF5 files in the layout of D4RL: one array of all rows, and flags where episodes end."""

from pathlib import Path
from typing import Any

import numpy as np

from empowerment.data.archive import MAX_BYTES, check_size
from empowerment.data.readers.base import LogOptions, file_of, optional, refusing
from empowerment.data.spaces import free_spaces
from empowerment.data.trajectories import Episode, Trajectories
from empowerment.files import open_regular

_ONE_AXIS = ("terminals", "timeouts", "rewards")


def read_hdf5(source: str, options: LogOptions, *, max_bytes: int = MAX_BYTES) -> Trajectories:
    """Read observations, actions, terminals, and what else is there of the layout.

    The observation after the last action of an episode is in `next_observations` alone. Without
    them a terminal state was not logged: the episode counts as truncated one step before it.
    """
    path = file_of(source)
    hdf5 = optional("h5py", path)
    with (
        open_regular(path) as raw,
        refusing(path, "an HDF5 file", OSError, RuntimeError, KeyError, TypeError),
        hdf5.File(raw, "r") as file,
    ):
        names = ["observations", "actions", "terminals"]
        names += [name for name in ("timeouts", "next_observations", "rewards") if name in file]
        found = {name: _dataset(file, name, path, hdf5) for name in names}
        check_size(
            path, sum(each.size * max(each.dtype.itemsize, 8) for each in found.values()), max_bytes
        )
        arrays = {name: np.asarray(each[()], float) for name, each in found.items()}
    rows = len(arrays["observations"])
    for name, values in arrays.items():
        if len(values) != rows:
            raise ValueError(
                f"Expected {name} of {path} to have a row for each of {rows} observations; got "
                f"{len(values)}."
            )
    after = arrays.get("next_observations")
    if after is not None and after.shape != arrays["observations"].shape:
        raise ValueError(
            f"Expected next_observations of {path} to have the shape of observations, "
            f"{arrays['observations'].shape}; got {after.shape}."
        )
    if not rows:
        raise ValueError(f"Expected {path} to have at least one row; got none.")
    terminals = arrays["terminals"] != 0
    is_last = terminals | (arrays.get("timeouts", np.zeros(rows)) != 0)
    if after is not None:  # A log without timeouts shows by them where an episode was cut.
        is_last[:-1] |= (after[:-1] != arrays["observations"][1:]).any(axis=1)
    is_last[-1] = True
    episodes, lost = [], 0
    first = 0
    for last in np.flatnonzero(is_last).tolist():
        seen = arrays["observations"][first : last + 1]
        ends = bool(terminals[last])
        if after is not None:
            seen = np.concatenate([seen, after[last : last + 1]])
        else:
            lost += ends
            ends = False
        steps = slice(first, first + len(seen) - 1)
        paid = arrays["rewards"][steps] if "rewards" in arrays else None
        episodes.append(Episode(seen, arrays["actions"][steps], ends, not ends, paid))
        first = last + 1
    spaces = free_spaces(
        *(
            [f"{what}_{axis}" for axis in range(arrays[f"{what}s"].shape[1])]
            for what in ("observation", "action")
        )
    )
    about = {"environment": None, "file": path.name, "interval": options.interval}
    if lost:
        about["unseen_ends"] = lost
    return Trajectories(tuple(episodes), spaces, about)


def _dataset(file: Any, name: str, path: Path, hdf5: Any) -> Any:
    """Return an array of the file itself, with the right axes and numbers in it."""
    if name not in file:
        raise ValueError(
            f"Expected {path} to have {name}, as D4RL's files do; it has "
            f"{', '.join(file)[:200] or 'nothing'}."
        )
    is_here = isinstance(file.get(name, getlink=True), hdf5.HardLink)
    found: Any = file[name] if is_here else None
    if not isinstance(found, hdf5.Dataset) or found.is_virtual or found.external:
        raise ValueError(f"Expected {name} of {path} to be an array in the file itself; it is not.")
    axes = 1 if name in _ONE_AXIS else 2
    if found.dtype.kind not in "fiub" or found.ndim != axes:
        raise ValueError(
            f"Expected {name} of {path} to be numbers with {axes} axes; got the type "
            f"{found.dtype!s:.60} and the shape {found.shape}."
        )
    return found
