"""Channels on disk: weights as safetensors, and a manifest that says what they are."""

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from empowerment.channel.base import AbstractChannel
from empowerment.files import write_whole

_ChannelT = TypeVar("_ChannelT", bound=AbstractChannel)

_FORMAT = "empowerment channel, version 1"


def save_channel(channel: AbstractChannel, path: Path, *, about: dict[str, Any]) -> None:
    """Write a channel to `path`, and what it is to the file with the ending `.json`.

    Both are written whole or not at all. The manifest is written last and holds the
    SHA-256 of the weights, so a half-finished save cannot be taken for a channel.

    Args:
        channel: The channel.
        path: The file of the weights, such as `pendulum.safetensors`.
        about: What it is, for people and for `load_channel`'s caller: world, family, steps.
    """
    data = save_tensors({name: np.asarray(leaf) for name, leaf in _leaves(channel).items()})
    manifest = {"format": _FORMAT, "sha256": hashlib.sha256(data).hexdigest(), "about": about}
    write_whole(path, data)
    write_whole(path.with_suffix(".json"), (json.dumps(manifest, indent=2) + "\n").encode())


def read_about(path: Path) -> dict[str, Any]:
    """Read what a saved channel is.

    Args:
        path: The file of the weights.

    Returns:
        What `save_channel` was told.
    """
    return _manifest(path)["about"]


def load_channel(like: _ChannelT, path: Path) -> _ChannelT:
    """Read the weights of a channel.

    Args:
        like: A channel of the same family and sizes, trained or not.
        path: The file of the weights.

    Returns:
        The same channel with the weights of the file.

    Raises:
        ValueError: If the file is damaged, or of another shape.
    """
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != _manifest(path)["sha256"]:
        raise ValueError(
            f"Expected the weights in {path} to be those of its manifest; the SHA-256 differs. "
            "The file is damaged or was replaced."
        )
    try:
        stored = load_tensors(data)
    except SafetensorError as error:
        raise ValueError(f"Expected {path} to be a safetensors file; got {error}.") from error
    wanted = _leaves(like)
    if {name: leaf.shape for name, leaf in wanted.items()} != {
        name: leaf.shape for name, leaf in stored.items()
    }:
        raise ValueError(
            f"Expected the channel in {path} to have the family and sizes of the one it is "
            "loaded into; its arrays differ in name or shape."
        )
    for name, leaf in stored.items():
        if not np.all(np.isfinite(leaf)):
            raise ValueError(f"Expected the weights in {path} to be finite; {name} is not.")
    arrays, rest = eqx.partition(like, eqx.is_array)
    names = list(wanted)
    flat, structure = jax.tree.flatten(arrays)
    filled = [
        jax.numpy.asarray(stored[name], leaf.dtype) for name, leaf in zip(names, flat, strict=True)
    ]
    return eqx.combine(jax.tree.unflatten(structure, filled), rest)


def _leaves(channel: AbstractChannel) -> dict[str, Any]:
    """Name every array of a channel by its place."""
    arrays = eqx.filter(channel, eqx.is_array)
    return {
        jax.tree_util.keystr(place): leaf
        for place, leaf in jax.tree_util.tree_flatten_with_path(arrays)[0]
    }


def _manifest(path: Path) -> dict[str, Any]:
    """Read and check the manifest beside the weights."""
    file = path.with_suffix(".json")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"Expected {file} to be a manifest; got {error}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ValueError(f"Expected {file} to be the manifest of a channel; it is not.")
    return manifest
