"""Time the controller against Stable-Baselines3 and in loops at 1 kHz, and see what it bears.

Stable-Baselines3, numba, onnx and onnxruntime are needed for this alone and are in no lock file;
what is not installed is left out. The pendulum needs a run, such as `make demo` makes.

    python -m benchmarks.controller --run results/demo --seconds 60
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.channel import pin
from benchmarks.tables import Table, write_table
from empowerment.controller import Bundle, Controller, Safety
from empowerment.controller.controller import EngineName
from empowerment.controller.devices import EnvironmentDevice
from empowerment.controller.export.c_code import CompiledC, c_files
from empowerment.controller.loop import Timing, run_loop, undisturbed
from empowerment.environments import BALLS, ENVIRONMENTS
from empowerment.experiments.deployment import to_bundle
from empowerment.experiments.held import UPRIGHT
from empowerment.model import DVBF, Filter, Scaling
from empowerment.policy import Policy
from empowerment.worlds import Bounded, Box, LinearGaussian

_SEEN, _LATENT, _WIDTH = 44, 16, 128
_ROUNDS, _STEPS = 40, 250
_EPISODES = 100
_HELD_STEPS = 100  # The last five seconds of an episode of twenty.
_BALLS = 4
_TROUBLE = ((0.0, 0.0), (0.1, 0.0), (0.0, 0.02), (0.1, 0.02), (0.3, 0.0), (0.0, 0.1))
"""Shares of observations that are dropped, and noise on the others."""

Times = Callable[[int], np.ndarray]
"""Gives how long so many steps took, in seconds."""


def subject(done: int = 2, limit: float = 1.0) -> tuple[Policy, Bounded, DVBF, Bundle]:
    """Make filter and policy of the size of four balls, with random weights."""
    keys = jax.random.split(jax.random.key(0), 2)
    units = Scaling(jnp.zeros(_SEEN), jnp.ones(_SEEN))
    actions = Scaling(jnp.zeros(done), jnp.full(done, limit))
    model = DVBF(units, actions, latent_size=_LATENT, width=_WIDTH, key=keys[0])
    world = LinearGaussian(
        dynamics=np.eye(_LATENT),
        control=np.ones((_LATENT, done)),
        observation=np.eye(_LATENT),
        process_noise=np.ones(_LATENT),
        resolution=np.ones(_LATENT),
        states=Box([-3.0] * _LATENT, [3.0] * _LATENT, tuple(map(str, range(_LATENT)))),
        actions=Box([-limit] * done, [limit] * done, tuple(f"u{i}" for i in range(done))),
    )
    policy, bounded = Policy(world.states, done, width=_WIDTH, key=keys[1]), Bounded(world)
    return policy, bounded, model, to_bundle(policy=policy, world=bounded, model=model)


def timed(step: Callable[[np.ndarray], Any]) -> Times:
    """Time a function of Python, one call at a time, each upon another observation."""
    observations = np.random.default_rng(0).normal(size=(64, _SEEN)).astype(np.float32)
    rows = list(observations)

    def times(count: int) -> np.ndarray:
        found = np.empty(count)
        for index in range(count):
            row = rows[index % 64]
            begun = time.perf_counter_ns()
            step(row)
            found[index] = time.perf_counter_ns() - begun
        return 1e-9 * found

    return times


def stable_baselines() -> Times:
    """Give PPO with a policy of two layers, asked for its mean action."""
    import torch  # pyright: ignore[reportMissingImports]
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)

    class Nothing(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-10, 10, (_SEEN,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return np.zeros(_SEEN, np.float32), {}

        def step(self, action: Any) -> Any:
            return np.zeros(_SEEN, np.float32), 0.0, False, False, {}

    model = PPO("MlpPolicy", Nothing(), policy_kwargs={"net_arch": [_WIDTH, _WIDTH]}, device="cpu")
    return timed(lambda observation: model.predict(observation, deterministic=True))


def jax_step(policy: Policy, world: Bounded, model: DVBF) -> Times:
    """Give the same step by JAX, compiled."""
    own = Filter(model)

    @jax.jit
    def step(state: Any, action: Any, observation: Any) -> Any:
        state = own.update(state, action, observation)
        return state, world.squash(policy(state).mean)

    state, action = jnp.zeros(_LATENT), jnp.zeros(2)

    def once(observation: np.ndarray) -> np.ndarray:
        nonlocal state, action
        state, action = step(state, action, observation)
        return np.asarray(action)

    return timed(once)


def contenders() -> dict[str, Times]:
    policy, world, model, bundle = subject()
    found: dict[str, Times] = {}
    if importlib.util.find_spec("stable_baselines3") is not None:
        found["Stable-Baselines3 PPO predict, policy alone"] = stable_baselines()
    engines: dict[EngineName, str] = {"numpy": "Controller, NumPy"}
    if importlib.util.find_spec("numba") is not None:
        engines["numba"] = "Controller, numba"
    for engine, name in engines.items():
        found[name] = timed(Controller(bundle, engine=engine).step)
    native = CompiledC(bundle, "it", c_files(bundle, "it"), ("-march=native",))
    observation = np.random.default_rng(0).normal(size=_SEEN).astype(np.float32)
    found["exported C, called from C"] = lambda count: native.times(observation, count)
    if importlib.util.find_spec("onnxruntime") is not None:
        from empowerment.controller.export.onnx_graph import onnx_model, runtime_step

        graph = runtime_step(onnx_model(bundle))
        memory = np.zeros(bundle.description.memory_size, np.float32)
        memory[0] = 1.0
        found["exported ONNX, onnxruntime"] = timed(lambda row: graph(row, memory))
    found["JAX, jitted"] = jax_step(policy, world, model)
    return found


def time_steps() -> Table:
    """Time all in turns, so that they meet the same load; then each alone, before all others."""
    found = contenders()
    pooled = _in_turns(found)
    alone = {}
    grants = []
    for name, each in found.items():
        with undisturbed(realtime=True) as granted:
            alone[name] = 1e6 * each(_ROUNDS * _STEPS)
        grants.append(granted)
    base = np.median(pooled[next(iter(pooled))])
    return [
        {
            "step": name,
            "p50 / µs": f"{np.median(each):.1f}",
            "p99 / µs": f"{np.percentile(each, 99):.1f}",
            "times faster (p50)": f"{base / np.median(each):.1f}",
            "alone, p99 / µs": f"{np.percentile(alone[name], 99):.1f}",
            "with real-time priority": "yes" if all(grants) else "no",
        }
        for name, each in pooled.items()
    ]


def _in_turns(found: dict[str, Times]) -> dict[str, np.ndarray]:
    """Give all times in microseconds."""
    times: dict[str, list[np.ndarray]] = {name: [] for name in found}
    for each in found.values():
        each(_STEPS)
    for _ in range(_ROUNDS):
        for name, each in found.items():
            times[name].append(each(_STEPS))
    return {name: 1e6 * np.concatenate(each) for name, each in times.items()}


class Crew:
    """A controller for each ball, one after the other, as one controller."""

    def __init__(self, bundle: Bundle, engine: EngineName):
        self.each = [Controller(bundle, engine=engine) for _ in range(_BALLS)]
        self.safe_action = np.concatenate([one.safe_action for one in self.each])

    def reset(self) -> None:
        """Let all begin anew."""
        for one in self.each:
            one.reset()

    def step(self, observation: np.ndarray) -> np.ndarray:
        """Give the forces of all."""
        parts = observation.reshape(_BALLS, -1)
        return np.concatenate([one.step(part) for one, part in zip(self.each, parts, strict=True)])


def time_loops(run: Path | None, seconds: float, engine: EngineName) -> Table:
    """Run loops at 1 kHz with and without real-time priority."""
    subjects: dict[str, tuple[Any, gymnasium.Env]] = {}
    if run is not None:
        controller = Controller.load(run, engine=engine)  # Late cycles are counted, but no fault.
        subjects["pendulum"] = (controller, gymnasium.make(ENVIRONMENTS["pendulum"]))
    bundle = subject(limit=60.0)[3]
    subjects["four balls"] = (Crew(bundle, engine), gymnasium.make(BALLS, num_balls=_BALLS))
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
    """Simulate episodes of 20 s from any angle, with observations dropped and noise on them."""
    environment = gymnasium.make(ENVIRONMENTS["pendulum"])
    rows: Table = []
    for dropped, noise in (
        (0.0, 0.0),
        (0.1, 0.0),
        (0.0, 0.02),
        (0.1, 0.02),
        (0.3, 0.0),
        (0.0, 0.1),
    ):
        random = np.random.default_rng(0)
        controller = Controller.load(run, engine="numpy")
        held, faults = 0, 0
        for episode in range(_EPISODES):
            observation, _ = environment.reset(seed=episode)
            controller.reset()
            angles, over = [], False
            while not over:
                seen = observation + random.normal(0, noise, 2) if noise else observation
                action = controller.step(None if random.random() < dropped else seen)
                observation, _, _, over, _ = environment.step(action)
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


class Watched:
    """A pendulum whose angle is noted, and of which some observations are lost."""

    def __init__(self, device: EnvironmentDevice, dropped: float):
        self.device, self.dropped = device, dropped
        self.random = np.random.default_rng(0)
        self.angles: list[float] = []

    def read(self) -> np.ndarray | None:
        """Give what is seen, if it is not lost."""
        seen = self.device.read()
        self.angles.append(abs(float(seen[0])))
        return None if self.random.random() < self.dropped else seen

    def write(self, action: np.ndarray) -> None:
        """Act."""
        self.device.write(action)


def stand_in_time(run: Path) -> Table:
    """Run the pendulum at its own 20 Hz by the clock, from hanging, for twenty seconds."""
    controller = Controller.load(run, safety=Safety(interval=0.05))
    environment = gymnasium.make(ENVIRONMENTS["pendulum"])
    device = EnvironmentDevice(environment)
    device.write(controller.safe_action)
    rows: Table = []
    for dropped in (0.0, 0.1):
        watched = Watched(device, dropped)
        device._observation, _ = environment.reset(options={"state": [np.pi, 0.0]})
        timing = run_loop(controller, watched, rate=20.0, duration=20.0)
        away = np.flatnonzero(np.array(watched.angles) > UPRIGHT)
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
    """Time imports in fresh processes, the least of five."""
    script = (
        "import time; a = time.perf_counter(); import numpy; b = time.perf_counter(); "
        "import empowerment.controller; c = time.perf_counter(); print(b - a, c - b)"
    )
    command = [sys.executable, "-c", script]
    done = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(5)]
    times = np.array([each.stdout.split() for each in done], float).min(0)
    names = ("numpy", "the controller, after it")
    return [{"import": n, "s": f"{t:.2f}"} for n, t in zip(names, times, strict=True)]


PARTS = ("imports", "pendulum", "timed", "loops", "steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("results/demo"))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    words = parser.parse_args()
    run = words.run if (words.run / "controller.json").exists() else None
    if run is None:
        print(f"There is no controller in {words.run}: the pendulum is left out. Try make demo.")
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    has_numba = importlib.util.find_spec("numba") is not None
    engine: EngineName = "numba" if has_numba else "numpy"
    if "imports" in words.parts:
        write_table("controller-imports", import_times())
    if "pendulum" in words.parts and run is not None:
        write_table("controller-pendulum", hold_pendulum(run))
    if "timed" in words.parts and run is not None:
        write_table("controller-timed", stand_in_time(run))
    if "loops" in words.parts:
        write_table("controller-loops", time_loops(run, words.seconds, engine))
    if "steps" in words.parts:
        pin()
        with threadpool_limits(1):
            write_table("controller-steps", time_steps())


if __name__ == "__main__":
    main()
