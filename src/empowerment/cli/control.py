"""`empower control`; it starts without JAX."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from threadpoolctl import threadpool_limits
from tyro.conf import Positional, arg

from empowerment.cli.console import log
from empowerment.cli.devices import connected, open_device
from empowerment.controller import Bundle, Controller, Description, Safety, read_bundle
from empowerment.controller.devices import Device, DeviceSpec, EnvironmentDevice
from empowerment.controller.loop import Timing, run_in_step, run_loop, until_signalled
from empowerment.data import Spaces
from empowerment.data.environments import (
    check_named,
    close_environment,
    make_environment,
    to_space,
    vector_spaces,
)
from empowerment.environments import ActionRepeat
from empowerment.files import check_writable


@dataclasses.dataclass(frozen=True)
class ControlCommand:
    """Run a trained policy in real time, in its environment or on a device, without JAX.

    Prints computing times, jitter, missed cycles and faults. Ctrl-C sends the safe action and
    ends it.

    Try `empower control runs/pendulum --duration 20`, or with a robot behind a socket
    `empower control runs/mine --device socket:127.0.0.1:5005`.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    env: Annotated[str | None, arg(metavar="ENV")] = None
    """A Gymnasium id, or module:ID of your own; by default that of the run, unless it is
    module:ID, whose module is imported only if you name it here."""

    device: Annotated[str | None, arg(metavar="SPEC")] = None
    """What to control instead: socket:HOST:PORT, dds[:DOMAIN], or env:ID, which is as --env ID."""

    rate: Annotated[float | None, arg(metavar="HZ")] = None
    """Control rate; by default that of the run, if it is known."""

    duration: Annotated[float, arg(metavar="S")] = 10.0
    """Duration in seconds."""

    realtime: bool = False
    """Request real-time priority (SCHED_FIFO); it needs the permission."""

    engine: Literal["auto", "numpy", "numba"] = "auto"
    """Implementation of the step; auto is numba where it is installed."""

    max_change: Annotated[float | None, arg(metavar="FLOAT")] = None
    """Maximal change of an action from one cycle to the next; not for discrete actions."""

    monitor: bool = True
    """Whether to stop where observations are not what the model expects, if the run has such a
    monitor."""

    record: Annotated[Path | None, arg(metavar="FILE.json")] = None
    """File for the last hundred steps upon a fault; by default fault.json in the run folder."""

    figure: Annotated[Path | None, arg(metavar="FILE.png")] = None
    """Draw histograms of computing time and jitter to this file."""

    seed: int = 0
    """Random seed of the environment."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Run the loop, and print its timing."""
        bundle = read_bundle(self.folder)
        about = bundle.description
        rate = self.rate or (1 / about.interval if about.interval else None)
        if rate is None:
            raise ValueError("Expected --rate, since the run does not say its own; got none.")
        spec = None if self.device is None else DeviceSpec.parse(self.device)
        if spec is not None and self.env is not None:
            raise ValueError(f"Expected one of --env and --device; got {self.env} and {spec}.")
        if self.figure is not None:
            check_writable(self.figure)
        safety = Safety(
            interval=1 / rate,
            max_change=self.max_change,
            monitor=self.monitor,
            record=self.record or self.folder / "fault.json",
        )
        if spec is not None and spec.kind != "env":
            self._control_device(spec, bundle, safety, rate)
        else:
            name = self.env if spec is None else spec.name
            self._control_environment(name, bundle, safety, rate)

    def _control_environment(
        self, named: str | None, bundle: Bundle, safety: Safety, rate: float
    ) -> None:
        """Control an environment, that of the run if none is named."""
        about = bundle.description
        name = named or about.environment
        if name is None:
            raise ValueError(
                "Expected --env or --device, since the run does not say what it is for; got none."
            )
        check_named(name, named)
        environment = make_environment(name)
        actions = environment.action_space
        _check_spaces(vector_spaces(environment.observation_space, actions, name), about, name)
        if about.action_repeat > 1:
            environment = ActionRepeat(environment, about.action_repeat)
        controller = Controller(bundle, safety=safety, engine=self.engine)
        device = EnvironmentDevice(
            environment,
            seed=self.seed,
            restarted=controller.reset,
            convert=functools.partial(to_space, space=actions) if about.choices else None,
        )
        device.write(controller.safe_action)  # Compile now what is compiled at its first use.
        device.restart()
        with threadpool_limits(1), until_signalled() as signals:
            timing = self._run_loop(controller, device, rate, signals)
        controller.close()
        close_environment(environment)
        facts = {"environment": name, "episodes": device.num_episodes}
        self._show(controller, timing, timing.summary() | facts, safety, signals)

    def _control_device(
        self, spec: DeviceSpec, bundle: Bundle, safety: Safety, rate: float
    ) -> None:
        """Control a device."""
        about = bundle.description
        device = open_device(spec, about)
        controller = Controller(bundle, safety=safety, engine=self.engine, clock=device.clock)
        device.restarted = controller.reset
        with until_signalled() as signals, threadpool_limits(1), connected(device, about, rate):
            timing, facts = None, {}
            if device.is_lockstep:
                if self.figure is not None:
                    raise ValueError("Expected no --figure of a device in lock-step; got one.")
                cycles = round(self.duration * rate)
                done = run_in_step(controller, device, cycles=cycles, stop=lambda: bool(signals))
                facts = {"cycles": done, "rate_hz": rate}
            else:
                timing = self._run_loop(controller, device, rate, signals)
                facts = timing.summary()
        controller.close()
        facts |= {
            "device": str(spec),
            "lockstep": device.is_lockstep,
            "episodes": device.num_episodes,
            "lost": device.num_lost,
        }
        self._show(controller, timing, facts, safety, signals)

    def _run_loop(
        self, controller: Controller, device: Device, rate: float, signals: list[str]
    ) -> Timing:
        return run_loop(
            controller,
            device,
            rate=rate,
            duration=self.duration,
            realtime=self.realtime,
            stop=lambda: bool(signals),
        )

    def _show(
        self,
        controller: Controller,
        timing: Timing | None,
        facts: dict[str, Any],
        safety: Safety,
        signals: list[str],
    ) -> None:
        """Print what happened, as JSON or in sentences, and draw the timing."""
        found = facts | {
            "engine": controller.engine,
            "missing": controller.num_missing,
            "late": controller.num_late,
            "faults": controller.num_faults,
            "fault": controller.fault,
            "signal": signals[0] if signals else None,
        }
        if self.figure is not None and timing is not None:
            from empowerment.report.timing import draw_timing  # Plots are an extra.

            draw_timing(timing, self.figure)
        if self.json:
            print(json.dumps(found, indent=2))
            return
        self._tell(controller, timing, found, safety)

    def _tell(
        self, controller: Controller, timing: Timing | None, found: dict[str, Any], safety: Safety
    ) -> None:
        """Print the figures."""
        if self.realtime and timing is not None and not timing.is_realtime:
            log("Real-time priority was not granted: it needs CAP_SYS_NICE, or an rtprio limit.")
        for word, key in (("Steps take", "compute_us"), ("Jitter is", "jitter_us")):
            figures = found.get(key)
            if figures:
                log(
                    f"{word} {figures['p50']:.1f} µs (p50), {figures['p99']:.1f} (p99), "
                    f"{figures['p99.9']:.1f} (p99.9), {figures['max']:.1f} at most."
                )
        pace = "in lock-step" if timing is None else f"{timing.num_missed} missed"
        log(
            f"{found['cycles']} cycles at {found['rate_hz']:g} Hz, {pace}; "
            f"{found['missing']} observations missing, {found['faults']} faults."
        )
        if found.get("lost"):
            log(f"The device was lost {found['lost']} times.")
        if controller.fault is not None:
            kept = controller.problem or f"The last steps are in {safety.record}."
            log(f"At fault: {controller.fault}; the safe action was held. {kept}")
        if found["signal"] is not None:
            log(f"Stopped by {found['signal']}; the safe action was sent.")
        if self.figure is not None:
            log(f"The picture is in {self.figure}.")


def _check_spaces(spaces: Spaces, about: Description, name: str) -> None:
    """Refuse an environment with other observations or actions than the controller has."""
    found = len(spaces.observation_names), len(spaces.action_names), spaces.action_choices
    wanted = about.observation_size, about.action_size, about.choices
    if found != wanted:
        raise ValueError(
            f"Expected {name} to have {_sizes(*wanted)}, as the run has; got {_sizes(*found)}."
        )


def _sizes(observation_size: int, action_size: int, choices: tuple[int, ...]) -> str:
    """Describe observations and actions."""
    detail = f" with {', '.join(map(str, choices))} choices" if choices else ""
    return f"{observation_size} observed numbers and {action_size} actions{detail}"
