"""Pytrees on disk: arrays as safetensors, and a JSON manifest that describes them."""

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors, save as save_tensors

from empowerment.files import write_atomic

_TreeT = TypeVar("_TreeT")

_FORMAT = "empowerment arrays, version 1"

_RENAMED = {".calm": ".noise_factor"}
"""Names of arrays in earlier versions, and today's."""


def save_tree(tree: Any, path: Path, *, about: dict[str, Any]) -> None:
    """Write the arrays of a pytree to `path`, and its manifest to the file ending in `.json`.

    Both writes are atomic. The manifest is written last and holds the SHA-256 of the arrays, so
    an interrupted save cannot be taken for a complete one.

    Args:
        tree: The pytree.
        path: File of the arrays, such as `pendulum.safetensors`.
        about: Description of the arrays, in JSON.
    """
    data = save_tensors({name: np.asarray(leaf) for name, leaf in _leaves(tree).items()})
    manifest = {"format": _FORMAT, "sha256": hashlib.sha256(data).hexdigest(), "about": about}
    write_atomic(path, data)
    write_atomic(path.with_suffix(".json"), (json.dumps(manifest, indent=2) + "\n").encode())


def read_about(path: Path) -> dict[str, Any]:
    """Read the description of saved arrays."""
    return _manifest(path)["about"]


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read arrays by their names.

    Raises:
        ValueError: If the file is damaged, or a value is not finite.
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
    for name, leaf in stored.items():
        if not np.all(np.isfinite(leaf)):
            raise ValueError(f"Expected the weights in {path} to be finite; {name} is not.")
    return {_RENAMED.get(name, name): leaf for name, leaf in stored.items()}


def load_tree(like: _TreeT, path: Path) -> _TreeT:
    """Read arrays into a pytree of the same structure.

    Args:
        like: Of the same structure and sizes, such as an untrained channel for a trained one;
            its leaves may be shapes alone, as `eqx.filter_eval_shape` returns them.
        path: File of the arrays.

    Returns:
        The same pytree with the arrays of the file.

    Raises:
        ValueError: If the file is damaged, or of another structure.
    """
    stored, wanted = load_arrays(path), _leaves(like)
    if {name: leaf.shape for name, leaf in wanted.items()} != {
        name: leaf.shape for name, leaf in stored.items()
    }:
        raise ValueError(
            f"Expected the arrays in {path} to have the family and sizes of what they are "
            "loaded into; they differ in name or shape."
        )
    arrays, rest = eqx.partition(like, _is_array)
    flat, structure = jax.tree.flatten(arrays)
    filled = [_restored(stored[name], leaf) for name, leaf in zip(wanted, flat, strict=True)]
    return eqx.combine(jax.tree.unflatten(structure, filled), rest)


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _leaves(tree: Any) -> dict[str, Any]:
    """Name every array by its path; keys become their bits."""
    arrays = eqx.filter(tree, _is_array)
    return {
        jax.tree_util.keystr(path): jax.random.key_data(leaf) if _is_key(leaf) else leaf
        for path, leaf in jax.tree_util.tree_flatten_with_path(arrays)[0]
    }


def _restored(stored: np.ndarray, like: Any) -> jax.Array:
    """Convert a stored array to the type that it had."""
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=jax.random.key_impl(like))
    return jnp.asarray(stored, like.dtype)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _manifest(path: Path) -> dict[str, Any]:
    """Read and check the manifest beside the arrays."""
    file = path.with_suffix(".json")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"Expected {file} to be a manifest; got {error}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ValueError(f"Expected {file} to be the manifest of saved arrays; it is not.")
    return manifest
