"""Action repeat, and environments by id with it."""

from dataclasses import dataclass
from typing import Any

import gymnasium


class ActionRepeat(gymnasium.Wrapper):
    """Wrapper that repeats every action; the end of an episode cuts the repetition short.

    Args:
        env: The environment.
        count: The number of steps for which an action is repeated.

    Attributes:
        count: The number of steps for which an action is repeated.
    """

    def __init__(self, env: gymnasium.Env, count: int):
        if count < 1:
            raise ValueError(f"Expected an action to be held for one step or more; got {count}.")
        super().__init__(env)
        self.count = count

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Repeat an action; the reward is the sum over the repetitions."""
        total = 0.0
        for left in reversed(range(self.count)):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated or not left:
                return observation, total, terminated, truncated, info
        raise AssertionError


def action_repeat_of(environment: gymnasium.Env) -> int:
    """Return for how many steps an environment repeats an action, by all of its wrappers."""
    count = 1
    while isinstance(environment, gymnasium.Wrapper):
        count *= environment.count if isinstance(environment, ActionRepeat) else 1
        environment = environment.env
    return count


@dataclass(frozen=True)
class EnvFactory:
    """Factory of an environment with action repeat.

    Attributes:
        id: Gymnasium id, or `module:ID`.
        count: The number of steps for which an action is repeated.
    """

    id: str
    count: int = 1

    def __call__(self, **options: Any) -> gymnasium.Env:
        """Make the environment.

        Args:
            **options: Passed to `gymnasium.make`.
        """
        environment = gymnasium.make(self.id, disable_env_checker=True, **options)
        return environment if self.count == 1 else ActionRepeat(environment, self.count)

    def visible(self) -> gymnasium.Env:
        """Make the environment so that it renders frames, or as it is if it cannot."""
        try:
            return self(render_mode="rgb_array")
        except (TypeError, ValueError, gymnasium.error.Error):
            return self()
