"""Time single steps of the controller, its exports, JAX, and Stable-Baselines3."""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import Table
from empowerment.agent import to_bundle
from empowerment.controller import Bundle, Controller
from empowerment.controller.controller import EngineName
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import CompiledC
from empowerment.controller.loop import undisturbed
from empowerment.model import DVBF, Filter, Scaling
from empowerment.policy import Policy
from empowerment.worlds import Bounded, Box, LinearGaussian

_OBSERVED, _ACTIONS, _LATENT, _WIDTH = 44, 2, 16, 128
_ROUNDS, _STEPS = 40, 250

Times = Callable[[int], np.ndarray]
"""Makes a number of steps, and returns the seconds that each of them took."""


def subject(limit: float = 1.0) -> tuple[Policy, Bounded, DVBF, Bundle]:
    """Build a filter and a policy of the size for four balls, with random weights."""
    keys = jax.random.split(jax.random.key(0), 2)
    units = Scaling(jnp.zeros(_OBSERVED), jnp.ones(_OBSERVED))
    actions = Scaling(jnp.zeros(_ACTIONS), jnp.full(_ACTIONS, limit))
    model = DVBF(units, actions, latent_size=_LATENT, width=_WIDTH, key=keys[0])
    world = LinearGaussian(
        dynamics=np.eye(_LATENT),
        control=np.ones((_LATENT, _ACTIONS)),
        observation=np.eye(_LATENT),
        process_noise=np.ones(_LATENT),
        resolution=np.ones(_LATENT),
        states=Box([-3.0] * _LATENT, [3.0] * _LATENT, tuple(map(str, range(_LATENT)))),
        actions=Box([-limit] * _ACTIONS, [limit] * _ACTIONS, ("u0", "u1")),
    )
    policy, bounded = Policy(world.states, _ACTIONS, width=_WIDTH, key=keys[1]), Bounded(world)
    return policy, bounded, model, to_bundle(policy=policy, world=bounded, model=model)


def timed(step: Callable[[np.ndarray], Any]) -> Times:
    """Time a Python function call by call, with changing observations."""
    rows = list(np.random.default_rng(0).normal(size=(64, _OBSERVED)).astype(np.float32))

    def times(count: int) -> np.ndarray:
        durations = np.empty(count)
        for index in range(count):
            row = rows[index % 64]
            start = time.perf_counter_ns()
            step(row)
            durations[index] = time.perf_counter_ns() - start
        return 1e-9 * durations

    return times


def stable_baselines() -> Times:
    """Time the mean action of PPO with a policy of two layers."""
    import torch  # pyright: ignore[reportMissingImports]
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)

    class Nothing(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-10, 10, (_OBSERVED,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (_ACTIONS,), np.float32)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return np.zeros(_OBSERVED, np.float32), {}

        def step(self, action: Any) -> Any:
            return np.zeros(_OBSERVED, np.float32), 0.0, False, False, {}

    model = PPO("MlpPolicy", Nothing(), policy_kwargs={"net_arch": [_WIDTH, _WIDTH]}, device="cpu")
    return timed(lambda observation: model.predict(observation, deterministic=True))


def jax_step(policy: Policy, world: Bounded, model: DVBF) -> Times:
    """Time the same step in JAX, compiled."""
    own = Filter(model)

    @jax.jit
    def step(state: Any, action: Any, observation: Any) -> Any:
        state = own.update(state, action, observation)
        return state, world.squash(policy(state).mean)

    state, action = jnp.zeros(_LATENT), jnp.zeros(_ACTIONS)

    def once(observation: np.ndarray) -> np.ndarray:
        nonlocal state, action
        state, action = step(state, action, observation)
        return np.asarray(action)

    return timed(once)


def contenders() -> dict[str, Times]:
    """Build every implementation whose packages are installed."""
    policy, world, model, bundle = subject()
    built: dict[str, Times] = {}
    if importlib.util.find_spec("stable_baselines3") is not None:
        built["Stable-Baselines3 PPO predict, policy alone"] = stable_baselines()
    engines: dict[EngineName, str] = {"numpy": "Controller, NumPy"}
    if importlib.util.find_spec("numba") is not None:
        engines["numba"] = "Controller, numba"
    for engine, name in engines.items():
        built[name] = timed(Controller(bundle, engine=engine).step)
    native = CompiledC(bundle, "it", c_files(bundle, "it"), ("-march=native",))
    observation = np.random.default_rng(0).normal(size=_OBSERVED).astype(np.float32)
    built["exported C, called from C"] = lambda count: native.times(observation, count)
    if importlib.util.find_spec("onnxruntime") is not None:
        from empowerment.controller.export.onnx_graph import onnx_model, runtime_step

        graph = runtime_step(onnx_model(bundle))
        memory = np.zeros(bundle.description.memory_size, np.float32)
        memory[0] = 1.0
        built["exported ONNX, onnxruntime"] = timed(lambda row: graph(row, memory))
    built["JAX, jitted"] = jax_step(policy, world, model)
    return built


def time_steps() -> Table:
    """Time all in turns, so that they share the load; then each alone, with real-time priority."""
    built = contenders()
    pooled = _in_turns(built)
    alone, grants = {}, []
    for name, each in built.items():
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


def _in_turns(built: dict[str, Times]) -> dict[str, np.ndarray]:
    """Return all times in microseconds."""
    times: dict[str, list[np.ndarray]] = {name: [] for name in built}
    for each in built.values():
        each(_STEPS)
    for _ in range(_ROUNDS):
        for name, each in built.items():
            times[name].append(each(_STEPS))
    return {name: 1e6 * np.concatenate(each) for name, each in times.items()}
