"""Pytrees on disk: arrays as safetensors, and a JSON manifest that describes them."""

import hashlib
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save as save_tensors

from empowerment.files import convert, encode, read_bytes, read_json, to_arrays, write_atomic

_TreeT = TypeVar("_TreeT")

_FORMAT = "empowerment arrays, version 2"
_MAX_BYTES = 1 << 32
"""Maximal size of a file of arrays in bytes."""

_RENAMED = {".calm": ".noise_factor"}
"""Names of arrays in earlier versions, and today's."""


class _Manifest(TypedDict):
    """The JSON beside the arrays; in version 1 the hash was of the arrays alone."""

    format: Literal["empowerment arrays, version 2", "empowerment arrays, version 1"]
    sha256: str
    about: dict[str, Any]


def save_tree(tree: Any, path: Path, *, about: dict[str, Any]) -> None:
    """Write the arrays of a pytree to `path`, and its manifest to the file ending in `.json`.

    Both writes are atomic. The manifest is written last and holds the SHA-256 of the arrays and
    their description, so neither an interrupted save nor damage is taken for a complete one.

    Args:
        tree: The pytree.
        path: File of the arrays, such as `pendulum.safetensors`.
        about: Description of the arrays, in JSON.
    """
    data = save_tensors({name: np.asarray(leaf) for name, leaf in _leaves(tree).items()})
    manifest = {"format": _FORMAT, "sha256": _digest(data, about), "about": about}
    write_atomic(path, data)
    write_atomic(path.with_suffix(".json"), encode(manifest))


def is_saved(path: Path) -> bool:
    """Return whether both files of saved arrays are there."""
    return path.exists() and path.with_suffix(".json").exists()


def read_about(path: Path, kind: Any = dict[str, Any]) -> Any:
    """Read the description of saved arrays.

    Args:
        path: File of the arrays.
        kind: Type of the description, as in `empowerment.files.decode`.

    Raises:
        ValueError: If a file is damaged, or the description is not of this type.
    """
    about, _ = _read(path)
    what = "the description of saved arrays"
    return convert(about, kind, what=what, source=path.with_suffix(".json"))


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read arrays by their names.

    Raises:
        ValueError: If a file is damaged, or a value is not finite.
    """
    _, data = _read(path)
    stored = to_arrays(data, path)
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


def _digest(data: bytes, about: dict[str, Any]) -> str:
    """Return the SHA-256 of the arrays, followed by their description."""
    return hashlib.sha256(data + encode(about)).hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Read the description and the encoded arrays, and check the hash."""
    file = path.with_suffix(".json")
    manifest: _Manifest = read_json(file, _Manifest, what="the manifest of saved arrays")
    data, about = read_bytes(path, most=_MAX_BYTES), manifest["about"]
    is_first = manifest["format"] != _FORMAT
    found = hashlib.sha256(data).hexdigest() if is_first else _digest(data, about)
    if found != manifest["sha256"]:
        raise ValueError(
            f"Expected {path} and {file.name} to be as they were written; the SHA-256 differs. A "
            "file is damaged or was replaced."
        )
    return about, data
