"""Arrays in one `.npz` file, read with care."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from empowerment.files import write_atomic

MAX_BYTES = 4 * 2**30
"""What a file may hold at most, so that a wrong one does not fill the memory."""

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
"""What reading a file that is damaged, or of another kind, may raise."""


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays whole or not at all; the same arrays give the same bits.

    Args:
        path: The file.
        arrays: By name.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, version=(1, 0))
    write_atomic(path, buffer.getvalue())


def read_arrays(
    path: Path, kinds: Mapping[str, tuple[str, int]], *, max_bytes: int
) -> dict[str, np.ndarray]:
    """Read arrays, after what all of them would take has been checked.

    Args:
        path: The file.
        kinds: The type and the number of axes of each array that must be there.
        max_bytes: What they may take at most.

    Returns:
        The arrays by name.

    Raises:
        Exception: One of `DAMAGE`, if the file is not as it should be.
    """
    with zipfile.ZipFile(path) as file:
        names = sorted(file.namelist())
        if names != sorted(f"{name}.npy" for name in kinds):
            raise ValueError(f"an archive of {', '.join(names[:5]) or 'nothing'}")
        total = 0
        for name, (kind, ndim) in kinds.items():
            total += _checked_bytes(file, name, np.dtype(kind), ndim)
        if total > max_bytes:
            raise ValueError(f"{total} bytes, more than the limit of {max_bytes}")
        arrays = {}
        for name in kinds:
            with file.open(f"{name}.npy") as entry:
                arrays[name] = np.lib.format.read_array(entry)
    return arrays


def _checked_bytes(file: zipfile.ZipFile, name: str, kind: np.dtype, ndim: int) -> int:
    """Check the header of an array against its kind and its entry; give what it would take."""
    with file.open(f"{name}.npy") as entry:
        version = np.lib.format.read_magic(entry)
        if version != (1, 0):
            raise ValueError(f"{name} in version {version} of the format of arrays")
        shape, _, dtype = np.lib.format.read_array_header_1_0(entry)
        follows = file.getinfo(f"{name}.npy").file_size - entry.tell()
    if dtype != kind or len(shape) != ndim:
        raise ValueError(f"{name} of type {dtype} and shape {shape}")
    taken = dtype.itemsize
    for axis in shape:  # integers of Python do not overflow
        taken *= int(axis)
    if taken != follows:
        raise ValueError(f"{name} with a header that does not fit what follows it")
    return taken
