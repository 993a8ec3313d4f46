"""A small environment with every kind of action and both kinds of end, and bundles for it."""

import copy
from typing import Any

import gymnasium
import numpy as np
from controllers_for_tests import discrete_bundle, filter_bundle, with_bound
from gymnasium import spaces

from empowerment.controller import Bundle

ACTIONS: dict[str, spaces.Space] = {
    "continuous": spaces.Box(np.array([-2.0, 0.5], np.float32), np.array([1.0, 3.5], np.float32)),
    "discrete": spaces.Discrete(3, start=5),
    "observed": spaces.MultiDiscrete([3, 2]),
    "binary": spaces.MultiBinary(2),
}


class Corridor(gymnasium.Env):
    """A walk that terminates at an end of the corridor, and is truncated after a while.

    Args:
        kind: Kind of its actions.
        limit: Number of steps after which an episode is truncated.
    """

    observation_space = spaces.Box(-4.0, 4.0, (3,), np.float32)

    def __init__(self, kind: str = "continuous", limit: int = 12):
        self.action_space = copy.deepcopy(ACTIONS[kind])  # It has a generator.
        self.limit = limit
        self.place, self.time = np.zeros(3), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.time = self.np_random.normal(0.0, 0.3, 3), 0
        return self._seen(), {"place": float(self.place[0])}

    def step(self, action: Any) -> Any:
        start = np.ravel(getattr(self.action_space, "start", 0))
        push = np.ravel(action).astype(float) - start
        self.place = self.place + self.np_random.normal(0.0, 0.6, 3)
        self.place[: push.size] += 0.2 * push
        self.time += 1
        terminated = bool(abs(self.place[0]) > 2.0)
        truncated = self.time >= self.limit and not terminated
        reward = float(-abs(self.place[1])) if self.time % 2 else -0.0
        return self._seen(), reward, terminated, truncated, {"place": float(self.place[0])}

    def _seen(self) -> np.ndarray:
        return np.clip(self.place, -4.0, 4.0).astype(np.float32)


def bundle_for(kind: str) -> Bundle:
    """A bundle for a corridor: with a filter, but for the kind that observes its state."""
    if kind == "observed":
        return with_bound(discrete_bundle((3, 2), seen=3))
    if kind == "continuous":
        return with_bound(filter_bundle(seen=3))
    choices = {"discrete": (3,), "binary": (2, 2)}[kind]
    return with_bound(discrete_bundle(choices, seen=3, latent=4))
