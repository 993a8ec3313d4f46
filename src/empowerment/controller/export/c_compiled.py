"""The generated C, compiled and called from Python, to compare it with the original."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.export.c_code import filled
from empowerment.controller.export.c_monitor import HARNESS as MONITOR_HARNESS
from empowerment.controller.export.c_safety import FAULTS, HARNESS as SAFETY_HARNESS
from empowerment.controller.export.c_template import BOUND_HARNESS, HARNESS

FLAGS = (
    "-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion",
    "-Wsign-conversion", "-Wdouble-promotion", "-Wshadow", "-Wundef",
)  # fmt: skip
"""Compiler flags under which the code compiles without warnings."""


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
            self._has_levels = f"{name}_is_unfamiliar" in texts[f"{name}.h"]
            harness += MONITOR_HARNESS * self._has_levels
            for file, text in {**texts, "export.c": filled(harness, words)}.items():
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
        self.init, self.reset = loaded.control_init, loaded.control_reset
        self._control = loaded.control
        self._load, self._counts = loaded.control_load, loaded.control_counts
        self._control.argtypes = [single, ctypes.c_int, ctypes.c_uint64, single]
        self._load.argtypes, self._counts.argtypes = [single], [unsigned]
        if self._has_levels:
            self._levels = loaded.control_levels
            self._levels.argtypes = [single]
        self.init()

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

    @property
    def levels(self) -> np.ndarray | None:
        """As those of a controller: None without a monitor."""
        if not self._has_levels:
            return None
        levels = np.empty(self._about.observation_size, np.float32)
        self._levels(levels)
        return levels

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
