"""The balls for PettingZoo: an agent for each ball, all acting at once."""

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from empowerment.environments.balls import ACTION_SIZE, OPTIONS, BallsEnv, joint, per_ball
from empowerment.environments.canvas import Frame
from empowerment.environments.validation import finite_array


def make_parallel(*, max_cycles: int = 200, **parameters: Any) -> Any:
    """Make the balls as a `pettingzoo.ParallelEnv`, which needs the extra `pettingzoo`.

    The agents are `ball_0`, `ball_1` and so on. Each has the observations, actions and
    zero reward of `BallsEnv`, and is informed of its own `wall_touch` and `wall_distance`.
    Options of a reset that are unknown are ignored, as PettingZoo asks for.

    Args:
        max_cycles: After how many steps an episode is truncated.
        **parameters: Given to `BallsEnv`.

    Returns:
        The environment.
    """
    try:
        from pettingzoo import ParallelEnv  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "Expected PettingZoo to be installed; install `empowerment[pettingzoo]`."
        ) from error

    class ParallelBalls(ParallelEnv):
        """A view of the joint environment: what it does is done there."""

        metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's own way)
            **BallsEnv.metadata,
            "name": "balls_v0",
        }

        def __init__(self, env: BallsEnv, max_cycles: int):
            self.env, self.max_cycles, self.render_mode = env, max_cycles, env.render_mode
            self.possible_agents = [f"ball_{number}" for number in range(env.num_balls)]
            self.agents: list[str] = []
            # A space for each, for each can be seeded.
            self.observation_spaces = {
                agent: copy.deepcopy(env.single_observation_space) for agent in self.possible_agents
            }
            self.action_spaces = {
                agent: copy.deepcopy(env.single_action_space) for agent in self.possible_agents
            }
            self._cycle = 0

        def observation_space(self, agent: str) -> gymnasium.Space[Any]:
            return self.observation_spaces[agent]

        def action_space(self, agent: str) -> gymnasium.Space[Any]:
            return self.action_spaces[agent]

        def reset(
            self, seed: int | None = None, options: Mapping[str, Any] | None = None
        ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
            known = {name: options[name] for name in OPTIONS if name in options} if options else {}
            observation, info = self.env.reset(seed=seed, options=known)
            self.agents, self._cycle = list(self.possible_agents), 0
            return self._share(observation), self._inform(info)

        def step(
            self, actions: Mapping[str, Any]
        ) -> tuple[
            dict[str, np.ndarray],
            dict[str, float],
            dict[str, bool],
            dict[str, bool],
            dict[str, dict[str, Any]],
        ]:
            if set(actions) != set(self.agents) or not self.agents:
                raise ValueError(
                    f"Expected actions to be one for each of {self.agents}; got {list(actions)}. "
                    "After the end of an episode, call `reset`."
                )
            forces = [
                finite_array(f"the action of {agent}", actions[agent], (ACTION_SIZE,), np.float32)
                for agent in self.agents
            ]
            observation, _, _, _, info = self.env.step(joint(np.stack(forces)))
            self._cycle += 1
            everyone, is_over = self.agents, self._cycle >= self.max_cycles
            if is_over:
                self.agents = []
            return (
                self._share(observation),
                dict.fromkeys(everyone, 0.0),
                dict.fromkeys(everyone, False),
                dict.fromkeys(everyone, is_over),
                self._inform(info),
            )

        def render(self) -> Frame | None:
            return self.env.render()

        def close(self) -> None:
            self.env.close()

        def state(self) -> np.ndarray:
            return self.env.state

        def _share(self, observation: np.ndarray) -> dict[str, np.ndarray]:
            each = per_ball(observation, self.env.num_balls)
            return dict(zip(self.possible_agents, each, strict=True))

        def _inform(self, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
            each = zip(info["wall_touches"].tolist(), info["wall_distances"].tolist(), strict=True)
            return {
                agent: {"wall_touch": touch, "wall_distance": distance}
                for agent, (touch, distance) in zip(self.possible_agents, each, strict=True)
            }

    return ParallelBalls(BallsEnv(**parameters), max_cycles)
