"""Devices of the commands that control them."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from empowerment.cli.console import log
from empowerment.controller import Controller, Description, Safety, read_bundle
from empowerment.controller.devices import DeviceSpec, RemoteDevice, SocketDevice
from empowerment.controller.loop import run_in_step, run_loop, until_signalled
from empowerment.controller.recording import RecordingDevice, spaces_of_bundle
from empowerment.controller.sampling import SamplingEngine

_PATIENCE = 30.0
"""Seconds at fault, without an episode that begins, after which a recording ends."""

_MOST_CYCLES = 10_000_000
"""Cycles of a recording at most."""


def open_device(spec: DeviceSpec, about: Description) -> RemoteDevice:
    """Return a device for a controller, not yet connected.

    Args:
        spec: Names it.
        about: Describes the controller.
    """
    if spec.kind == "dds":
        from empowerment.controller.devices.dds_device import DdsDevice  # An extra.

        return DdsDevice(spec.number, observation_size=about.observation_size)
    return SocketDevice(
        spec.name,
        spec.number,
        observation_size=about.observation_size,
        action_size=about.action_size,
    )


@contextlib.contextmanager
def connected(device: RemoteDevice, about: Description, rate: float) -> Iterator[None]:
    """Connect a device, and close it in the end; what it says of itself is compared with the run.

    Args:
        device: The device.
        about: Describes the controller.
        rate: The rate of control.
    """
    try:
        device.connect()
        if device.limits is not None:
            _check_limits(device.limits, about)
        own = device.interval
        if own is not None and abs(own * rate - 1) > 0.01:
            if device.is_lockstep:
                raise ValueError(
                    f"Expected a device in lock-step to have the rate of the run, {rate:g} Hz; got "
                    f"{1 / own:g} Hz."
                )
            log(f"The device observes at {1 / own:g} Hz; it is controlled at {rate:g} Hz.")
        yield
    finally:
        device.close()


def _check_limits(limits: tuple[tuple[float, ...], tuple[float, ...]], about: Description) -> None:
    """Refuse a device that would cut actions off, which the filter would not know."""
    low, high = (np.array(each, np.float32) for each in limits)
    own = np.array([about.low, about.high], np.float32)
    slack = 1e-5 * np.maximum(np.abs(own).max(axis=0), 1.0)
    if not ((low <= own[0] + slack) & (own[1] - slack <= high)).all():
        raise ValueError(
            f"Expected a device that takes actions from {list(about.low)} to {list(about.high)}, "
            f"as the run has them; got one from {low.tolist()} to {high.tolist()}."
        )


def record(
    spec: DeviceSpec,
    folder: Path,
    out: Path,
    *,
    steps: int,
    max_change: float | None,
    seed: int,
    progress: Callable[[str, int, int], None],
) -> None:
    """Let the policy of a run act on a device, with its safety functions, and record it.

    Args:
        spec: Names the device.
        folder: The run.
        out: The file of the data, which is written as episodes end.
        steps: The number of transitions after which it stops.
        max_change: Largest change of an action.
        seed: Random seed of the actions.
        progress: Progress callback.
    """
    bundle = read_bundle(folder)
    about = bundle.description
    if about.interval is None:
        raise ValueError(f"Expected the run in {folder} to say its interval; it does not.")
    rate = 1 / about.interval
    device = open_device(spec, about)
    controller = Controller(
        bundle,
        safety=Safety(interval=about.interval, max_change=max_change),
        engine=SamplingEngine(bundle, seed=seed),
        clock=device.clock,
    )
    device.restarted = controller.reset
    faults: list[str] = []

    with until_signalled() as signals, connected(device, about, rate):
        recorder = RecordingDevice(
            device,
            out,
            spaces_of_bundle(about),
            about={"policy": str(folder), "device": str(spec), "seed": seed},
            interval=about.interval,
            written=lambda done: progress("recording", min(done, steps), steps),
        )
        faulty_since: float | None = None

        def stop() -> bool:
            nonlocal faulty_since
            if controller.fault is None:
                faulty_since = None
            elif faulty_since is None:
                faulty_since = time.monotonic()
                faults.append(controller.fault)
            is_stuck = faulty_since is not None and time.monotonic() - faulty_since > _PATIENCE
            return bool(signals) or is_stuck or recorder.num_recorded >= steps

        try:
            if device.is_lockstep:
                run_in_step(controller, recorder, cycles=_MOST_CYCLES, stop=stop)
            else:
                run_loop(controller, recorder, rate=rate, duration=_MOST_CYCLES / rate, stop=stop)
        finally:
            recorder.close()
    controller.close()
    if controller.fault is not None and controller.fault not in faults[-1:]:
        faults.append(controller.fault)
    if recorder.problem is not None:
        raise recorder.problem
    if not recorder.num_transitions:
        raise ValueError(
            f"Expected {spec} to begin an episode; nothing was observed, and nothing written."
        )
    log(f"Recorded {recorder.num_transitions} transitions in {recorder.num_episodes} episodes.")
    if faults:
        log(f"The safe action was latched {len(faults)} times; the last: {faults[-1]}.")
    if signals:
        log(f"Stopped by {signals[0]}; the safe action was sent.")
    elif controller.fault is not None:
        log(f"The fault did not end: there are fewer than {steps}.")
