"""When to stop trusting the world: what counts as a fault, and what is kept of it."""

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
from empowerment.controller.numpy_engine import NUM_KEPT, NumpyEngine
from empowerment.files import write_atomic

_FEWEST_CYCLES = 10
"""A share of fewer cycles than this says nothing: one late step would be a fault."""


@dataclass(frozen=True)
class Safety:
    """What a controller does not put up with.

    After a fault the safe action is given, whatever is observed, until `reset`.

    Attributes:
        safe_action: What to do then; by default the allowed action that is nearest to none.
        max_missing: So many steps running without a usable observation are a fault.
        interval: Seconds from one step to the next; late steps are a fault only if it is given.
        max_late: So many cycles missed running are a fault. A step that comes two intervals
            after the last has missed one.
        late_share: A larger share of missed cycles within the window is a fault.
        window: Of that share, in seconds; at least ten cycles.
        max_change: The most that an action may change from one step to the next, one number or
            one for each axis; no limit if none. The safe action comes at once all the same.
        record: Where the last hundred steps are written upon the first fault; nowhere if none.
    """

    safe_action: Sequence[float] | None = None
    max_missing: int = 10
    interval: float | None = None
    max_late: int = 5
    late_share: float = 0.1
    window: float = 0.5
    max_change: float | Sequence[float] | None = None
    record: Path | None = None

    def __post_init__(self):
        """Refuse what cannot be."""
        for name, least in (("max_missing", 1), ("max_late", 1)):
            if getattr(self, name) < least:
                raise ValueError(
                    f"Expected {name} to be at least {least}; got {getattr(self, name)}."
                )
        for name in ("interval", "window"):
            given = getattr(self, name)
            if given is not None and not 1e-6 <= given <= 1e6:
                raise ValueError(f"Expected {name} to be from 1e-6 to 1e6 seconds; got {given}.")
        if not 0 <= self.late_share < 1:
            raise ValueError(
                f"Expected late_share to be at least 0 and below 1; got {self.late_share}."
            )


def safe_action(safety: Safety, bundle: Bundle) -> Float[np.ndarray, " action"]:
    """Give the safe action, if it is one that is allowed."""
    if safety.safe_action is None:
        return bundle.idle
    low, high = bundle.limits
    given = np.array(safety.safe_action, np.float32)
    if given.shape != low.shape or not ((low <= given) & (given <= high)).all():
        raise ValueError(
            f"Expected the safe action to be within {low.tolist()} and {high.tolist()}; got "
            f"{given.tolist()}."
        )
    return given


def largest_change(safety: Safety, bundle: Bundle) -> Float[np.ndarray, " action"] | None:
    """Give the most that each axis of an action may change in a step, or none."""
    if safety.max_change is None:
        return None
    size = bundle.description.action_size
    given = np.array(safety.max_change, np.float32)
    if given.shape not in ((), (size,)) or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(
            f"Expected max_change to be above zero, one number or {size}; got {given.tolist()}."
        )
    return np.broadcast_to(given, size).copy()


class Watchdog:
    """Counts missed cycles; each call takes the same short time.

    Args:
        safety: What is not put up with; its interval must be given.
    """

    def __init__(self, safety: Safety):
        assert safety.interval is not None
        self._interval = max(round(safety.interval * 1e9), 1)
        cycles = max(math.ceil(safety.window / safety.interval), _FEWEST_CYCLES)
        self._most = safety.late_share * cycles
        self._max_late = safety.max_late
        self._flags = bytearray(cycles)
        self.num_late = 0
        self.clear()

    def clear(self) -> None:
        """Forget what was."""
        self._flags[:] = bytes(len(self._flags))
        self._last: int | None = None
        self._place = self._count = self._running = 0

    def tick(self, now: int) -> str | None:
        """Note that a step begins.

        Args:
            now: Nanoseconds of a clock that never goes back.

        Returns:
            What is wrong, if anything is.
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
    """Knows when the last steps were made, and writes them to a file when asked.

    Args:
        bundle: The controller.
        engine: Has their observations and memories.
        path: Where to write; nowhere if none.

    Attributes:
        place: The row of the next step.
        problem: Why it could not be written, if so.
    """

    def __init__(self, bundle: Bundle, engine: NumpyEngine, path: Path | None):
        self._bundle, self._engine, self._path = bundle, engine, path
        self._times = [0] * NUM_KEPT
        self._usable = [False] * NUM_KEPT
        self._num_kept = 0
        self._thread: threading.Thread | None = None
        self.place = 0
        self.problem: str | None = None

    def note(self, now: int, *, usable: bool) -> None:
        """Note a step; what was observed and remembered is in its row already."""
        place = self.place
        self._times[place] = now
        self._usable[place] = usable
        self._num_kept += 1
        self.place = place + 1 if place + 1 < NUM_KEPT else 0

    def dump(self, fault: str, now: int) -> None:
        """Write the last steps in a thread of its own: the safe action does not wait for it."""
        if self._path is None or self._thread is not None:
            return
        about = self._bundle.description
        count = min(self._num_kept, NUM_KEPT)
        order = [(self.place - count + i) % NUM_KEPT for i in range(count)]
        memories = self._engine.memories[order]
        states = memories[:, 1 : 1 + about.latent_size]
        actions = memories[:, 1 + about.latent_size :] + self._bundle.middle
        kept = {
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
        self._thread = threading.Thread(target=self._write, args=(self._path, kept))
        self._thread.start()

    def close(self) -> None:
        """Wait until everything is written."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, path: Path, kept: dict[str, Any]) -> None:
        try:
            write_atomic(path, (json.dumps(kept, indent=1) + "\n").encode())
        except OSError as error:
            self.problem = f"The record of the fault could not be written: {error}."


def _numbers(values: Float[np.ndarray, " size"]) -> list[float | None]:
    """Give numbers as JSON can have them: what is not finite is nothing."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
