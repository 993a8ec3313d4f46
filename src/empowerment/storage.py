"""What was learnt, on disk: arrays as safetensors, and a manifest that says what they are."""

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from empowerment.files import write_atomic

_TreeT = TypeVar("_TreeT")

_FORMAT = "empowerment arrays, version 1"


def save_tree(tree: Any, path: Path, *, about: dict[str, Any]) -> None:
    """Write arrays to `path`, and what they are to the file with the ending `.json`.

    Both are written whole or not at all. The manifest is written last and holds the
    SHA-256 of the weights, so a half-finished save cannot be taken for a whole one.

    Args:
        tree: What has the arrays.
        path: The file of the weights, such as `pendulum.safetensors`.
        about: What it is, for people and for `load_tree`'s caller: world, family, steps.
    """
    data = save_tensors({name: np.asarray(leaf) for name, leaf in _leaves(tree).items()})
    manifest = {"format": _FORMAT, "sha256": hashlib.sha256(data).hexdigest(), "about": about}
    write_atomic(path, data)
    write_atomic(path.with_suffix(".json"), (json.dumps(manifest, indent=2) + "\n").encode())


def read_about(path: Path) -> dict[str, Any]:
    """Read what saved arrays are.

    Args:
        path: The file of the weights.

    Returns:
        What `save_tree` was told.
    """
    return _manifest(path)["about"]


def load_tree(like: _TreeT, path: Path) -> _TreeT:
    """Read arrays into something of the same make.

    Args:
        like: Of the same kind and sizes, such as an untrained channel for a trained one.
        path: The file of the weights.

    Returns:
        The same with the arrays of the file.

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
            f"Expected the arrays in {path} to have the family and sizes of what they are "
            "loaded into; they differ in name or shape."
        )
    for name, leaf in stored.items():
        if not np.all(np.isfinite(leaf)):
            raise ValueError(f"Expected the weights in {path} to be finite; {name} is not.")
    arrays, rest = eqx.partition(like, eqx.is_array)
    names = list(wanted)
    flat, structure = jax.tree.flatten(arrays)
    filled = [_restored(stored[name], leaf) for name, leaf in zip(names, flat, strict=True)]
    return eqx.combine(jax.tree.unflatten(structure, filled), rest)


def _leaves(tree: Any) -> dict[str, Any]:
    """Name every array by its place; keys become their bits."""
    arrays = eqx.filter(tree, eqx.is_array)
    return {
        jax.tree_util.keystr(place): jax.random.key_data(leaf) if _is_key(leaf) else leaf
        for place, leaf in jax.tree_util.tree_flatten_with_path(arrays)[0]
    }


def _restored(stored: np.ndarray, like: Any) -> jax.Array:
    """Make what was stored of the same kind as before."""
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=jax.random.key_impl(like))
    return jnp.asarray(stored, like.dtype)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _manifest(path: Path) -> dict[str, Any]:
    """Read and check the manifest beside the weights."""
    file = path.with_suffix(".json")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"Expected {file} to be a manifest; got {error}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ValueError(f"Expected {file} to be the manifest of saved arrays; it is not.")
    return manifest
