"""The two files of a controller, read as if they came from an enemy."""

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
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from empowerment.controller.bundle import Bundle, Description
from empowerment.files import write_atomic

WEIGHTS, MANIFEST = "controller.safetensors", "controller.json"
"""The files of a controller in a run folder."""

FORMAT = "empowerment controller, version 1"

_LARGEST_MANIFEST = 1 << 22
_LARGEST_WEIGHTS = 1 << 28
_LARGEST_HEADER = 1 << 20
"""Bytes. Nothing larger is read, whatever a file says of itself."""


def write_bundle(bundle: Bundle, folder: Path) -> None:
    """Write a controller: first the weights, then what they are, each whole or not at all.

    Args:
        bundle: The controller.
        folder: Where to.
    """
    data = save_tensors({name: np.ascontiguousarray(a) for name, a in bundle.arrays.items()})
    write_atomic(folder / WEIGHTS, data)
    write_atomic(folder / MANIFEST, to_json(bundle.description, data))


def read_bundle(folder: Path) -> Bundle:
    """Read a controller.

    Only the two files are read, both in the folder itself; their names are not taken from
    anywhere. Sizes are limited before anything is read, and everything is checked before
    anything is made of it.

    Args:
        folder: A run folder, or any other with the two files.

    Returns:
        The controller.

    Raises:
        ValueError: If a file is missing, too large, damaged, or not what it says.
    """
    text = _read(folder, MANIFEST, _LARGEST_MANIFEST)
    description, digest, size = from_json(text, folder / MANIFEST)
    data = _read(folder, WEIGHTS, _LARGEST_WEIGHTS)
    path = folder / WEIGHTS
    if len(data) != size:
        raise ValueError(
            f"Expected {path} to have the {size} bytes of {MANIFEST}; got {len(data)}. The file "
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
        raise ValueError(f"The controller in {path} cannot be used. {error}") from error


def to_json(description: Description, data: bytes) -> bytes:
    """Write what a controller is, with the SHA-256 and the size of its weights."""
    manifest = {
        "format": FORMAT,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        **asdict(description),
    }
    return (json.dumps(manifest, indent=2, allow_nan=False) + "\n").encode()


def from_json(text: bytes, path: Path) -> tuple[Description, str, int]:
    """Read what a controller is, and the SHA-256 and the size of its weights.

    Args:
        text: The manifest.
        path: Where it is from, for the sentence that refuses it.
    """
    try:
        manifest = json.loads(text.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {path} to be JSON; got {error!s:.200}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"Expected {path} to be the manifest of a controller; it is not.")
    names = {field.name for field in fields(Description)}
    if set(manifest) != names | {"format", "sha256", "bytes"}:
        odd = sorted(set(manifest) ^ (names | {"format", "sha256", "bytes"}))
        raise ValueError(
            f"Expected {path} to say all that a controller is and no more; missing or too many: "
            f"{', '.join(odd)[:200]}."
        )
    digest, size = manifest["sha256"], manifest["bytes"]
    if not isinstance(digest, str) or type(size) is not int:
        raise ValueError(
            f"Expected sha256 and bytes in {path} to be text and a number; got {digest!r:.80} and "
            f"{size!r:.80}."
        )
    for name, (is_right, rule) in _RULES.items():
        if not is_right(manifest[name]):
            raise ValueError(f"Expected {name} in {path} to be {rule}; got {manifest[name]!r:.80}.")
    given = {name: _frozen(manifest[name]) for name in names}
    given["networks"] = {name: _frozen(each) for name, each in manifest["networks"].items()}
    if given["interval"] is not None:
        given["interval"] = float(given["interval"])
    try:
        return Description(**given), digest, size
    except ValueError as error:
        raise ValueError(f"The controller in {path} cannot be used. {error}") from error


def _frozen(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _list_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(type(each) in kinds for each in value)


def _one_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def _is_networks(value: Any) -> bool:
    return type(value) is dict and all(map(_list_of(str), value.values()))


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "observation_names": (_list_of(str), "a list of words"),
    "action_names": (_list_of(str), "a list of words"),
    "low": (_list_of(int, float), "a list of numbers"),
    "high": (_list_of(int, float), "a list of numbers"),
    "networks": (_is_networks, "lists of activations by name"),
    "angles": (_list_of(int), "a list of whole numbers"),
    "latent_size": (_one_of(int), "a whole number"),
    "num_initial": (_one_of(int), "a whole number"),
    "residual": (_one_of(bool), "true or false"),
    "scales": (lambda value: value in ("softplus", "square"), "softplus or square"),
    "environment": (_one_of(str, type(None)), "a name or null"),
    "interval": (_one_of(int, float, type(None)), "a number or null"),
    "action_repeat": (_one_of(int), "a whole number"),
    "about": (_one_of(dict), "anything with names"),
}
"""What each field of a manifest may be, before it is looked at more closely."""


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word}, which is not a number")


def _read(folder: Path, name: str, most: int) -> bytes:
    """Read a file of a folder: a plain one, no link, not larger than it may be."""
    path = folder / name
    try:
        # Not to wait for the other end of a pipe, and not to be led out of the folder.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(
                f"Expected {path} to be a file of the folder itself; it is a link."
            ) from None
        raise ValueError(
            f"Expected {folder} to have a controller; {name} cannot be read "
            f"({os.strerror(error.errno or 0)}). A finished training writes one."
        ) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ValueError(f"Expected {path} to be a plain file; it is not.")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > most:
            raise ValueError(f"Expected {path} to have at most {most} bytes; got {status.st_size}.")
        return file.read(most)
