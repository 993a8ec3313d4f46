"""Exporting: generate, validate, and only then write."""

import importlib.util
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.bundle_io import from_json, to_json
from empowerment.controller.export.c_code import CompiledC, c_files
from empowerment.controller.export.validation import Step, Validation, validate
from empowerment.controller.numpy_engine import NumpyEngine
from empowerment.files import write_atomic

_ENDINGS = {"c": ".h", "npz": ".npz", "onnx": ".onnx"}
FORMATS = tuple(_ENDINGS)
"""What can be exported to."""


def export(bundle: Bundle, format: str, path: Path) -> tuple[Validation, list[Path]]:
    """Write a controller in another format, if it proves to be the same.

    A step takes the observation and a state, and gives the action and the next state. A state
    of zeros begins anew; a number in the observation that is not finite means that it is missing.
    Limits of the actions are kept; nothing else of the controller's safety is in it.

    Args:
        bundle: The controller.
        format: `onnx`, `c` or `npz`.
        path: The file. For C it ends in `.h`, and the weights go to `..._weights.h` beside it.

    Returns:
        How it compares with the original on a thousand random steps, and what was written.

    Raises:
        ValueError: If it is not the same, or cannot be compared; then nothing is written.
    """
    if format not in _ENDINGS:
        raise ValueError(f"Expected the format to be one of {', '.join(FORMATS)}; got {format!r}.")
    if path.suffix != _ENDINGS[format]:
        raise ValueError(f"Expected the file to end in {_ENDINGS[format]}; got {str(path)!r}.")
    files, step = _MAKERS[format](bundle, path)
    found = validate(bundle, step)
    for file, data in files.items():
        write_atomic(file, data)
    return found, list(files)


def _c(bundle: Bundle, path: Path) -> tuple[dict[Path, bytes], Step]:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", path.stem):
        raise ValueError(
            "Expected the file to have a name that can begin the names of functions, of letters, "
            f"digits and underscores; got {path.stem!r}."
        )
    texts = c_files(bundle, path.stem)
    files = {path.parent / name: text.encode() for name, text in texts.items()}
    return files, CompiledC(bundle, path.stem, texts)


def _npz(bundle: Bundle, path: Path) -> tuple[dict[Path, bytes], Step]:
    file = io.BytesIO()
    text = np.frombuffer(to_json(bundle.description, b""), np.uint8)
    np.savez(file, description=text, **bundle.arrays)  # pyright: ignore[reportArgumentType]
    data = file.getvalue()
    engine = NumpyEngine(_read_npz(data, path))

    def step(observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        engine.load(memory)
        engine.observation = observation
        engine.run(seen=bool(np.isfinite(observation).all()))
        return engine.action.copy(), engine.memory.copy()

    return {path: data}, step


def _read_npz(data: bytes, path: Path) -> Bundle:
    """Read what was just written, to see that all of it is there."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    text = arrays.pop("description").tobytes()
    assert json.loads(text)["bytes"] == 0
    return Bundle(from_json(text, path)[0], arrays)


def _onnx(bundle: Bundle, path: Path) -> tuple[dict[Path, bytes], Step]:
    for module in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"Expected {module} to be installed, to export to ONNX; it is not. Install it by "
                "pip install 'empowerment[onnx]'."
            )
    from empowerment.controller.export.onnx_graph import onnx_model, runtime_step

    data = onnx_model(bundle)
    return {path: data}, runtime_step(data)


_MAKERS: dict[str, Callable[[Bundle, Path], tuple[dict[Path, bytes], Step]]] = {
    "c": _c,
    "npz": _npz,
    "onnx": _onnx,
}
