"""Reading and writing controller bundles; input is treated as untrusted."""

import hashlib
import io
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as save_tensors

from empowerment.controller.bundle import Bundle, Description
from empowerment.files import convert, decode, encode, read_bytes, to_arrays, write_atomic

WEIGHTS, MANIFEST = "controller.safetensors", "controller.json"
"""Files of a controller bundle in a run folder."""

FORMAT = "empowerment controller, version 4"
_FORMAT_3 = "empowerment controller, version 3"
_FORMAT_2 = "empowerment controller, version 2"
_FORMAT_1 = "empowerment controller, version 1"

_WEIGHTS_ALONE = (_FORMAT_1, _FORMAT_2)
"""Versions whose SHA-256 is that of the weights alone."""

_BEFORE_4: dict[str, Any] = {"bound_error": None, "monitor": None}
_NO_CHOICES: dict[str, Any] = {"choices": [], "uniform_share": 0.0, **_BEFORE_4}
_LEFT_OUT: dict[str, dict[str, Any]] = {
    FORMAT: {},
    _FORMAT_3: _BEFORE_4,
    _FORMAT_2: _NO_CHOICES,
    _FORMAT_1: {**_NO_CHOICES, "least_scale": 1e-3, "log_scales": [-4.0, 1.0]},
}
"""Fields that a version left out, with their values at that time."""

_WHAT = "the manifest of a controller"
_LARGEST_MANIFEST = 1 << 22
_LARGEST_WEIGHTS = 1 << 28
"""Limits in bytes, enforced before reading."""


def write_bundle(bundle: Bundle, folder: Path) -> None:
    """Write a controller bundle: the weights, then the manifest, each atomically.

    Args:
        bundle: The controller bundle.
        folder: Target folder, created if needed.
    """
    data = save_tensors({name: np.ascontiguousarray(a) for name, a in bundle.arrays.items()})
    write_atomic(folder / WEIGHTS, data)
    write_atomic(folder / MANIFEST, to_json(bundle.description, data))


def read_bundle(folder: Path) -> Bundle:
    """Read a controller bundle.

    Only two files with fixed names are read, and links are not followed. Sizes are limited
    before reading, and all content is validated before use.

    Args:
        folder: A run folder, or any other folder that contains the two files.

    Returns:
        The controller bundle.

    Raises:
        ValueError: If a file is missing, too large, damaged or invalid.
    """
    text = _read(folder, MANIFEST, _LARGEST_MANIFEST)
    data = _read(folder, WEIGHTS, _LARGEST_WEIGHTS)
    description = from_json(text, data, folder / MANIFEST)
    path = folder / WEIGHTS
    arrays = to_arrays(data, path)
    try:
        return Bundle(description, arrays)
    except ValueError as error:
        raise ValueError(f"The controller in {path} is invalid. {error}") from error


def to_npz(bundle: Bundle) -> bytes:
    """Serialise a bundle as one NumPy archive: its arrays, and the manifest as `description`."""
    file = io.BytesIO()
    text = np.frombuffer(to_json(bundle.description, b""), np.uint8)
    np.savez(file, description=text, **bundle.arrays)  # pyright: ignore[reportArgumentType]
    return file.getvalue()


def read_npz(path: Path) -> Bundle:
    """Read a bundle that was exported as a NumPy archive.

    Raises:
        ValueError: If the file is missing, too large, damaged or something else.
    """
    try:
        return from_npz(read_bytes(path, most=_LARGEST_WEIGHTS), path)
    except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"Expected {path} to be an archive that empower export wrote; {error}."
        ) from error


def from_npz(data: bytes, path: Path) -> Bundle:
    """Parse a NumPy archive as `to_npz` makes it.

    Args:
        data: The archive.
        path: Its file, for error messages.

    Raises:
        ValueError: If it is something else.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > _LARGEST_WEIGHTS:
        raise ValueError(
            f"Expected {path} to have at most {_LARGEST_WEIGHTS} bytes unpacked; got {size}."
        )
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    text = arrays.pop("description").tobytes()
    return Bundle(from_json(text, b"", path), arrays)


def to_json(description: Description, data: bytes) -> bytes:
    """Serialise a description as a manifest, with the size of the weights and the SHA-256 of both.

    Args:
        description: The description.
        data: The weights.
    """
    fields = {"format": FORMAT, "bytes": len(data), **asdict(description)}
    return encode({**fields, "sha256": _digest(data, fields)})


def from_json(text: bytes, data: bytes, path: Path) -> Description:
    """Parse a manifest of any version, and check that it and the weights are as written.

    Args:
        text: The manifest.
        data: The weights.
        path: File of the manifest, for error messages.

    Raises:
        ValueError: If the manifest is invalid, or either was changed.
    """
    fields = decode(text, dict[str, Any], what=_WHAT, source=path)
    digest = convert(fields.pop("sha256", None), str, what=f"{_WHAT} with sha256", source=path)
    found, version = _digest(data, fields), fields.pop("format", None)
    if version not in list(_LEFT_OUT):
        raise ValueError(f"Expected {path} to be {_WHAT}; got the format {version!r:.80}.")
    later = _LEFT_OUT[version]
    if version == _FORMAT_1:
        later = {**later, "num_initial": fields.pop("num_first", None)}
    if odd := sorted(set(later) & set(fields)):
        raise ValueError(
            f"Expected {path} to be {_WHAT} of version {version[-1]}; got the unexpected "
            f"{', '.join(odd)}."
        )
    fields |= later
    fields.setdefault("monitor", None)  # The first bundles of version 4 had no such field.
    size = convert(fields.pop("bytes", None), int, what=f"{_WHAT} with bytes", source=path)
    if len(data) != size:
        raise ValueError(
            f"Expected the weights beside {path} to have {size} bytes, as in it; got {len(data)}. "
            "The file is damaged or was replaced."
        )
    if digest != (hashlib.sha256(data).hexdigest() if version in _WEIGHTS_ALONE else found):
        raise ValueError(
            f"Expected {path} and its weights to be as they were written; the SHA-256 differs. A "
            "file is damaged or was replaced."
        )
    return convert(fields, Description, what=_WHAT, source=path)


def _digest(data: bytes, fields: dict[str, Any]) -> str:
    """Compute the SHA-256 of weights, followed by all fields of their manifest but itself."""
    return hashlib.sha256(data + encode(fields)).hexdigest()


def _read(folder: Path, name: str, most: int) -> bytes:
    """Read a regular file of limited size, without following links."""
    try:
        return read_bytes(folder / name, most=most, links=False)
    except OSError as error:
        raise ValueError(f"{error} A finished training run writes one.") from error
