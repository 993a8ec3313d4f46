"""Real-time control loop: read, step and write at a fixed rate."""

import contextlib
import gc
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from empowerment.controller.controller import Controller
from empowerment.controller.devices.base import Device as Device, LostDeviceError, is_idle

_SPIN = 200_000
"""Nanoseconds of busy waiting before each cycle, since sleep is less precise."""

_NAP = 50_000_000
"""Longest sleep in nanoseconds, so that a request to stop is noticed soon."""

_PRIORITY = 50
"""Priority under SCHED_FIFO, which ranges from 1 to 99."""

_MOST_CYCLES = 20_000_000


@dataclass(frozen=True, eq=False)
class Timing:
    """Timing of a control loop, in seconds.

    Attributes:
        rate: Cycles per second.
        due: Scheduled start of each cycle, relative to the first.
        begun: Actual start of each cycle.
        reading: Duration of reading.
        computing: Duration of the step.
        writing: Duration of writing.
        num_missed: Cycles skipped because the previous one overran.
        is_realtime: Whether the process had real-time priority.
        stopped: Whether the loop was stopped early.
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
        """Absolute deviation of each period from its scheduled length."""
        return np.abs(np.diff(self.begun) - np.diff(self.due))

    def summary(self) -> dict[str, Any]:
        """Return statistics; the suffix `_us` means microseconds."""
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
    """Run a controller at a fixed rate; the safe action is always sent at the end.

    The loop neither logs nor writes to disk, and garbage collection is disabled. Cycles that an
    overrun delays are skipped rather than made up for in a burst. A device that is lost is a fault
    in the same cycle; one that is between two episodes is sent the safe action.

    Args:
        controller: The controller; it is reset. Late cycles are a fault only if its
            `Safety.interval` is set.
        device: The device under control.
        rate: Cycles per second.
        duration: Duration in seconds.
        realtime: Whether to request real-time priority (SCHED_FIFO); `Timing.is_realtime` records
            whether it was granted.
        stop: Callback that returns whether to stop, polled before each cycle and while waiting.

    Returns:
        The timing of the loop.
    """
    if not 0.01 <= rate <= 1e5:
        raise ValueError(f"Expected the rate to be from 0.01 to 100000 Hz; got {rate}.")
    if not 0 < duration < math.inf or rate * duration > _MOST_CYCLES:
        raise ValueError(
            f"Expected the duration to be above zero and at most {_MOST_CYCLES} cycles; got "
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
                try:
                    observation = device.read()
                except LostDeviceError as error:
                    observation = None
                    controller.stop(str(error))
                read = clock()
                action = controller.safe_action if is_idle(device) else controller.step(observation)
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


def run_in_step(
    controller: Controller,
    device: Device,
    *,
    cycles: int,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Run a controller as fast as a device in lock-step goes, which sets the pace.

    It ends at the first cycle in which the device is lost, and sends the safe action at the end.

    Args:
        controller: The controller; it is reset.
        device: The device, whose `read` waits for the next cycle.
        cycles: Number of cycles.
        stop: Callback that returns whether to stop, polled in each cycle.

    Returns:
        Number of cycles that were made.
    """
    controller.reset()
    try:
        for count in range(cycles):
            if stop():
                return count
            try:
                observation = device.read()
            except LostDeviceError as error:
                controller.stop(str(error))
                return count
            device.write(
                controller.safe_action if is_idle(device) else controller.step(observation)
            )
    finally:
        device.write(controller.safe_action)
    return cycles


@contextlib.contextmanager
def undisturbed(*, realtime: bool) -> Iterator[bool]:
    """Disable garbage collection and optionally request real-time priority.

    Args:
        realtime: Whether to request real-time priority.

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
    """Sleep until shortly before a time, then busy-wait; return false if asked to stop."""
    while True:
        left = due - clock()
        if left <= 0:
            return True
        if left > _SPIN:
            time.sleep(min(left - _SPIN, _NAP) / 1e9)
            if stop():
                return False


def _percentiles(values: Float[np.ndarray, " values"]) -> dict[str, float]:
    """Compute percentiles in microseconds."""
    if not values.size:
        return {}
    percentiles = 1e6 * np.percentile(values, (50, 99, 99.9, 100))
    return dict(zip(("p50", "p99", "p99.9", "max"), percentiles.round(2).tolist(), strict=True))


@contextlib.contextmanager
def until_signalled() -> Iterator[list[str]]:
    """Record SIGINT and SIGTERM instead of being terminated by them."""
    signals: list[str] = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [
        signal.signal(kind, lambda number, frame: signals.append(signal.Signals(number).name))
        for kind in kinds
    ]
    try:
        yield signals
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
