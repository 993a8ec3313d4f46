"""Arrays in one `.npz` file, validated on reading."""

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from empowerment.files import open_regular, write_atomic

MAX_BYTES = 4 * 2**30
"""Largest dataset, so that a wrong file does not fill the memory."""

READ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
"""Errors on reading a file that is damaged or has another format."""


def check_size(source: object, size: int, most: int) -> None:
    """Raise a `ValueError` if data would fill the memory."""
    if size > most:
        raise ValueError(f"Expected {source} to have at most {most} bytes; got {size}.")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays atomically; equal arrays give identical files.

    Args:
        path: The file.
        arrays: The arrays by name.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, version=(1, 0))
    write_atomic(path, buffer.getvalue())


Kinds = Mapping[str, tuple[str, int]]
"""The type and the number of axes of arrays, by name."""


def read_arrays(
    path: Path, required: Kinds, optional: Kinds | None = None, *, max_bytes: int
) -> dict[str, np.ndarray]:
    """Read arrays; their headers and total size are checked before memory is allocated.

    Args:
        path: The file.
        required: The arrays that there must be.
        optional: Those that there may be, too.
        max_bytes: The largest total size.

    Returns:
        The arrays by name.

    Raises:
        Exception: One of `READ_ERRORS`, if the file is invalid.
    """
    with open_regular(path) as raw, zipfile.ZipFile(raw) as file:
        names = sorted(file.namelist())
        more = {name: kind for name, kind in (optional or {}).items() if f"{name}.npy" in names}
        kinds = {**required, **more}
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
    """Check the header of an array against its kind and its entry; return its size in bytes."""
    with file.open(f"{name}.npy") as entry:
        version = np.lib.format.read_magic(entry)
        if version != (1, 0):
            raise ValueError(f"{name} in version {version} of the array format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(entry)
        size = file.getinfo(f"{name}.npy").file_size - entry.tell()
    if dtype != kind or len(shape) != ndim:
        raise ValueError(f"{name} of type {dtype} and shape {shape}")
    if math.prod(map(int, shape), start=dtype.itemsize) != size:  # Python's integers: no overflow
        raise ValueError(f"{name} with a header that does not fit its size")
    return size
