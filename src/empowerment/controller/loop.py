"""A loop in real time: read, step, write, at a fixed rate."""

import contextlib
import gc
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from empowerment.controller.controller import Controller

_SPIN = 200_000
"""Nanoseconds before a cycle from which on the clock is watched: sleep is not as exact."""

_NAP = 50_000_000
"""Nanoseconds that are slept at most at once, so that a wish to stop is soon noticed."""

_PRIORITY = 50
"""Of the real-time scheduler, in the middle."""

_MOST_CYCLES = 20_000_000


@runtime_checkable
class Device(Protocol):
    """Hardware, or what stands for it: two methods, neither of which should wait."""

    def read(self) -> Any:
        """Give the newest observation, or None if there is none since the last time."""
        ...

    def write(self, action: Float[np.ndarray, " action"]) -> None:
        """Do an action."""
        ...


@dataclass(frozen=True, eq=False)
class Timing:
    """How a loop went; times are in seconds.

    Attributes:
        rate: Cycles in a second.
        due: When each cycle was to begin, from the first on.
        begun: When it began.
        reading: How long reading took.
        computing: How long the step took.
        writing: How long writing took.
        num_missed: Cycles that were left out because the one before was not done.
        is_realtime: Whether the process had real-time priority.
        stopped: Whether it was stopped before its time.
    """

    rate: float
    due: Float[np.ndarray, " cycles"]
    begun: Float[np.ndarray, " cycles"]
    reading: Float[np.ndarray, " cycles"]
    computing: Float[np.ndarray, " cycles"]
    writing: Float[np.ndarray, " cycles"]
    num_missed: int
    is_realtime: bool
    stopped: bool

    @property
    def jitter(self) -> Float[np.ndarray, " periods"]:
        """How far each period was from what it was to be."""
        return np.abs(np.diff(self.begun) - np.diff(self.due))

    def summary(self) -> dict[str, Any]:
        """Give the figures, in microseconds where they say so."""
        return {
            "rate_hz": self.rate,
            "cycles": len(self.begun),
            "missed": self.num_missed,
            "compute_us": _percentiles(self.computing),
            "jitter_us": _percentiles(self.jitter),
            "read_us": _percentiles(self.reading),
            "write_us": _percentiles(self.writing),
            "realtime": self.is_realtime,
            "stopped": self.stopped,
        }


def run_loop(
    controller: Controller,
    device: Device,
    *,
    rate: float,
    duration: float,
    realtime: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Timing:
    """Run a controller at a fixed rate; at the end, whatever ends it, the safe action is sent.

    Nothing is logged or written to disk meanwhile, and garbage is not collected. A cycle that
    comes too late is left out: there is no burst to make up for it.

    Args:
        controller: The controller; it is reset. For late cycles to be a fault, its safety must
            have the interval.
        device: What is controlled.
        rate: Cycles in a second.
        duration: In seconds.
        realtime: Whether to ask for real-time priority (SCHED_FIFO); `Timing.is_realtime` tells
            whether it was granted.
        stop: Asked before each cycle, and while waiting, whether to stop.

    Returns:
        How it went.
    """
    if not 0.01 <= rate <= 1e5:
        raise ValueError(f"Expected the rate to be from 0.01 to 100000 Hz; got {rate}.")
    if not 0 < duration < math.inf or rate * duration > _MOST_CYCLES:
        raise ValueError(
            f"Expected the duration to be above zero and no more than {_MOST_CYCLES} cycles; got "
            f"{duration} s."
        )
    clock = time.monotonic_ns
    period = round(1e9 / rate)
    times = np.zeros((math.ceil(rate * duration) + 1, 5), np.int64)
    count = num_missed = 0
    controller.reset()
    with undisturbed(realtime=realtime) as is_realtime:
        try:
            start = due = clock() + period
            end = start + round(1e9 * duration)
            while due < end and not stop():
                if not _wait(due, clock, stop):
                    break
                begun = clock()
                observation = device.read()
                read = clock()
                action = controller.step(observation)
                computed = clock()
                device.write(action)
                done = clock()
                times[count] = due, begun, read, computed, done
                count += 1
                due += period
                if done > due:
                    late = (done - due) // period + 1
                    num_missed += late
                    due += late * period
        finally:
            device.write(controller.safe_action)
    stopped = due < end
    table = times[:count].T
    seconds = (table - start) / 1e9
    reading, computing, writing = np.diff(table[1:], axis=0) / 1e9
    return Timing(
        rate=rate,
        due=seconds[0],
        begun=seconds[1],
        reading=reading,
        computing=computing,
        writing=writing,
        num_missed=num_missed,
        is_realtime=is_realtime,
        stopped=stopped,
    )


@contextlib.contextmanager
def undisturbed(*, realtime: bool) -> Iterator[bool]:
    """Leave garbage where it is for a while and, if so wished, go before all other processes.

    Args:
        realtime: Whether to ask for real-time priority.

    Yields:
        Whether it was granted.
    """
    granted, before, was_enabled = False, None, gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        if realtime and hasattr(os, "sched_setscheduler"):
            before = os.sched_getscheduler(0), os.sched_getparam(0)
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
                granted = True
        yield granted
    finally:
        if granted and before is not None:
            os.sched_setscheduler(0, *before)
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def _wait(due: int, clock: Callable[[], int], stop: Callable[[], bool]) -> bool:
    """Sleep until shortly before a time, then watch the clock; false if it is time to stop."""
    while True:
        left = due - clock()
        if left <= 0:
            return True
        if left > _SPIN:
            time.sleep(min(left - _SPIN, _NAP) / 1e9)
            if stop():
                return False


def _percentiles(values: Float[np.ndarray, " values"]) -> dict[str, float]:
    """Give percentiles in microseconds."""
    if not values.size:
        return {}
    found = 1e6 * np.percentile(values, (50, 99, 99.9, 100))
    return dict(zip(("p50", "p99", "p99.9", "max"), found.round(2).tolist(), strict=True))
