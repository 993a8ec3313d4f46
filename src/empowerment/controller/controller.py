"""Real-time controller: filter, policy and safety."""

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle, Description
from empowerment.controller.bundle_io import read_bundle
from empowerment.controller.engine import AbstractEngine
from empowerment.controller.monitor import Monitor
from empowerment.controller.numpy_engine import NumpyEngine
from empowerment.controller.safety import Recorder, Safety, Watchdog, largest_change, safe_action
from empowerment.controller.sb3 import Predictor, read_numbers

_SINGLE = np.dtype(np.float32)

EngineName = Literal["auto", "numpy", "numba"]


class Controller:
    """Policy and filter with constant time per step and a safe action after a fault.

    Not thread-safe.

    Args:
        bundle: The controller bundle.
        safety: Fault limits.
        engine: `numpy`, `numba` (compiled on construction, which takes seconds), `auto` for numba
            if installed, or one of your own.
        clock: Monotonic clock in nanoseconds.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        safety: Safety | None = None,
        engine: EngineName | AbstractEngine = "auto",
        clock: Callable[[], int] = time.monotonic_ns,
    ):
        safety = safety or Safety()
        self._bundle = bundle
        self._engine = make_engine(bundle, engine) if isinstance(engine, str) else engine
        self._clock = clock
        self._safe = safe_action(safety, bundle)
        self._max_missing = safety.max_missing
        self._max_change = largest_change(safety, bundle)
        self._watchdog = None if safety.interval is None else Watchdog(safety)
        is_watched = safety.monitor and bundle.description.monitor is not None
        self._monitor = Monitor(bundle, self._engine) if is_watched else None
        self._recorder = Recorder(bundle, self._engine, safety.record)
        self._shape = (bundle.description.observation_size,)
        self._predictor: Predictor | None = None
        self.num_steps = self.num_missing = self.num_faults = 0
        self.reset()

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        safety: Safety | None = None,
        engine: EngineName = "auto",
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> "Controller":
        """Load a controller from a run folder.

        Args:
            folder: Contains `controller.safetensors` and `controller.json`.
            safety: See the class.
            engine: See the class.
            clock: See the class.

        Raises:
            ValueError: If a file is missing, damaged or invalid.
        """
        return cls(read_bundle(Path(folder)), safety=safety, engine=engine, clock=clock)

    @property
    def description(self) -> Description:
        """Names, sizes, limits and architecture."""
        return self._bundle.description

    @property
    def bundle(self) -> Bundle:
        """The controller bundle."""
        return self._bundle

    @property
    def engine(self) -> str:
        """Name of the engine: `numpy` or `numba`."""
        return self._engine.name

    @property
    def safe_action(self) -> Float[np.ndarray, " action"]:
        """Action after a fault."""
        return self._safe.copy()

    @property
    def fault(self) -> str | None:
        """Description of the fault since the last reset, if any."""
        return self._fault

    @property
    def memory(self) -> Float[np.ndarray, " memory"]:
        """What is carried from step to step, see `Description.memory_size`."""
        return self._engine.memory.copy()

    @property
    def num_late(self) -> int:
        """Number of missed cycles."""
        return 0 if self._watchdog is None else self._watchdog.num_late

    @property
    def levels(self) -> Float[np.ndarray, " observation"] | None:
        """The smoothed squared innovation of each axis, see `MonitorLimits`; None without them."""
        return None if self._monitor is None else self._monitor.levels

    @property
    def problem(self) -> str | None:
        """Error while writing the record of a fault, if any; valid after `close`."""
        return self._recorder.problem

    def reset(self, observation: Any = None) -> None:
        """Clear the state and any fault; counters are kept.

        Args:
            observation: Initial observation, or rows of as many as the filter recognises its
                state from. By default the filter starts from the observation of the first step.

        Raises:
            ValueError: If the observation has the wrong shape or is not finite.
        """
        rows = None
        if observation is not None:
            first = read_numbers(observation, self._shape[0])
            rows = first[None] if first.ndim == 1 else first
            allowed = (1, self.description.num_initial)
            if rows.ndim != 2 or rows.shape[1:] != self._shape or len(rows) not in allowed:
                raise ValueError(
                    f"Expected the initial observation to be of shape {self._shape}, or "
                    f"{self.description.num_initial} such rows; got shape {first.shape}."
                )
            with np.errstate(all="ignore"):
                rows = rows.astype(np.float32)
            if not np.isfinite(rows).all():
                raise ValueError("Expected the initial observation to be finite; it is not.")
        self._first = rows
        self._fault: str | None = None
        self._ready = rows is None
        self._missing = 0
        self._engine.load(np.zeros(self.description.memory_size, np.float32))
        self._engine.set_action(self._safe)
        self._done = self._safe
        if self._watchdog is not None:
            self._watchdog.clear()
        if self._monitor is not None:
            self._monitor.clear()

    def step(self, observation: Any) -> Float[np.ndarray, " action"]:
        """Return the action for an observation.

        The first step after a reset recognises the state; later steps predict the effect of the
        last action and combine it with the measurement. If the observation is missing (None or
        not finite) the filter only predicts; without a filter the last action is repeated.

        Args:
            observation: One number per axis, or None.

        Returns:
            A finite action within the limits, or the index of a choice for each column if actions
            are discrete; the safe action after a fault.

        Raises:
            ValueError: If the observation is not an array of numbers of the right shape.
        """
        now = self._clock()
        self.num_steps += 1
        if self._watchdog is not None and self._fault is None:
            late = self._watchdog.tick(now)
            if late is not None:
                self.stop(late, now)
        engine, recorder = self._engine, self._recorder
        usable = None
        if (
            type(observation) is np.ndarray
            and observation.dtype is _SINGLE
            and observation.shape == self._shape
            and self._ready
        ):
            engine.rows[recorder.place][...] = observation
            usable = engine.step(recorder.place)
        if usable is None:
            usable = self._take_slowly(observation)
        if self._fault is not None:
            return self._safe.copy()
        found = None
        if usable:
            self._missing = 0
            if self._monitor is not None:
                found = self._monitor.judge(engine.observation)
        else:
            if self._monitor is not None:
                self._monitor.miss()
            self.num_missing += 1
            self._missing += 1
            if self._missing >= self._max_missing:
                found = f"{self._missing} observations running were missing"
        if found is not None:
            recorder.note(now, usable=usable)
            self.stop(found, now)
            return self._safe.copy()
        if self._max_change is not None:
            self._limit_change(recorder.place)
        recorder.note(now, usable=usable)
        return engine.action.copy()

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: Any = None,
        deterministic: bool = False,  # noqa: FBT001, FBT002 (signature of Stable-Baselines3)
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Return actions with the signature of Stable-Baselines3, for its evaluation loops.

        All state is passed explicitly: the controller's own state is not changed. Action limits
        are enforced; the watchdog and the other safety functions are not active.

        Args:
            observation: One observation, or one row per environment.
            state: State returned by the previous call; None at first.
            episode_start: Whether an episode starts, per environment.
            deterministic: Whether to return the mean or most probable action instead of a sample.

        Returns:
            The actions, and the state for the next call. Discrete actions are integers; those of a
            single column have no axis for it, as in a Gymnasium `Discrete` space.

        Raises:
            ValueError: If the shapes do not match.
        """
        if self._predictor is None:
            self._predictor = Predictor(self._bundle)
        return self._predictor(observation, state, episode_start, deterministic=deterministic)

    def stop(self, fault: str, now: int | None = None) -> None:
        """Latch the safe action until `reset`; of several faults the first is kept."""
        if self._fault is None:
            self._fault, self._ready = fault, False
            self.num_faults += 1
            self._recorder.dump(fault, self._clock() if now is None else now)

    def close(self) -> None:
        """Wait until the record of a fault is written."""
        self._recorder.close()

    def _begin(self, *, seen: bool) -> bool:
        """Make the first step with the observations passed to `reset`."""
        first, self._first = self._first, None
        assert first is not None
        self._ready = True
        if self.description.latent_size:
            return self._engine.begin(first)
        if not seen:
            self._engine.observation[...] = first[-1]
        return self._engine.run(seen=True)

    def _take_slowly(self, observation: Any) -> bool:
        """Make a step with any input that the fast path does not accept."""
        engine = self._engine
        row = engine.observation = engine.rows[self._recorder.place]
        seen = False
        if observation is None:
            row.fill(np.nan)
        else:
            array = read_numbers(observation, self._shape[0])
            if array.shape != self._shape:
                raise ValueError(
                    f"Expected the observation to be of shape {self._shape}; got {array.shape}."
                )
            with np.errstate(all="ignore"):
                np.copyto(row, array, casting="same_kind")
            seen = bool(np.isfinite(row).all())
        if self._fault is not None:
            return False
        with np.errstate(all="ignore"):
            used = engine.run(seen=seen) if self._first is None else self._begin(seen=seen)
        engine.keep(self._recorder.place)
        return used

    def _limit_change(self, place: int) -> None:
        """Limit the change from the previous action."""
        before, engine = self._done, self._engine
        allowed = np.clip(engine.action, before - self._max_change, before + self._max_change)
        allowed = np.clip(allowed, *self._bundle.limits)
        engine.set_action(allowed)
        self._done = allowed
        engine.keep(place)


def make_engine(bundle: Bundle, engine: EngineName) -> AbstractEngine:
    """Build an engine.

    Args:
        bundle: The controller bundle.
        engine: `numpy`, `numba`, or `auto` for numba if installed.
    """
    if engine not in ("auto", "numpy", "numba"):
        raise ValueError(f"Expected the engine to be auto, numpy or numba; got {engine!r}.")
    if engine == "numpy" or (engine == "auto" and importlib.util.find_spec("numba") is None):
        return NumpyEngine(bundle)
    from empowerment.controller.numba_engine import NumbaEngine

    return NumbaEngine(bundle)
