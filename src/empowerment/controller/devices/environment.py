"""A Gymnasium environment as a device."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float


class EnvironmentDevice:
    """A Gymnasium environment as a device; writing an action makes a step.

    It is reset when an episode terminates; truncation is ignored.

    Args:
        environment: Environment with vector observations.
        seed: Seed of the first episode.
        restarted: Callback after each reset that follows a termination.
        convert: Converts an action to an element of a discrete action space; None if actions are
            vectors anyway.
    """

    def __init__(
        self,
        environment: Any,
        *,
        seed: int = 0,
        restarted: Callable[[], None] = lambda: None,
        convert: Callable[[np.ndarray], Any] | None = None,
    ):
        self._environment = environment
        self._restarted = restarted
        self._convert = convert
        self._seed = seed
        self.restart()

    def restart(self) -> None:
        """Restart the first episode."""
        self._observation = self._environment.reset(seed=self._seed)[0]
        self.num_episodes = 1

    def read(self) -> Float[np.ndarray, " observation"]:
        """Return the latest observation."""
        return np.asarray(self._observation, np.float32)

    def write(self, action: Float[np.ndarray, " action"]) -> None:
        """Make a step of the environment, and reset it upon termination."""
        converted = action if self._convert is None else self._convert(action)
        self._observation, _, terminated, _, _ = self._environment.step(converted)
        if terminated:
            self._observation = self._environment.reset()[0]
            self.num_episodes += 1
            self._restarted()
