"""Export to C99: one header with the step, one with the weights."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.choices import labels
from empowerment.controller.export.c_safety import (
    CONSTANTS,
    FAULTS,
    HARNESS as SAFETY_HARNESS,
    SAFETY,
    safety_arrays,
    safety_words,
)
from empowerment.controller.export.c_template import (
    ACT,
    ACT_DISCRETE,
    BOUND,
    BOUND_HARNESS,
    CHOOSE,
    FILTER,
    FINISH,
    FINISH_DISCRETE,
    HARNESS,
    HEADER,
    NEAREST_LATENT,
    NEAREST_OBSERVED,
    NO_FILTER,
    WEIGHTS,
    WITHIN,
)
from empowerment.controller.folding import Layer, fold
from empowerment.controller.safety import Safety

FLAGS = (
    "-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion",
    "-Wsign-conversion", "-Wdouble-promotion", "-Wshadow", "-Wundef",
)  # fmt: skip
"""Compiler flags under which the code compiles without warnings."""

_PER_LINE = 8


def c_files(bundle: Bundle, name: str, safety: Safety | None = None) -> dict[str, str]:
    """Generate the code.

    Args:
        bundle: The controller bundle.
        name: Prefix of every symbol.
        safety: Fault limits; there is no record in C.

    Returns:
        The text of each file, by file name.
    """
    about = bundle.description
    folded, safety = fold(bundle), safety or Safety()
    low, high = bundle.limits
    offset = bundle.arrays["observations.offset" if about.latent_size else "states.centre"]
    vectors = {"offset": offset, **safety_arrays(bundle, safety)}
    if not about.choices:
        vectors |= {
            "middle": bundle.middle,
            "half": (high - low) * np.float32(0.5),
            "low": low,
            "high": high,
            "idle": bundle.idle,
        }
    if about.has_bound:
        vectors |= dict(zip(("lowest", "highest"), bundle.region, strict=True))
    for network, layers in folded.items():
        for index, layer in enumerate(layers):
            vectors[f"{network}_{index}_weight"] = layer.weight.T
            vectors[f"{network}_{index}_bias"] = layer.bias
    arrays = [_array(f"{name}_{each}", values) for each, values in vectors.items()]
    widest = max(max(layer.weight.shape) for layers in folded.values() for layer in layers)
    body = FILTER if about.latent_size else NO_FILTER
    if about.choices:
        body, act, finish = CHOOSE + "\n" + body, ACT_DISCRETE, FINISH_DISCRETE
    else:
        act, finish = ACT, FINISH
    words = {
        "ACT": act,
        "FINISH": finish,
        "NAME": name,
        "UPPER": name.upper(),
        "OBSERVATION_NAMES": _comment(about.observation_names),
        "ACTION_NAMES": _comment(labels(about.action_names, about.choices)),
        "SEEN": about.observation_size,
        "DONE": about.action_size,
        "CHOICES": ", ".join(map(str, about.choices)),
        "LATENT": about.latent_size,
        "MEMORY": about.memory_size,
        "INITIAL": about.num_initial,
        "WIDEST": widest,
        "LEAST": _number(about.least_scale),
        "VARIANCE": "softplus(raw)" if about.scales == "softplus" else "square(raw)",
        "RESIDUAL": "memory[1 + i] + " if about.residual else "",
        "NETWORKS": "\n".join(_network(name, each, folded[each]) for each in folded),
        "FEATURES": _features(about.observation_size, about.angles, "observation[{}]", name),
        "ARRAYS": "\n".join(arrays),
    }
    words["VARIANCE"] = f"{name}_{words['VARIANCE']}"
    words |= safety_words(safety)
    words["BOUND"] = _filled(_bound(bundle, name), words) if about.has_bound else ""
    stepped = [layers for network, layers in folded.items() if network != "bound"]
    weights = sum(layer.weight.size for layers in stepped for layer in layers)
    parts = {
        "BODY": body,
        "CONSTANTS": CONSTANTS,
        "SAFETY": SAFETY.replace("@LIMIT@", str(words["LIMIT"])),
        # An observation that cannot be used costs a second attempt, without it.
        "PRODUCTS": str(2 * weights),
        "SOFTPLUSES": str(4 * about.latent_size if about.scales == "softplus" else 0),
        "BYTES": str(4 * sum(values.size for values in vectors.values())),
    }
    code = _filled(HEADER, words | {part: _filled(text, words) for part, text in parts.items()})
    return {f"{name}.h": code, f"{name}_weights.h": _filled(WEIGHTS, words)}


def _bound(bundle: Bundle, name: str) -> str:
    """Generate the function that returns empowerment."""
    about, nearest = bundle.description, NEAREST_LATENT
    if not about.latent_size:
        value = f"{name}_within(observation[{{0}}], {name}_lowest[{{0}}], {name}_highest[{{0}}])"
        features = _features(about.observation_size, about.angles, value, name)
        nearest = _filled(NEAREST_OBSERVED, {"NEAREST_FEATURES": features})
    return WITHIN + _filled(BOUND, {"NEAREST": nearest})


class CompiledC:
    """The generated code, compiled with warnings as errors and callable from Python.

    Args:
        bundle: The controller bundle.
        name: Prefix of every symbol.
        texts: The files, see `c_files`.
        flags: Compiler flags in addition to `FLAGS`.

    Raises:
        ValueError: If there is no compiler, or compilation fails.
    """

    def __init__(
        self, bundle: Bundle, name: str, texts: Mapping[str, str], flags: Sequence[str] = ()
    ):
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
        if compiler is None:
            raise ValueError("Expected a C compiler (cc) to be installed, to validate; got none.")
        with tempfile.TemporaryDirectory() as folder:
            words = {"NAME": name, "UPPER": name.upper()}
            harness = HARNESS + SAFETY_HARNESS + BOUND_HARNESS * bundle.description.has_bound
            for file, text in {**texts, "export.c": _filled(harness, words)}.items():
                (Path(folder) / file).write_text(text)
            source, library = Path(folder) / "export.c", Path(folder) / "export.so"
            command = [compiler, *FLAGS, *flags, "-shared", "-fPIC", "-o", library, source, "-lm"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                first = (result.stderr.strip().splitlines() or ["no message"])[0]
                raise ValueError(f"Expected the C code to compile; {compiler} reports: {first}.")
            loaded = ctypes.CDLL(str(library))
        single = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")
        double = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
        self._run, self._time = loaded.run, loaded.time_steps
        self._run.argtypes = [single] * 4
        self._time.argtypes = [single, single, ctypes.c_int, double]
        self._value = None
        if bundle.description.has_bound:
            self._value = loaded.value
            self._value.argtypes, self._value.restype = [single] * 2, ctypes.c_float
        self._about = bundle.description
        unsigned = np.ctypeslib.ndpointer(np.uint64, flags="C_CONTIGUOUS")
        self.reset, self._control = loaded.control_reset, loaded.control
        self._load, self._counts = loaded.control_load, loaded.control_counts
        self._control.argtypes = [single, ctypes.c_int, ctypes.c_uint64, single]
        self._load.argtypes, self._counts.argtypes = [single], [unsigned]
        loaded.control_init()

    def control(self, observation: np.ndarray | None, now: int) -> tuple[np.ndarray, str | None]:
        """Control a cycle, with all that watches over it; return the action and the fault."""
        action = np.empty(self._about.action_size, np.float32)
        given = np.zeros(self._about.observation_size, np.float32)
        if observation is not None:
            given[:] = observation
        fault = self._control(given, observation is not None, now, action)
        return action, FAULTS[fault] if fault else None

    def load(self, state: np.ndarray) -> None:
        """Replace the state of the controller."""
        self._load(np.ascontiguousarray(state, np.float32))

    @property
    def counts(self) -> list[int]:
        """The numbers of steps, missing observations, missed cycles and faults."""
        counts = np.zeros(4, np.uint64)
        self._counts(counts)
        return counts.tolist()

    def __call__(self, observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, ...]:
        """Make a step; see `Step`."""
        action = np.empty(self._about.action_size, np.float32)
        after = np.empty(self._about.memory_size, np.float32)
        self._run(observation, memory, action, after)
        if self._value is None:
            return action, after
        return action, after, np.array([self._value(observation, after)], np.float32)

    def times(self, observation: np.ndarray, count: int) -> np.ndarray:
        """Measure the duration of steps called from C, in seconds."""
        memory = np.zeros(self._about.memory_size, np.float32)
        times = np.empty(count)
        self._time(observation, memory, count, times)
        return times


def _filled(text: str, words: Mapping[str, object]) -> str:
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    return text


def _comment(names: Sequence[str]) -> str:
    """Make names safe inside a comment."""
    joined = ", ".join("".join(c if c.isprintable() else " " for c in name) for name in names)
    return joined.replace("*/", "* /").replace("@", "at")[:500]


def _array(name: str, values: np.ndarray) -> str:
    """Generate an array; nine digits represent single precision exactly."""
    numbers = [_number(value) for value in values.ravel().tolist()]
    lines = [
        "  " + ", ".join(numbers[i : i + _PER_LINE]) for i in range(0, len(numbers), _PER_LINE)
    ]
    return f"static const float {name}[{len(numbers)}] = {{\n" + ",\n".join(lines) + "\n};"


def _number(value: float) -> str:
    text = f"{value:.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def _network(name: str, network: str, layers: list[Layer]) -> str:
    """Generate the function of a network; hidden layers alternate between two buffers."""
    lines = []
    source, last = "input", len(layers) - 1
    for index, layer in enumerate(layers):
        out_size, in_size = layer.weight.shape
        target = "output" if index == last else ("one", "two")[index % 2]
        each = f"{name}_{network}_{index}"
        arguments = f"{each}_weight, {each}_bias, {in_size}, {out_size}, {source}, {target}"
        lines.append(f"  {name}_dense({arguments});")
        if layer.activation != "identity":
            lines.append(f"  {name}_{layer.activation}({out_size}, {target});")
        source = target
    used = {0: "", 1: "one"}.get(last, "one two").split()
    buffers = [f"  float {buffer}[{name.upper()}_WIDEST];" for buffer in used]
    head = f"static inline void {name}_{network}(const float *input, float *output) {{"
    return "\n".join([head, *buffers, *lines, "}", ""])


def _features(size: int, angles: tuple[int, ...], value: str, name: str) -> str:
    """Generate the input of a network from an observation, without a filter.

    Args:
        size: Number of axes.
        angles: Those that are angles.
        value: Expression for the value of another axis, with a place for its number.
        name: Prefix of every symbol.
    """
    lines, place = [], 0
    for axis in range(size):
        if axis in angles:
            lines.append(f"  input[{place}] = cosf(observation[{axis}]);")
            lines.append(f"  input[{place + 1}] = sinf(observation[{axis}]);")
            place += 2
        else:
            lines.append(f"  input[{place}] = {value.format(axis)} - {name}_offset[{axis}];")
            place += 1
    return "\n".join(lines)
