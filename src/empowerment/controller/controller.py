"""Filter and policy in real time."""

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle, Description
from empowerment.controller.bundle_io import read_bundle
from empowerment.controller.numpy_engine import NumpyEngine
from empowerment.controller.safety import (
    Recorder,
    Safety,
    Watchdog,
    largest_change,
    safe_action,
)
from empowerment.controller.sb3 import Predictor, read_numbers

_SINGLE = np.dtype(np.float32)

EngineName = Literal["auto", "numpy", "numba"]


class Controller:
    """Gives an action upon every observation, in constant time, whatever the world does.

    It is not to be shared between threads.

    Args:
        bundle: What it is made of.
        safety: What it does not put up with.
        engine: `numpy`, `numba` (compiled when it is made, which takes seconds), or `auto` for
            numba where it is installed.
        clock: Gives nanoseconds and never goes back.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        safety: Safety | None = None,
        engine: EngineName = "auto",
        clock: Callable[[], int] = time.monotonic_ns,
    ):
        safety = safety or Safety()
        self._bundle = bundle
        self._engine = make_engine(bundle, engine)
        self._clock = clock
        self._safe = safe_action(safety, bundle)
        self._max_missing = safety.max_missing
        self._max_change = largest_change(safety, bundle)
        self._watchdog = None if safety.interval is None else Watchdog(safety)
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
        """Read a controller from a run folder; only two files of it are needed.

        Args:
            folder: With `controller.safetensors` and `controller.json`.
            safety: See the class.
            engine: See the class.
            clock: See the class.

        Raises:
            ValueError: If a file is missing, damaged, or not what it says.
        """
        return cls(read_bundle(Path(folder)), safety=safety, engine=engine, clock=clock)

    @property
    def description(self) -> Description:
        """What the controller is: names, sizes, limits."""
        return self._bundle.description

    @property
    def bundle(self) -> Bundle:
        """What the controller is made of."""
        return self._bundle

    @property
    def engine(self) -> str:
        """What computes: `numpy` or `numba`."""
        return self._engine.name

    @property
    def safe_action(self) -> Float[np.ndarray, " action"]:
        """What is done after a fault."""
        return self._safe.copy()

    @property
    def fault(self) -> str | None:
        """What went wrong since the last reset, if anything did."""
        return self._fault

    @property
    def num_late(self) -> int:
        """How many cycles were missed so far."""
        return 0 if self._watchdog is None else self._watchdog.num_late

    @property
    def problem(self) -> str | None:
        """Why the record of a fault could not be written, if so; known after `close`."""
        return self._recorder.problem

    def reset(self, observation: Any = None) -> None:
        """Begin anew: forget the state and any fault; what was counted stays.

        Args:
            observation: The first, or as many in rows as the filter recognises its first state
                from. The first step then begins with it; if none is given, with its own.

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
                    f"Expected the first observation to be of shape {self._shape}, or "
                    f"{self.description.num_initial} such rows; got the shape {first.shape}."
                )
            with np.errstate(all="ignore"):
                rows = rows.astype(np.float32)
            if not np.isfinite(rows).all():
                raise ValueError("Expected the first observation to be finite; it is not.")
        self._first = rows
        self._fault: str | None = None
        self._ready = rows is None
        self._missing = 0
        self._engine.load(np.zeros(self.description.memory_size, np.float32))
        self._engine.set_action(self._safe)
        self._done = self._safe
        if self._watchdog is not None:
            self._watchdog.clear()

    def step(self, observation: Any) -> Float[np.ndarray, " action"]:
        """Give the action upon an observation.

        The first step after a reset recognises the state; the others predict what the last
        action led to, and measure. If the observation is missing (none, or a number in it is not
        finite) the filter predicts alone; without a filter the last action stands.

        Args:
            observation: One number for each axis, or None.

        Returns:
            Finite and within the limits; the safe action after a fault.

        Raises:
            ValueError: If the observation is not an array of numbers of the right shape.
        """
        now = self._clock()
        self.num_steps += 1
        if self._watchdog is not None and self._fault is None:
            late = self._watchdog.tick(now)
            if late is not None:
                self._stop(late, now)
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
        if usable:
            self._missing = 0
        else:
            self.num_missing += 1
            self._missing += 1
            if self._missing >= self._max_missing:
                recorder.note(now, usable=usable)
                self._stop(f"{self._missing} observations running were missing", now)
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
        deterministic: bool = False,  # noqa: FBT001, FBT002 (Stable-Baselines3's own way)
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Give actions as the models of Stable-Baselines3 do, for its evaluation loops.

        All state is in the arguments: the controller's own is not touched, and nothing is
        watched but the limits of the actions.

        Args:
            observation: One, or a row for each environment.
            state: What the last call gave; none at first.
            episode_start: For each environment whether an episode begins.
            deterministic: Whether to take the mean action, rather than draw one.

        Returns:
            The actions, and the state for the next call.

        Raises:
            ValueError: If the shapes do not match.
        """
        if self._predictor is None:
            self._predictor = Predictor(self._bundle)
        return self._predictor(observation, state, episode_start, deterministic=deterministic)

    def close(self) -> None:
        """Wait until the record of a fault is written."""
        self._recorder.close()

    def _begin(self, *, seen: bool) -> bool:
        """Make the first step with the observations that `reset` was given."""
        first, self._first = self._first, None
        assert first is not None
        self._ready = True
        if self.description.latent_size:
            return self._engine.begin(first)
        if not seen:
            self._engine.observation[...] = first[-1]
        return self._engine.run(seen=True)

    def _take_slowly(self, observation: Any) -> bool:
        """Make a step upon anything else than an array of ordinary numbers."""
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
        """Keep the action near the one before."""
        before, engine = self._done, self._engine
        allowed = np.clip(engine.action, before - self._max_change, before + self._max_change)
        allowed = np.clip(allowed, *self._bundle.limits)
        engine.set_action(allowed)
        self._done = allowed
        engine.keep(place)

    def _stop(self, fault: str, now: int) -> None:
        """Latch the safe action."""
        self._fault = fault
        self._ready = False
        self.num_faults += 1
        self._recorder.dump(fault, now)


def make_engine(bundle: Bundle, engine: EngineName) -> NumpyEngine:
    """Make what computes the steps.

    Args:
        bundle: The controller.
        engine: `numpy`, `numba`, or `auto` for numba where it is installed.
    """
    if engine not in ("auto", "numpy", "numba"):
        raise ValueError(f"Expected the engine to be auto, numpy or numba; got {engine!r}.")
    if engine == "numpy" or (engine == "auto" and importlib.util.find_spec("numba") is None):
        return NumpyEngine(bundle)
    from empowerment.controller.numba_engine import NumbaEngine

    return NumbaEngine(bundle)
