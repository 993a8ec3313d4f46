"""An environment by its name, with actions that are held."""

from dataclasses import dataclass
from typing import Any

import gymnasium


class ActionRepeat(gymnasium.Wrapper):
    """Hold every action for some steps; an end cuts them short.

    Args:
        env: The environment.
        count: For how many steps an action is held.

    Attributes:
        count: As given.
    """

    def __init__(self, env: gymnasium.Env, count: int):
        if count < 1:
            raise ValueError(f"Expected an action to be held for one step or more; got {count}.")
        super().__init__(env)
        self.count = count

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act for as many steps; rewards add up."""
        total = 0.0
        for left in reversed(range(self.count)):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated or not left:
                return observation, total, terminated, truncated, info
        raise AssertionError


def action_repeat_of(environment: gymnasium.Env) -> int:
    """Give for how many steps an environment holds an action."""
    return environment.count if isinstance(environment, ActionRepeat) else 1


@dataclass(frozen=True)
class EnvFactory:
    """Makes an environment by its id, with actions held.

    Attributes:
        id: Gymnasium's, or `module:ID`.
        count: For how many steps an action is held.
    """

    id: str
    count: int = 1

    def __call__(self, **options: Any) -> gymnasium.Env:
        """Make the environment.

        Args:
            **options: Given to `gymnasium.make`.
        """
        made = gymnasium.make(self.id, disable_env_checker=True, **options)
        return made if self.count == 1 else ActionRepeat(made, self.count)
