"""PPO of Stable-Baselines3 swings a pendulum up, paid by empowerment instead of its own reward.

    pip install stable-baselines3
    python examples/sb3_reward.py pendulum.npz --steps 100000

The first argument is the source of the reward: a run folder or an export of one, such as

    empower train pendulum --out runs/pendulum
    empower export runs/pendulum --format npz --with-empowerment --out pendulum.npz

JAX need not be installed here.
"""

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TransformObservation, TransformReward

from empowerment.controller.reward import EmpowermentReward

TYPICAL = 3.0
"""Nats, about what a hanging pendulum has; see `make`."""

HELD = 100
"""The last steps of an episode of 200, which are 5 s."""


def make(source: Any) -> gymnasium.Env:
    """Make Gymnasium's pendulum with empowerment as its only reward.

    The source observes angle and velocity, the learner cosine, sine and velocity: the wrapper that
    pays is between one that converts and one that converts back. Episodes never terminate, so that
    a constant in the reward changes nothing but what the value function has to learn: it is taken
    away, and what remains is scaled to the order of the pendulum's own reward.
    """
    env = gymnasium.make("Pendulum-v1")
    high = np.array([np.pi, 8.0], np.float32)
    angle = TransformObservation(
        env,
        lambda seen: np.array([np.arctan2(seen[1], seen[0]), seen[2]], np.float32),
        gymnasium.spaces.Box(-high, high),
    )
    paid = EmpowermentReward(angle, source, extrinsic=0.0)
    return TransformObservation(
        TransformReward(paid, lambda reward: 10.0 * (reward - TYPICAL)),
        lambda seen: np.array([np.cos(seen[0]), np.sin(seen[0]), seen[1]], np.float32),
        env.observation_space,
    )


def train(source: Any, steps: int, seed: int = 0, num_envs: int = 4) -> Any:
    """Train PPO, with settings that are usual for this pendulum."""
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.env_util import (  # pyright: ignore[reportMissingImports]
        make_vec_env,
    )

    model = PPO(
        "MlpPolicy",
        make_vec_env(lambda: make(source), n_envs=num_envs, seed=seed),
        n_steps=1024,
        learning_rate=1e-3,
        gamma=0.95,
        use_sde=True,
        sde_sample_freq=4,
        seed=seed,
        device="cpu",
    )
    return model.learn(steps)


def upright(model: Any, episodes: int = 20) -> float:
    """Return which share of the last 5 s of episodes the pendulum is upright, from any start."""
    env, shares = gymnasium.make("Pendulum-v1"), []
    for seed in range(episodes):
        observation, _ = env.reset(seed=1000 + seed)
        cosines, is_over = [], False
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, _, is_over, _ = env.step(action)
            cosines.append(observation[0])
        shares.append(np.mean(np.array(cosines[-HELD:]) > 0.95))
    return float(np.mean(shares))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"Upright in {upright(train(options.source, options.steps, options.seed)):.0%}.")
