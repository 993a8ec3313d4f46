"""What stands for hardware."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float


class EnvironmentDevice:
    """A Gymnasium environment as a device: it moves on when an action is written.

    It begins anew when an episode is over; that an episode has lasted long enough does not end it.

    Args:
        environment: With vectors for observations and actions.
        seed: Of its first episode.
        restarted: Called when it begins anew.
    """

    def __init__(
        self,
        environment: Any,
        *,
        seed: int = 0,
        restarted: Callable[[], None] = lambda: None,
    ):
        self._environment = environment
        self._restarted = restarted
        self._seed = seed
        self.restart()

    def restart(self) -> None:
        """Begin the first episode anew."""
        self._observation = self._environment.reset(seed=self._seed)[0]
        self.num_episodes = 1

    def read(self) -> Float[np.ndarray, " observation"]:
        """Give what was observed last."""
        return np.asarray(self._observation, np.float32)

    def write(self, action: Float[np.ndarray, " action"]) -> None:
        """Make a step of the environment."""
        self._observation, _, terminated, _, _ = self._environment.step(action)
        if terminated:
            self._observation = self._environment.reset()[0]
            self.num_episodes += 1
            self._restarted()
