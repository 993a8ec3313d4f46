"""Simulated hardware."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle


class EnvironmentDevice:
    """A Gymnasium environment as a device; writing an action makes a step.

    It is reset when an episode terminates; truncation is ignored.

    Args:
        environment: Environment with vector observations and actions.
        seed: Seed of the first episode.
        restarted: Callback after each reset that follows a termination.
    """

    def __init__(
        self, environment: Any, *, seed: int = 0, restarted: Callable[[], None] = lambda: None
    ):
        self._environment = environment
        self._restarted = restarted
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
        self._observation, _, terminated, _, _ = self._environment.step(action)
        if terminated:
            self._observation = self._environment.reset()[0]
            self.num_episodes += 1
            self._restarted()


def check_spaces(environment: Any, bundle: Bundle, name: str) -> None:
    """Refuse an environment with other observations or actions than the controller has."""
    found = environment.observation_space.shape, environment.action_space.shape
    wanted = (bundle.description.observation_size,), (bundle.description.action_size,)
    if found != wanted:
        raise ValueError(
            f"Expected {name} to have observations of shape {wanted[0]} and actions of shape "
            f"{wanted[1]}, as the run has; got {found[0]} and {found[1]}."
        )
