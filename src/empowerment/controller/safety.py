"""Safety: fault limits, watchdog, and the record of a fault."""

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle
from empowerment.controller.choices import choose
from empowerment.controller.engine import NUM_KEPT, AbstractEngine
from empowerment.files import write_atomic


@dataclass(frozen=True)
class Safety:
    """Fault limits.

    A fault latches the safe action until `reset`.

    Attributes:
        safe_action: Action after a fault; by default the admissible action closest to zero. For
            discrete actions that is the first choice of each column: name a better one.
        max_missing: Number of consecutive missing observations that is a fault.
        interval: Seconds between steps; late steps are a fault only if it is set.
        max_late: Number of consecutive missed cycles that is a fault. A step two intervals after
            the previous one has missed one cycle: a single stall is a fault if it delays a step
            by so many intervals, whatever the rate.
        late_share: Largest fraction of missed cycles within the window.
        window: Number of cycles in the window.
        max_change: Largest change of an action per step, one number or one per axis; None for no
            limit, as for discrete actions. The safe action is not limited.
        monitor: Whether it is a fault that observations are not what the model expects, if the
            bundle has a monitor, see `MonitorLimits`.
        record: File for the last hundred steps before the first fault; None for no record.
    """

    safe_action: Sequence[float] | None = None
    max_missing: int = 10
    interval: float | None = None
    max_late: int = 3
    late_share: float = 0.1
    window: int = 50
    max_change: float | Sequence[float] | None = None
    monitor: bool = True
    record: Path | None = None

    def __post_init__(self):
        """Validate every field."""
        for name in ("max_missing", "max_late", "window"):
            if getattr(self, name) < 1:
                raise ValueError(f"Expected {name} to be at least 1; got {getattr(self, name)}.")
        if self.interval is not None and not 1e-6 <= self.interval <= 1e6:
            raise ValueError(
                f"Expected interval to be from 1e-6 to 1e6 seconds; got {self.interval}."
            )
        if not 0 <= self.late_share < 1:
            raise ValueError(
                f"Expected late_share to be at least 0 and below 1; got {self.late_share}."
            )


def safe_action(safety: Safety, bundle: Bundle) -> Float[np.ndarray, " action"]:
    """Return the safe action, checked against the action limits."""
    if safety.safe_action is None:
        return bundle.idle
    low, high = bundle.limits
    action = np.array(safety.safe_action, np.float32)
    if action.shape != low.shape or not ((low <= action) & (action <= high)).all():
        raise ValueError(
            f"Expected the safe action to be within {low.tolist()} and {high.tolist()}; got "
            f"{action.tolist()}."
        )
    if bundle.description.choices and (action % 1).any():
        raise ValueError(
            "Expected the safe action to be whole numbers, since actions are discrete; got "
            f"{action.tolist()}."
        )
    return action


def largest_change(safety: Safety, bundle: Bundle) -> Float[np.ndarray, " action"] | None:
    """Return the largest change of each axis of an action per step, or None."""
    if safety.max_change is None:
        return None
    if bundle.description.choices:
        raise ValueError(
            f"Expected max_change to be None, since actions are discrete; got {safety.max_change}."
        )
    size = bundle.description.action_size
    change = np.array(safety.max_change, np.float32)
    if change.shape not in ((), (size,)) or not (np.isfinite(change) & (change > 0)).all():
        raise ValueError(
            f"Expected max_change to be above zero, one number or {size}; got {change.tolist()}."
        )
    return np.broadcast_to(change, size).copy()


class Watchdog:
    """Counter of missed cycles, in constant time per step.

    Args:
        safety: Fault limits; the interval must be set.
    """

    def __init__(self, safety: Safety):
        assert safety.interval is not None
        self._interval = max(round(safety.interval * 1e9), 1)
        self._most = safety.late_share * safety.window
        self._max_late = safety.max_late
        self._flags = bytearray(safety.window)
        self.num_late = 0
        self.clear()

    def clear(self) -> None:
        """Clear the history; the total count is kept."""
        self._flags[:] = bytes(len(self._flags))
        self._last: int | None = None
        self._place = self._count = self._running = 0

    def tick(self, now: int) -> str | None:
        """Register the start of a step.

        Args:
            now: Time of a monotonic clock, in nanoseconds.

        Returns:
            Description of the fault, if any.
        """
        last, self._last = self._last, now
        if last is None:
            return None
        missed = (now - last + self._interval // 2) // self._interval - 1
        if missed <= 0:
            self._running = 0
            self._push(0)
            return None
        self.num_late += missed
        self._running += missed
        for _ in range(min(missed, len(self._flags))):
            self._push(1)
        self._push(0)
        if self._running >= self._max_late:
            return f"{self._running} cycles running were missed"
        if self._count > self._most:
            return f"{self._count} of the last {len(self._flags)} cycles were missed"
        return None

    def _push(self, flag: int) -> None:
        flags, place = self._flags, self._place
        self._count += flag - flags[place]
        flags[place] = flag
        self._place = place + 1 if place + 1 < len(flags) else 0


class Recorder:
    """Flight recorder: times of the last steps, written to a file with their data upon a fault.

    Args:
        bundle: The controller bundle.
        engine: Holds the ring buffers of observations and memories.
        path: Output file; None for no record.

    Attributes:
        place: Row of the next step.
        problem: Error while writing, if any.
    """

    def __init__(self, bundle: Bundle, engine: AbstractEngine, path: Path | None):
        self._bundle, self._engine, self._path = bundle, engine, path
        self._times = [0] * NUM_KEPT
        self._usable = [False] * NUM_KEPT
        self._num_kept = 0
        self._thread: threading.Thread | None = None
        self.place = 0
        self.problem: str | None = None

    def note(self, now: int, *, usable: bool) -> None:
        """Register a step, whose observation and memory are already in its row."""
        place = self.place
        self._times[place] = now
        self._usable[place] = usable
        self._num_kept += 1
        self.place = place + 1 if place + 1 < NUM_KEPT else 0

    def dump(self, fault: str, now: int) -> None:
        """Write the last steps in a separate thread, so that the safe action is not delayed."""
        if self._path is None or self._thread is not None:
            return
        about = self._bundle.description
        count = min(self._num_kept, NUM_KEPT)
        order = [(self.place - count + i) % NUM_KEPT for i in range(count)]
        memories = self._engine.memories[order]
        states = memories[:, 1 : 1 + about.latent_size]
        actions = memories[:, 1 + about.latent_size :] + self._bundle.middle
        actions = choose(actions, about.choices)
        record = {
            "fault": fault,
            "time": now / 1e9,
            "observation_names": about.observation_names,
            "action_names": about.action_names,
            "steps": [
                {
                    "time": self._times[i] / 1e9,
                    "usable": self._usable[i],
                    "observation": _numbers(self._engine.observations[i]),
                    "state": _numbers(state),
                    "action": _numbers(action),
                }
                for i, state, action in zip(order, states, actions, strict=True)
            ],
        }
        self._thread = threading.Thread(target=self._write, args=(self._path, record))
        self._thread.start()

    def close(self) -> None:
        """Wait until the record is written."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, path: Path, record: dict[str, Any]) -> None:
        try:
            write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())
        except OSError as error:
            self.problem = f"The record of the fault could not be written: {error}."


def _numbers(values: Float[np.ndarray, " size"]) -> list[float | None]:
    """Convert to a list for JSON, with None for numbers that are not finite."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
