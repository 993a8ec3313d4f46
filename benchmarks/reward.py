"""Time the reward wrappers, and learn from empowerment with Stable-Baselines3.

    python -m benchmarks.reward overhead
    python -m benchmarks.reward learn --sources Pendulum-v1=pendulum.npz CartPole-v1=runs/cartpole

Stable-Baselines3 is not in the lock file: `learn` makes a virtual environment for it beside its
results, without JAX, which the wrappers do not need. Results are added to results/reward.
"""

import argparse
import os
import subprocess
import sys
import time
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from empowerment.controller import Bundle, Description
from empowerment.controller.reward import EmpowermentReward, VectorEmpowermentReward

_ROOT = Path(__file__).parent.parent
_RESULTS = Path("results/reward")
_LEARNER = ("torch==2.13.0", "stable-baselines3==2.9.2")
_CORE = ("gymnasium[box2d]", "msgspec", "numpy", "safetensors", "jaxtyping")
_STEPS, _ROUNDS = 100, 60


def bundle_of(env: gymnasium.Env, *, latent: int, width: int = 128) -> Bundle:
    """Build a bundle of the sizes that a run of an environment has, with random weights."""
    random, space = np.random.default_rng(0), env.action_space
    choices = (int(space.n),) if isinstance(space, gymnasium.spaces.Discrete) else ()
    seen = env.observation_space.shape
    assert seen is not None
    names = ["recognition", "start", "transition", "measurement"] if latent else []
    networks = {name: ("tanh", "identity") for name in names}
    networks |= dict.fromkeys(("policy", "bound"), ("tanh", "tanh", "identity"))
    box = space if isinstance(space, gymnasium.spaces.Box) else None
    about = Description(
        observation_names=tuple(f"observation {axis}" for axis in range(seen[0])),
        action_names=tuple(f"action {axis}" for axis in range(1 if box is None else box.shape[0])),
        low=(0.0,) if box is None else tuple(map(float, box.low)),
        high=tuple(n - 1.0 for n in choices) if box is None else tuple(map(float, box.high)),
        choices=choices,
        networks=networks,
        latent_size=latent,
        bound_error=0.0,
    )
    arrays = {
        "states.centre": np.zeros(about.state_size),
        "states.half_width": np.ones(about.state_size),
    }
    for name, size in (("observations", seen[0]), ("actions", about.encoded_size)):
        if latent:
            arrays |= {f"{name}.offset": np.zeros(size), f"{name}.scale": np.ones(size)}
    for name, (inputs, outputs) in about.sizes().items():
        sizes = [inputs, *[width] * (len(networks[name]) - 1), outputs]
        for index in range(len(sizes) - 1):
            shape = sizes[index + 1], sizes[index]
            arrays[f"{name}.{index}.weight"] = random.normal(size=shape) / shape[1] ** 0.5
            arrays[f"{name}.{index}.bias"] = np.zeros(shape[0])
    return Bundle(about, {name: array.astype(np.float32) for name, array in arrays.items()})


def time_steps(*envs: Any) -> list[np.ndarray]:
    """Time steps of environments in turns; return the microseconds of each step of each."""
    times: list[list[float]] = [[] for _ in envs]
    for turn in range(_ROUNDS):
        for env, taken in zip(envs, times, strict=True):
            env.reset(seed=turn)
            env.action_space.seed(turn)
            for _ in range(_STEPS):
                action = env.action_space.sample()
                begun = time.perf_counter_ns()
                over = env.step(action)[2:4]
                taken.append(1e-3 * (time.perf_counter_ns() - begun))
                if np.ndim(over[0]) == 0 and any(over):
                    env.reset()
    return [np.array(taken) for taken in times]


def overhead() -> None:
    """Print what the wrappers add to a step, as the difference of medians."""
    print(f"load {os.getloadavg()[0]:.1f}; microseconds per step, p50 (p99)")
    for name, latent in (("CartPole-v1", 8), ("Pendulum-v1", 8), ("Pendulum-v1", 0)):
        bundle = bundle_of(gymnasium.make(name), latent=latent)
        pairs: dict[int, tuple[Any, Any]] = {
            1: (gymnasium.make(name), EmpowermentReward(gymnasium.make(name), bundle))
        }
        for count in (8, 64):
            bare, inner = (
                gymnasium.make_vec(name, count, vectorization_mode="sync") for _ in range(2)
            )
            pairs[count] = (bare, VectorEmpowermentReward(inner, bundle))
        for count, pair in pairs.items():
            bare, paid = time_steps(*pair)
            added = np.median(paid) - np.median(bare)
            print(
                f"{name}, {'filter' if latent else 'no filter'}, {count:2d} at once: bare "
                f"{np.median(bare):6.1f} ({np.percentile(bare, 99):6.1f}), paid "
                f"{np.median(paid):6.1f} ({np.percentile(paid, 99):6.1f}), adds {added:5.1f}, "
                f"{added / count:5.1f} for each",
                flush=True,
            )


def python_with_sb3() -> str:
    """Return a Python that has Stable-Baselines3 and no JAX; install it where it is missing."""
    folder = _RESULTS / "venv"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        core = [f"{name}=={version(name.partition('[')[0])}" for name in _CORE]
        command = [python, "-m", "pip", "install", "--quiet", *_LEARNER, *core]
        subprocess.run(command, check=True)
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("overhead", "learn"))
    options, others = parser.parse_known_args()
    if options.part == "overhead":
        overhead()
        return
    paths = os.pathsep.join(map(str, (_ROOT / "src", _ROOT)))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [python_with_sb3(), "-m", "benchmarks.reward_learning", *others]
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
