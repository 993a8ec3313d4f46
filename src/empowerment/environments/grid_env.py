"""Grid worlds as Gymnasium environments."""

import itertools
from collections.abc import Mapping
from typing import Any, final

import gymnasium
import numpy as np
from jaxtyping import Float

from empowerment.environments import painters
from empowerment.environments.canvas import Frame
from empowerment.environments.validation import check_render_mode, start_state
from empowerment.worlds import MOVES, Grid


@final
class GridEnv(gymnasium.Env[int, int]):
    """A grid world as a Gymnasium environment with five moves; the cell is observed.

    Observations index `world.cells`, actions index `MOVES`. The reward is always zero and
    `terminated` always false.

    Args:
        world: The grid.
        frames_per_second: The frame rate of videos.
        render_mode: `"rgb_array"`, or None for no rendering.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's convention)

    action_space: gymnasium.spaces.Discrete
    observation_space: gymnasium.spaces.Discrete

    def __init__(self, world: Grid, *, frames_per_second: int = 10, render_mode: str | None = None):
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.world = world
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": frames_per_second}
        self.observation_space = gymnasium.spaces.Discrete(len(world.cells))
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        # In NumPy and double precision: a step takes microseconds and no compilation.
        self._kernel = np.asarray(world.kernel, np.float64)
        self._initial = np.asarray(world.initial().probabilities, np.float64)
        self._walls = _walls(world.cells, self._kernel)
        self._state: int | None = None

    @property
    def state(self) -> int:
        """The index of the cell of the agent."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded(
                "Expected the environment to be reset before it is used; call `reset`."
            )
        return self._state

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode in a random or given cell.

        Args:
            seed: Random seed of the starts and slips from here on.
            options: The `"state"` is the index of the initial cell, if given.

        Returns:
            The initial cell, and an empty info.
        """
        super().reset(seed=seed)
        start = start_state(options)
        if start is None:
            self._state = self._draw(self._initial)
        else:
            self._state = _index("the start state", start, self.observation_space)
        return self._state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move once.

        Args:
            action: The index of a move.

        Returns:
            Observation, reward, terminated, truncated and info.
        """
        move = _index("the action", action, self.action_space)
        self._state = self._draw(self._kernel[self.state, move])
        return self._state, 0.0, False, False, {}

    def render(self) -> Frame | None:
        """Draw the grid and the agent."""
        if self.render_mode is None:
            gymnasium.logger.warn("No render mode: make it with render_mode='rgb_array'.")
            return None
        cells = self.world.cells
        return painters.grid(cells[self.state], cells=cells, walls=self._walls)

    def _draw(self, probabilities: Float[np.ndarray, " cells"]) -> int:
        """Sample a cell by inverting the cumulative distribution."""
        cumulative = np.cumsum(probabilities)
        threshold = self.np_random.random() * cumulative[-1]  # not exactly one, by rounding
        return int(np.searchsorted(cumulative, threshold, side="right"))


def _index(what: str, value: Any, space: gymnasium.spaces.Discrete) -> int:
    if isinstance(value, bool) or not space.contains(value):
        raise ValueError(
            f"Expected {what} to be a whole number from 0 to {space.n - 1}; got {value!r}."
        )
    return int(value)


def _walls(
    cells: tuple[tuple[int, int], ...], kernel: Float[np.ndarray, "cells moves cells"]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Find the pairs of neighbours without a move between them."""
    index = {cell: number for number, cell in enumerate(cells)}
    joined = kernel.max(axis=1) > 0
    return [
        (cell, (cell[0] + dx, cell[1] + dy))
        for cell, (dx, dy) in itertools.product(cells, ((1, 0), (0, 1)))
        if (cell[0] + dx, cell[1] + dy) in index
        and not joined[index[cell], index[cell[0] + dx, cell[1] + dy]]
    ]
