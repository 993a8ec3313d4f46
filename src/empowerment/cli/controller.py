"""`empower control` and `empower export`."""

import contextlib
import dataclasses
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits
from tyro.conf import Positional, arg

from empowerment.cli.console import say
from empowerment.controller import Controller, Safety, read_bundle
from empowerment.controller.devices import EnvironmentDevice
from empowerment.controller.export import export
from empowerment.controller.loop import Timing, run_loop
from empowerment.data.environments import make_environment
from empowerment.environments import ActionRepeat
from empowerment.report import check_writable
from empowerment.report.timing import draw_timing


@dataclasses.dataclass(frozen=True)
class ControlCommand:
    """Run a trained policy in real time against its environment, without JAX in the loop.

    Prints how long the steps took, how far the periods were off, how many cycles were missed
    and what was at fault. Ctrl-C sends the safe action and ends it.

    Try `empower control runs/pendulum --duration 20`.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    env: Annotated[str | None, arg(metavar="ENV")] = None
    """A Gymnasium id, or module:ID of your own; that of the run if not given."""

    rate: Annotated[float | None, arg(metavar="HZ")] = None
    """Cycles in a second; that of the run if it is known and not given."""

    duration: Annotated[float, arg(metavar="S")] = 10.0
    """For how many seconds."""

    realtime: bool = False
    """Ask for real-time priority (SCHED_FIFO); it needs the right to."""

    engine: Literal["auto", "numpy", "numba"] = "auto"
    """What computes; auto is numba where it is installed."""

    max_change: Annotated[float | None, arg(metavar="FLOAT")] = None
    """The most that an action may change from one cycle to the next."""

    record: Annotated[Path | None, arg(metavar="FILE.json")] = None
    """Where the last hundred steps go upon a fault; fault.json in the run folder if not given."""

    figure: Annotated[Path | None, arg(metavar="FILE.png")] = None
    """Draw histograms of the times here."""

    seed: int = 0
    """Of the environment."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Run the loop, and say how it went."""
        bundle = read_bundle(self.folder)
        about = bundle.description
        rate = self.rate or (1 / about.interval if about.interval else None)
        if rate is None:
            raise ValueError("Expected --rate, since the run does not say its own; got none.")
        name = self.env or about.environment
        if name is None:
            raise ValueError("Expected --env, since the run does not say what it is for; got none.")
        if self.figure is not None:
            check_writable(self.figure)
        safety = Safety(
            interval=1 / rate,
            max_change=self.max_change,
            record=self.record or self.folder / "fault.json",
        )
        environment = make_environment(name)
        _check_spaces(environment, about.observation_size, bundle.limits, name)
        if about.action_repeat > 1:
            environment = ActionRepeat(environment, about.action_repeat)
        controller = Controller(bundle, safety=safety, engine=self.engine)
        device = EnvironmentDevice(environment, seed=self.seed, restarted=controller.reset)
        device.write(controller.safe_action)  # What is compiled at its first use is compiled now.
        device.restart()
        with threadpool_limits(1), _until_signalled() as signals:
            timing = run_loop(
                controller,
                device,
                rate=rate,
                duration=self.duration,
                realtime=self.realtime,
                stop=lambda: bool(signals),
            )
        controller.close()
        environment.close()
        found = {
            **timing.summary(),
            "environment": name,
            "engine": controller.engine,
            "episodes": device.num_episodes,
            "missing": controller.num_missing,
            "late": controller.num_late,
            "faults": controller.num_faults,
            "fault": controller.fault,
            "signal": signals[0] if signals else None,
        }
        if self.figure is not None:
            draw_timing(timing, self.figure)
        if self.json:
            print(json.dumps(found, indent=2))
            return
        self._tell(controller, timing, found, safety)

    def _tell(
        self, controller: Controller, timing: Timing, found: dict[str, Any], safety: Safety
    ) -> None:
        """Say the figures."""
        if self.realtime and not timing.is_realtime:
            say("Real-time priority was not granted: it needs CAP_SYS_NICE, or an rtprio limit.")
        for word, key in (("Steps take", "compute_us"), ("Periods are off by", "jitter_us")):
            figures = found[key]
            if figures:
                say(
                    f"{word} {figures['p50']:.1f} µs (p50), {figures['p99']:.1f} (p99), "
                    f"{figures['p99.9']:.1f} (p99.9), {figures['max']:.1f} at most."
                )
        say(
            f"{found['cycles']} cycles at {timing.rate:g} Hz, {timing.num_missed} missed; "
            f"{found['missing']} observations missing, {found['faults']} faults."
        )
        if controller.fault is not None:
            kept = controller.problem or f"The last steps are in {safety.record}."
            say(f"At fault: {controller.fault}; the safe action was held. {kept}")
        if found["signal"] is not None:
            say(f"Stopped by {found['signal']}; the safe action was sent.")
        if self.figure is not None:
            say(f"The picture is in {self.figure}.")


@dataclasses.dataclass(frozen=True)
class ExportCommand:
    """Write a trained policy with its filter for where there is no Python, or another runtime.

    The export is a step that takes an observation and a state, and gives an action and the next
    state. It is compared with the original on a thousand random steps before it is written.

    Try `empower export runs/pendulum --format c --out pendulum.h`.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    format: Literal["onnx", "c", "npz"]
    """onnx: a graph, for onnxruntime and others. c: two C99 headers without dependencies. npz:
    the weights by name, for NumPy."""

    out: Annotated[Path, arg(metavar="FILE")]
    """The file; of C the header with the step, the weights go beside it."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Export, and say how exact it is."""
        check_writable(self.out)
        found, files = export(read_bundle(self.folder), self.format, self.out)
        if self.json:
            names = [str(file) for file in files]
            print(json.dumps({**dataclasses.asdict(found), "files": names}, indent=2))
            return
        say(
            f"Off by {found.largest_error:.2g} at most in {found.num_steps} random steps; a step "
            f"takes {1e6 * found.p50:.1f} µs (p50), {1e6 * found.p99:.1f} (p99)."
        )
        say(f"The export is in {' and '.join(map(str, files))}.")


def _check_spaces(
    environment: Any, size: int, limits: tuple[np.ndarray, np.ndarray], name: str
) -> None:
    """Refuse an environment whose observations or actions are not those of the controller."""
    seen, done = environment.observation_space.shape, environment.action_space.shape
    if seen != (size,) or done != limits[0].shape:
        raise ValueError(
            f"Expected {name} to have observations of shape {(size,)} and actions of shape "
            f"{limits[0].shape}, as the run has; got {seen} and {done}."
        )


@contextlib.contextmanager
def _until_signalled() -> Iterator[list[str]]:
    """Note SIGINT and SIGTERM instead of being ended by them."""
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
