"""A plain loop over a vector of environments, as in CleanRL, paid by empowerment alone.

    python examples/cleanrl_reward.py runs/cartpole

The argument is the source of the reward: a run folder or an export of one, such as

    empower train --env CartPole-v1 --out runs/cartpole

The learner is the cross-entropy method: every environment tries a linear policy of its own, and the
next ones are drawn around those that were paid best. It learns to keep the pole up, since a pole
that has fallen has no empowerment. NumPy and Gymnasium are all that it needs.
"""

import sys
from typing import Any

import gymnasium
import numpy as np

from empowerment.controller.reward import VectorEmpowermentReward


def learn(source: Any, iterations: int = 15, num_envs: int = 16, seed: int = 0) -> list[float]:
    """Learn a linear policy; return the mean length of the episodes of each iteration."""
    bare = gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="sync")
    envs = VectorEmpowermentReward(bare, source, extrinsic=0.0)
    random, history = np.random.default_rng(seed), []
    mean, scale = np.zeros(4), np.ones(4)
    for iteration in range(iterations):
        policies = mean + scale * random.normal(size=(num_envs, 4))
        observations, _ = envs.reset(seed=seed + iteration * num_envs)
        returns, lengths, runs = np.zeros(num_envs), np.zeros(num_envs), np.ones(num_envs, bool)
        while runs.any():
            actions = (np.sum(policies * observations, axis=1) > 0).astype(int)
            observations, rewards, terminated, truncated, _ = envs.step(actions)
            # Environments that are over are reset by the next step, for another episode.
            returns[runs] += rewards[runs]
            lengths[runs] += 1
            runs &= ~(terminated | truncated)
        best = policies[np.argsort(returns)[-num_envs // 4 :]]
        mean, scale = best.mean(axis=0), best.std(axis=0) + 0.1
        history.append(float(lengths.mean()))
    envs.close()
    return history


if __name__ == "__main__":
    for iteration, length in enumerate(learn(sys.argv[1])):
        print(f"iteration {iteration}: episodes of {length:.0f} steps")
