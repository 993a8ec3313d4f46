"""Time the controller against Stable-Baselines3 and in loops at 1 kHz, and test its robustness.

Stable-Baselines3, numba, onnx and onnxruntime are optional and not in the lock file: what is not
installed is left out. The pendulum needs a run, such as the one that `make demo` trains.

    python -m benchmarks.controller --run results/demo --seconds 60
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.channel import pin
from benchmarks.controller_steps import subject, time_steps
from benchmarks.tables import Table, write_table
from empowerment.controller import Bundle, Controller, Safety
from empowerment.controller.controller import EngineName
from empowerment.controller.devices import EnvironmentDevice
from empowerment.controller.loop import Timing, run_loop
from empowerment.environments import BALLS, ENVIRONMENTS
from empowerment.systems.pendulum import UPRIGHT

_EPISODES = 100
_HELD_STEPS = 100  # The last 5 s of an episode of 20 s.
_BALLS = 4
_DISTURBANCES = ((0.0, 0.0), (0.1, 0.0), (0.0, 0.02), (0.1, 0.02), (0.3, 0.0), (0.0, 0.1))
"""Fraction of dropped observations, and scale of the noise on the others."""


class Team:
    """One controller for each ball, behind the interface of a single controller."""

    def __init__(self, bundle: Bundle, engine: EngineName):
        self.controllers = [Controller(bundle, engine=engine) for _ in range(_BALLS)]
        self.safe_action = np.concatenate([each.safe_action for each in self.controllers])

    def reset(self) -> None:
        """Reset all controllers."""
        for each in self.controllers:
            each.reset()

    def step(self, observation: np.ndarray) -> np.ndarray:
        """Return the forces of all balls."""
        parts = zip(self.controllers, observation.reshape(_BALLS, -1), strict=True)
        return np.concatenate([each.step(part) for each, part in parts])


def time_loops(run: Path | None, seconds: float, engine: EngineName) -> Table:
    """Run loops at 1 kHz with and without real-time priority."""
    subjects: dict[str, tuple[Any, gymnasium.Env]] = {}
    if run is not None:
        controller = Controller.load(run, engine=engine)  # Late cycles are counted, but no fault.
        subjects["pendulum"] = (controller, gymnasium.make(ENVIRONMENTS["pendulum"]))
    bundle = subject(limit=60.0)[3]
    subjects["four balls"] = (Team(bundle, engine), gymnasium.make(BALLS, num_balls=_BALLS))
    rows: Table = []
    for name, (controller, environment) in subjects.items():
        for realtime in (False, True):
            device = EnvironmentDevice(environment)
            device.write(controller.safe_action)
            device.restart()
            load = os.getloadavg()[0]
            with threadpool_limits(1):
                timing = run_loop(
                    controller, device, rate=1000.0, duration=seconds, realtime=realtime
                )
            rows.append(_row(name, timing, load))
            print(rows[-1], flush=True)
    return rows


def _row(name: str, timing: Timing, load: float) -> dict[str, object]:
    figures = timing.summary()
    compute, jitter = figures["compute_us"], figures["jitter_us"]
    return {
        "loop at 1 kHz": name,
        "real-time priority": "yes" if timing.is_realtime else "no",
        "cycles": figures["cycles"],
        "missed": figures["missed"],
        "step p50 / p99 / p99.9, µs": f"{compute['p50']} / {compute['p99']} / {compute['p99.9']}",
        "jitter p50 / p99 / p99.9, µs": f"{jitter['p50']} / {jitter['p99']} / {jitter['p99.9']}",
        "environment p50, µs": figures["write_us"]["p50"],
        "load before": f"{load:.1f}",
    }


def hold_pendulum(run: Path) -> Table:
    """Simulate episodes of 20 s from any angle, with dropped and noisy observations."""
    environment = gymnasium.make(ENVIRONMENTS["pendulum"])
    rows: Table = []
    for dropped, noise in _DISTURBANCES:
        random = np.random.default_rng(0)
        controller = Controller.load(run, engine="numpy")
        held, faults = 0, 0
        for episode in range(_EPISODES):
            observation, _ = environment.reset(seed=episode)
            controller.reset()
            angles, is_over = [], False
            while not is_over:
                noisy = observation + random.normal(0, noise, 2) if noise else observation
                action = controller.step(None if random.random() < dropped else noisy)
                observation, _, _, is_over, _ = environment.step(action)
                angles.append(abs(observation[0]))
            held += max(angles[-_HELD_STEPS:]) <= UPRIGHT
            faults += controller.fault is not None
        rows.append(
            {
                "observations dropped": f"{dropped:.0%}",
                "noise on both coordinates": noise,
                "held": f"{held / _EPISODES:.2f}",
                "episodes": _EPISODES,
                "faults": faults,
            }
        )
        print(rows[-1], flush=True)
    return rows


class LossyPendulum:
    """A pendulum that drops observations and records its angle.

    Args:
        device: The pendulum.
        dropped: Fraction of dropped observations.
    """

    def __init__(self, device: EnvironmentDevice, dropped: float):
        self.device, self.dropped = device, dropped
        self.random = np.random.default_rng(0)
        self.angles: list[float] = []

    def read(self) -> np.ndarray | None:
        """Return the latest observation, unless it is dropped."""
        observation = self.device.read()
        self.angles.append(abs(float(observation[0])))
        return None if self.random.random() < self.dropped else observation

    def write(self, action: np.ndarray) -> None:
        """Apply the action."""
        self.device.write(action)


def stand_in_time(run: Path) -> Table:
    """Run the pendulum in real time at its own 20 Hz, from hanging, for 20 s."""
    controller = Controller.load(run, safety=Safety(interval=0.05))
    environment = gymnasium.make(ENVIRONMENTS["pendulum"])
    device = EnvironmentDevice(environment)
    device.write(controller.safe_action)
    rows: Table = []
    for dropped in (0.0, 0.1):
        pendulum = LossyPendulum(device, dropped)
        device._observation, _ = environment.reset(options={"state": [np.pi, 0.0]})
        timing = run_loop(controller, pendulum, rate=20.0, duration=20.0)
        away = np.flatnonzero(np.array(pendulum.angles) > UPRIGHT)
        rows.append(
            {
                "timed at 20 Hz, from hanging": f"{dropped:.0%} dropped",
                "upright for good after": f"{(away[-1] + 1) / 20:.2f} s",
                "cycles": len(timing.begun),
                "missed": timing.num_missed,
                "faults": controller.num_faults,
            }
        )
        print(rows[-1], flush=True)
    return rows


def import_times() -> Table:
    """Time imports in new processes: the minimum of five."""
    script = (
        "import time; a = time.perf_counter(); import numpy; b = time.perf_counter(); "
        "import empowerment.controller; c = time.perf_counter(); print(b - a, c - b)"
    )
    command = [sys.executable, "-c", script]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(5)]
    times = np.array([each.stdout.split() for each in runs], float).min(0)
    names = ("numpy", "the controller, after it")
    return [{"import": n, "s": f"{t:.2f}"} for n, t in zip(names, times, strict=True)]


PARTS = ("imports", "pendulum", "timed", "loops", "steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("results/demo"), help="run of a pendulum")
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of each loop")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    run = options.run if (options.run / "controller.json").exists() else None
    if run is None:
        print(f"There is no controller in {options.run}: the pendulum is left out. Try make demo.")
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    has_numba = importlib.util.find_spec("numba") is not None
    engine: EngineName = "numba" if has_numba else "numpy"
    if "imports" in options.parts:
        write_table("controller-imports", import_times())
    if "pendulum" in options.parts and run is not None:
        write_table("controller-pendulum", hold_pendulum(run))
    if "timed" in options.parts and run is not None:
        write_table("controller-timed", stand_in_time(run))
    if "loops" in options.parts:
        write_table("controller-loops", time_loops(run, options.seconds, engine))
    if "steps" in options.parts:
        pin()
        with threadpool_limits(1):
            write_table("controller-steps", time_steps())


if __name__ == "__main__":
    main()
