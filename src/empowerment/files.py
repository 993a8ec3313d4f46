"""Files that are there whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file by way of a temporary one, so that no reader ever sees a part of it.

    Args:
        path: The file; its folder is made if need be.
        data: What to write.
    """
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
    """Give the permissions that new files are not to have; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
