"""Grid worlds as Gymnasium environments."""

import itertools
from collections.abc import Mapping
from typing import Any, final

import gymnasium
import numpy as np
from jaxtyping import Float

from empowerment.environments import painters
from empowerment.environments.canvas import Frame
from empowerment.environments.validation import check_render_mode, given_start
from empowerment.worlds import MOVES, Grid


@final
class GridEnv(gymnasium.Env[int, int]):
    """A grid world as a Gymnasium environment: five moves, and the cell is seen.

    There is no reward and no end: the reward is always zero, `terminated` always false.
    Observations count along `world.cells`, actions along `MOVES`.

    Args:
        world: Any grid.
        frames_per_second: How fast to play the frames.
        render_mode: `"rgb_array"`, or None for no painters.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own way)

    action_space: gymnasium.spaces.Discrete
    observation_space: gymnasium.spaces.Discrete

    def __init__(self, world: Grid, *, frames_per_second: int = 10, render_mode: str | None = None):
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.world = world
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": frames_per_second}
        self.observation_space = gymnasium.spaces.Discrete(len(world.cells))
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        # In double precision and NumPy: a step costs microseconds and no compilation.
        self._kernel = np.asarray(world.kernel, np.float64)
        self._initial = np.asarray(world.initial().probabilities, np.float64)
        self._walls = _walls(world.cells, self._kernel)
        self._state: int | None = None

    @property
    def state(self) -> int:
        """The cell the agent is in, by its index."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded(
                "Expected the environment to be reset before it is used; call `reset`."
            )
        return self._state

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start anew, in any cell or in a given one.

        Args:
            seed: For the slips from here on.
            options: May have a `"state"`, the index of the cell to start in.

        Returns:
            The first cell, and no further information.
        """
        super().reset(seed=seed)
        given = given_start(options)
        if given is None:
            self._state = self._draw(self._initial)
        else:
            self._state = _index("the start state", given, self.observation_space)
        return self._state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move once; the reward is zero and nothing ever ends.

        Args:
            action: The index of a move.

        Returns:
            Gymnasium's five: observation, reward, terminated, truncated, information.
        """
        move = _index("the action", action, self.action_space)
        self._state = self._draw(self._kernel[self.state, move])
        return self._state, 0.0, False, False, {}

    def render(self) -> Frame | None:
        """Draw the grid and where the agent is."""
        if self.render_mode is None:
            gymnasium.logger.warn("No render mode: make it with render_mode='rgb_array'.")
            return None
        cells = self.world.cells
        return painters.grid(cells[self.state], cells=cells, walls=self._walls)

    def _draw(self, probabilities: Float[np.ndarray, " cells"]) -> int:
        """Draw a cell: the first whose cumulative probability is above a uniform number."""
        cumulative = np.cumsum(probabilities)
        threshold = self.np_random.random() * cumulative[-1]  # rounding: not quite one
        return int(np.searchsorted(cumulative, threshold, side="right"))


def _index(what: str, value: Any, space: gymnasium.spaces.Discrete) -> int:
    """Read an index that came from outside."""
    if isinstance(value, bool) or not space.contains(value):
        raise ValueError(
            f"Expected {what} to be a whole number from 0 to {space.n - 1}; got {value!r}."
        )
    return int(value)


def _walls(
    cells: tuple[tuple[int, int], ...], kernel: Float[np.ndarray, "cells moves cells"]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Find the neighbours that no move joins."""
    index = {cell: number for number, cell in enumerate(cells)}
    joined = kernel.max(axis=1) > 0
    return [
        (cell, (cell[0] + dx, cell[1] + dy))
        for cell, (dx, dy) in itertools.product(cells, ((1, 0), (0, 1)))
        if (cell[0] + dx, cell[1] + dy) in index
        and not joined[index[cell], index[cell[0] + dx, cell[1] + dy]]
    ]
