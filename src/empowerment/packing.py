"""Run folders as tars, to send them to where no disk is shared."""

import io
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from empowerment.files import write_atomic


def pack_folder(folder: Path) -> bytes:
    """Return a run folder as a tar, with nothing that depends on when and where it was written."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            data = path.read_bytes()
            member = tarfile.TarInfo(str(path.relative_to(folder)))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return memory.getvalue()


def unpack_folder(data: bytes, folder: Path) -> None:
    """Write a run folder that was sent back, all of it or nothing.

    Raises:
        ValueError: If something in it is not a file below the folder.
    """
    arriving = folder.with_name(f".{folder.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            content = tar.extractfile(member) if member.isreg() else None
            if content is None or path.is_absolute() or ".." in path.parts:
                raise ValueError(f"Expected a file of a run; got {member.name!r}.")
            write_atomic(arriving / path, content.read())
    shutil.rmtree(folder, ignore_errors=True)
    arriving.rename(folder)
