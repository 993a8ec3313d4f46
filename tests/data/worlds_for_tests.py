"""Small environments whose observations tell the episode and the time, and that misbehave."""

import os
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box


class Counting(gymnasium.Env[np.ndarray, np.ndarray]):
    """Show (what the episode is called, time, the sum of its actions); end at various lengths.

    An action is paid the sum of its numbers.

    The name of an episode is a draw of its seed, so that no two are called the same.
    """

    def __init__(self, *, dies_if: float = 0.0, hangs_if: float = 0.0, fails_if: float = 0.0):
        self.observation_space = Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = Box(np.array([-1.0, 0.1]), np.array([1.0, 0.2]), dtype=np.float64)
        self._odds = np.cumsum([dies_if, hangs_if, fails_if])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.name = int(self.np_random.integers(1, 2**20))
        self.length = int(self.np_random.integers(2, 7))
        self.fate = self.np_random.random()
        self.is_truncated = self.np_random.random() < 0.5
        self.time, self.sum = 0, 0.0
        return self._observation(), {}

    def step(self, action: np.ndarray):
        assert action in self.action_space
        dies, hangs, fails = self._odds
        if self.time == 1 and self.fate < fails:
            if self.fate < dies:
                os._exit(7)
            elif self.fate < hangs:
                time.sleep(600)
            raise ArithmeticError("the world is\nbroken")
        self.time, self.sum = self.time + 1, self.sum + float(action.sum())
        is_over = self.time >= self.length
        return (
            self._observation(),
            float(action.sum()),
            is_over and not self.is_truncated,
            is_over and self.is_truncated,
            {},
        )

    def _observation(self) -> np.ndarray:
        return np.array([self.name, self.time, self.sum], np.float32)


class Slow(Counting):
    """Take its time."""

    def step(self, action: np.ndarray):
        time.sleep(0.02)
        return super().step(action)


class NoWordsError(Exception):
    """Can be neither pickled nor described."""

    def __init__(self):
        super().__init__()
        self.cause = lambda: None

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Raising(Counting):
    """Raise in turn what a worker could take for something else than an error."""

    errors = (KeyboardInterrupt, SystemExit, NoWordsError)

    def step(self, action: np.ndarray):
        raise self.errors[self.name % 3]


class Unclosable(Counting):
    """Raise on closing."""

    def close(self) -> None:
        raise OSError("the window is\ngone")


gymnasium.register("Counting-v0", "worlds_for_tests:Counting")
gymnasium.register("Deadly-v0", "worlds_for_tests:Counting", kwargs={"dies_if": 1.0})
