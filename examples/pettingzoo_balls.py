"""The balls in a box as a PettingZoo environment: one agent per ball, all acting at once.

All agents act at random, and the script prints how often each of them touches a wall.

    pip install '.[box2d,pettingzoo]'
    python examples/pettingzoo_balls.py
"""

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv

from empowerment.environments import BallsEnv, joint, per_ball


class ParallelBalls(ParallelEnv):
    """PettingZoo view of `BallsEnv`, with the agents `ball_0`, `ball_1` and so on.

    Each agent has the observations, actions and zero reward of `BallsEnv`; its info has its own
    `wall_touch` and `wall_distance`. Unknown options of `reset` are ignored, as PettingZoo
    requires.

    Args:
        max_cycles: The number of steps after which an episode is truncated.
        **parameters: Passed to `BallsEnv`.
    """

    metadata: dict[str, Any] = {**BallsEnv.metadata, "name": "balls_v0"}  # noqa: RUF012 (PettingZoo's convention)

    def __init__(self, *, max_cycles: int = 200, **parameters: Any):
        self.env, self.max_cycles = BallsEnv(**parameters), max_cycles
        self.render_mode = self.env.render_mode
        self.possible_agents = [f"ball_{number}" for number in range(self.env.num_balls)]
        self.agents: list[str] = []
        # One copy per agent, since spaces are seeded independently.
        self.observation_spaces = {
            agent: copy.deepcopy(self.env.single_observation_space)
            for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: copy.deepcopy(self.env.single_action_space) for agent in self.possible_agents
        }
        self._cycle = 0

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return the observation space of an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return the action space of an agent."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Start an episode; the options are those of `BallsEnv.reset`."""
        known = {k: v for k, v in (options or {}).items() if k in ("positions", "velocities")}
        observation, info = self.env.reset(seed=seed, options=known)
        self.agents, self._cycle = list(self.possible_agents), 0
        return self._split(observation), self._infos(info)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, np.ndarray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Apply the forces of all agents for one step."""
        agents = self.agents
        if set(actions) != set(agents) or not agents:
            raise ValueError(
                f"Expected actions to be one for each of {agents}; got {list(actions)}. After the "
                "end of an episode, call `reset`."
            )
        forces = joint(np.stack([actions[agent] for agent in agents]))
        observation, _, _, _, info = self.env.step(forces)
        self._cycle += 1
        is_over = self._cycle >= self.max_cycles
        self.agents = [] if is_over else agents
        return (
            self._split(observation),
            dict.fromkeys(agents, 0.0),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, is_over),
            self._infos(info),
        )

    def render(self) -> np.ndarray | None:
        """Draw the balls."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def state(self) -> np.ndarray:
        """Return the two positions and two velocities of each ball."""
        return self.env.state

    def _split(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        observations = per_ball(observation, self.env.num_balls)
        return dict(zip(self.possible_agents, observations, strict=True))

    def _infos(self, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        touches, distances = info["wall_touches"].tolist(), info["wall_distances"].tolist()
        return {
            agent: {"wall_touch": touch, "wall_distance": distance}
            for agent, touch, distance in zip(self.possible_agents, touches, distances, strict=True)
        }


if __name__ == "__main__":
    env = ParallelBalls(max_cycles=200)
    env.reset(seed=0)
    for number, space in enumerate(env.action_spaces.values()):
        space.seed(number)
    touches = dict.fromkeys(env.possible_agents, 0)
    while env.agents:
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        *_, infos = env.step(actions)
        for agent, info in infos.items():
            touches[agent] += info["wall_touch"]
    for agent, count in touches.items():
        print(f"{agent} touches a wall in {count} of {env.max_cycles} steps of random forces.")
