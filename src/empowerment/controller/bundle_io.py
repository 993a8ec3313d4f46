"""Reading and writing controller bundles; input is treated as untrusted."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors, save as save_tensors

from empowerment.controller.bundle import Bundle, Description
from empowerment.files import write_atomic

WEIGHTS, MANIFEST = "controller.safetensors", "controller.json"
"""Files of a controller bundle in a run folder."""

FORMAT = "empowerment controller, version 2"
_FORMAT_1 = "empowerment controller, version 1"
_CONSTANTS_1 = {"least_scale": 1e-3, "log_scales": [-4.0, 1.0]}
"""Fields that version 1 left out, with their values at that time."""

_LARGEST_MANIFEST = 1 << 22
_LARGEST_WEIGHTS = 1 << 28
_LARGEST_HEADER = 1 << 20
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
    description, digest, size = from_json(text, folder / MANIFEST)
    data = _read(folder, WEIGHTS, _LARGEST_WEIGHTS)
    path = folder / WEIGHTS
    if len(data) != size:
        raise ValueError(
            f"Expected {path} to have {size} bytes, as in {MANIFEST}; got {len(data)}. The file "
            "is damaged or was replaced."
        )
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(
            f"Expected the weights in {path} to be those of {MANIFEST}; the SHA-256 differs. The "
            "file is damaged or was replaced."
        )
    header = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if not 0 <= header <= min(_LARGEST_HEADER, len(data) - 8):
        raise ValueError(f"Expected the header of {path} to fit the file; it does not.")
    try:
        arrays = load_tensors(data)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"Expected {path} to be a safetensors file; got {error!s:.200}."
        ) from error
    try:
        return Bundle(description, arrays)
    except ValueError as error:
        raise ValueError(f"The controller in {path} is invalid. {error}") from error


def to_json(description: Description, data: bytes) -> bytes:
    """Serialise a description as a manifest, with the SHA-256 and the size of the weights."""
    manifest = {
        "format": FORMAT,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        **asdict(description),
    }
    return (json.dumps(manifest, indent=2, allow_nan=False) + "\n").encode()


def from_json(text: bytes, path: Path) -> tuple[Description, str, int]:
    """Parse a manifest of version 1 or 2.

    Args:
        text: The manifest.
        path: Its file, for error messages.

    Returns:
        The description, and the SHA-256 and the size of the weights.

    Raises:
        ValueError: If the manifest is invalid.
    """
    try:
        manifest = json.loads(text.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {path} to be JSON; got {error!s:.200}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") not in (FORMAT, _FORMAT_1):
        raise ValueError(f"Expected {path} to be the manifest of a controller; it is not.")
    names = {field.name for field in fields(Description)}
    required = names | {"format", "sha256", "bytes"}
    if manifest["format"] == _FORMAT_1:
        required = required - {"num_initial", *_CONSTANTS_1} | {"num_first"}
    if set(manifest) != required:
        raise ValueError(
            f"Expected {path} to be complete, with no other fields; missing or unexpected: "
            f"{', '.join(sorted(set(manifest) ^ required))[:200]}."
        )
    if manifest["format"] == _FORMAT_1:
        manifest |= {"num_initial": manifest["num_first"], **_CONSTANTS_1}
    digest, size = manifest["sha256"], manifest["bytes"]
    if not isinstance(digest, str) or type(size) is not int:
        raise ValueError(
            f"Expected sha256 and bytes in {path} to be a string and an integer; got "
            f"{digest!r:.80} and {size!r:.80}."
        )
    for name, (is_right, rule) in _RULES.items():
        if not is_right(manifest[name]):
            raise ValueError(f"Expected {name} in {path} to be {rule}; got {manifest[name]!r:.80}.")
    values = {name: _frozen(manifest[name]) for name in names}
    values["networks"] = {name: _frozen(each) for name, each in manifest["networks"].items()}
    try:
        values["interval"] = None if values["interval"] is None else float(values["interval"])
        values["least_scale"] = float(values["least_scale"])
        values["log_scales"] = tuple(map(float, values["log_scales"]))
        return Description(**values), digest, size
    except (OverflowError, ValueError) as error:
        raise ValueError(f"The controller in {path} is invalid. {error}") from error


def _frozen(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _list_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(type(each) in kinds for each in value)


def _one_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def _is_networks(value: Any) -> bool:
    return type(value) is dict and all(map(_list_of(str), value.values()))


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "observation_names": (_list_of(str), "a list of strings"),
    "action_names": (_list_of(str), "a list of strings"),
    "low": (_list_of(int, float), "a list of numbers"),
    "high": (_list_of(int, float), "a list of numbers"),
    "networks": (_is_networks, "lists of activations by name"),
    "angles": (_list_of(int), "a list of integers"),
    "latent_size": (_one_of(int), "an integer"),
    "num_initial": (_one_of(int), "an integer"),
    "residual": (_one_of(bool), "true or false"),
    "scales": (lambda value: value in ("softplus", "square"), "softplus or square"),
    "least_scale": (_one_of(int, float), "a number"),
    "log_scales": (lambda value: _list_of(int, float)(value) and len(value) == 2, "two numbers"),
    "environment": (_one_of(str, type(None)), "a string or null"),
    "interval": (_one_of(int, float, type(None)), "a number or null"),
    "action_repeat": (_one_of(int), "an integer"),
    "about": (_one_of(dict), "an object"),
}
"""Type of each field of a manifest; `Description` checks the values."""


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word}, which is not a number")


def _read(folder: Path, name: str, most: int) -> bytes:
    """Read a regular file of limited size, without following links."""
    path = folder / name
    try:
        # Neither block on a pipe nor follow a link out of the folder.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(
                f"Expected {path} to be a file in the folder itself; it is a link."
            ) from None
        raise ValueError(
            f"Expected {folder} to contain a controller; {name} cannot be read "
            f"({os.strerror(error.errno or 0)}). A finished training run writes one."
        ) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ValueError(f"Expected {path} to be a regular file; it is not.")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > most:
            raise ValueError(f"Expected {path} to have at most {most} bytes; got {status.st_size}.")
        return file.read(most)
