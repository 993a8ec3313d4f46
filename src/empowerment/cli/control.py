"""`empower control`; it starts without JAX."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from threadpoolctl import threadpool_limits
from tyro.conf import Positional, arg

from empowerment.cli.console import log
from empowerment.controller import Controller, Description, Safety, read_bundle
from empowerment.controller.devices import EnvironmentDevice
from empowerment.controller.loop import Timing, run_loop, until_signalled
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
    """Run a trained policy in real time against its environment, without JAX in the loop.

    Prints computing times, jitter, missed cycles and faults. Ctrl-C sends the safe action and
    ends it.

    Try `empower control runs/pendulum --duration 20`.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    env: Annotated[str | None, arg(metavar="ENV")] = None
    """A Gymnasium id, or module:ID of your own; by default that of the run, unless it is
    module:ID, whose module is imported only if you name it here."""

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
        name = self.env or about.environment
        if name is None:
            raise ValueError("Expected --env, since the run does not say what it is for; got none.")
        check_named(name, self.env)
        if self.figure is not None:
            check_writable(self.figure)
        safety = Safety(
            interval=1 / rate,
            max_change=self.max_change,
            monitor=self.monitor,
            record=self.record or self.folder / "fault.json",
        )
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
            timing = run_loop(
                controller,
                device,
                rate=rate,
                duration=self.duration,
                realtime=self.realtime,
                stop=lambda: bool(signals),
            )
        controller.close()
        close_environment(environment)
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
            from empowerment.report.timing import draw_timing  # Plots are an extra.

            draw_timing(timing, self.figure)
        if self.json:
            print(json.dumps(found, indent=2))
            return
        self._tell(controller, timing, found, safety)

    def _tell(
        self, controller: Controller, timing: Timing, found: dict[str, Any], safety: Safety
    ) -> None:
        """Print the figures."""
        if self.realtime and not timing.is_realtime:
            log("Real-time priority was not granted: it needs CAP_SYS_NICE, or an rtprio limit.")
        for word, key in (("Steps take", "compute_us"), ("Jitter is", "jitter_us")):
            figures = found[key]
            if figures:
                log(
                    f"{word} {figures['p50']:.1f} µs (p50), {figures['p99']:.1f} (p99), "
                    f"{figures['p99.9']:.1f} (p99.9), {figures['max']:.1f} at most."
                )
        log(
            f"{found['cycles']} cycles at {timing.rate:g} Hz, {timing.num_missed} missed; "
            f"{found['missing']} observations missing, {found['faults']} faults."
        )
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
