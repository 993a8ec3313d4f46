"""Export of controllers: generate, validate, and only then write."""

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.bundle_io import from_npz, to_npz
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import CompiledC
from empowerment.controller.export.ros2_package import check_package, package_files
from empowerment.controller.export.validation import (
    Step,
    Validation,
    validate,
    validate_safety,
)
from empowerment.controller.export.wasm import compile_wasm
from empowerment.controller.numpy_engine import NumpyEngine
from empowerment.controller.reference import reference_bound
from empowerment.controller.safety import Safety
from empowerment.files import write_atomic

_ENDINGS = {"c": ".h", "npz": ".npz", "onnx": ".onnx", "ros2": "", "wasm": ".wasm"}
_FROM_C = ("c", "ros2", "wasm")
FORMATS = tuple(_ENDINGS)
"""Export formats."""


def export(
    bundle: Bundle,
    format: str,
    path: Path,
    *,
    safety: Safety | None = None,
    with_empowerment: bool = False,
) -> tuple[Validation, list[Path]]:
    """Write a controller in another format, after validating it against the original.

    A step maps an observation and a state to an action and the next state. A state of zeros
    restarts the controller; an observation that is not finite counts as missing. Action limits
    are enforced; the other safety functions, the monitor of the model among them, are exported to C
    and what is made of it (`ros2`, `wasm`). An npz holds the monitor, for a controller made of it.

    Args:
        bundle: The controller bundle.
        format: `c`, `ros2`, `wasm`, `onnx` or `npz`.
        path: Output file. For C it ends in `.h`, and `..._weights.h` is written beside it. For
            ROS 2 it is a new folder.
        safety: Fault limits, for C, ROS 2 and WebAssembly; its record is not exported.
        with_empowerment: Whether to export the bound on empowerment too: of the state that the step
            acted in, NaN where that is not known.

    Returns:
        The comparison with the original on a thousand random steps, and the files written.

    Raises:
        ValueError: If the export differs or cannot be validated, or there is no bound to export;
            then nothing is written.
    """
    if format not in _ENDINGS:
        raise ValueError(f"Expected the format to be one of {', '.join(FORMATS)}; got {format!r}.")
    if path.suffix != _ENDINGS[format]:
        ending = _ENDINGS[format] or "no dot, since it is a folder,"
        raise ValueError(f"Expected the file to end in {ending}; got {str(path)!r}.")
    if safety is not None and format not in _FROM_C:
        raise ValueError(f"Expected fault limits for {', '.join(_FROM_C)} only; got {format}.")
    if with_empowerment:
        bundle.check_bound()
    else:
        bundle = bundle.without_bound()
    if format in _FROM_C:
        safety = safety or Safety()
        files, step = _from_c(format, bundle, path, safety)
        validation = validate(bundle, step)
        validate_safety(bundle, step, safety)
    else:
        files, step = _OTHERS[format](bundle, path)
        validation = validate(bundle, step)
    for file, data in files.items():
        write_atomic(file, data)
    return validation, list(files)


def _from_c(
    format: str, bundle: Bundle, path: Path, safety: Safety
) -> tuple[dict[Path, bytes], CompiledC]:
    """Generate the C, and what is made of it; return the files and the C compiled here."""
    name = path.stem
    if format == "ros2":
        check_package(path)
    elif not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            "Expected the file name to be one that can begin the names of functions (letters, "
            f"digits and underscores); got {name!r}."
        )
    texts = c_files(bundle, name, safety)
    if format == "wasm":
        files = {path: compile_wasm(texts, name)}
    elif format == "ros2":
        package = package_files(bundle, name, texts, safety)
        files = {path / file: text.encode() for file, text in package.items()}
    else:
        files = {path.parent / file: text.encode() for file, text in texts.items()}
    return files, CompiledC(bundle, name, texts)


def _npz(bundle: Bundle, path: Path) -> tuple[dict[Path, bytes], Step]:
    data = to_npz(bundle)
    found = from_npz(data, path)  # What is written.
    engine = NumpyEngine(found)

    def step(observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, ...]:
        engine.load(memory)
        engine.observation = observation
        engine.run(seen=bool(np.isfinite(observation).all()))
        result = engine.action.copy(), engine.memory.copy()
        if not found.description.has_bound:
            return result
        return *result, np.array([reference_bound(found, observation, result[1])])

    return {path: data}, step


def _onnx(bundle: Bundle, path: Path) -> tuple[dict[Path, bytes], Step]:
    for module in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"Expected {module} to be installed, to export to ONNX; got nothing. Run "
                "pip install 'empowerment[onnx]'."
            )
    from empowerment.controller.export.onnx_graph import onnx_model, runtime_step

    data = onnx_model(bundle.without_monitor())
    return {path: data}, runtime_step(data)


_OTHERS: dict[str, Callable[[Bundle, Path], tuple[dict[Path, bytes], Step]]] = {
    "npz": _npz,
    "onnx": _onnx,
}
