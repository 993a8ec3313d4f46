"""Grid environments against their worlds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from empowerment.environments import GridEnv
from empowerment.environments.canvas import INK
from empowerment.worlds import MOVES, Grid

Make = Callable[..., Any]


@pytest.mark.parametrize("name", ["room", "maze", "doorways"])
def test_sure_environment_steps_as_its_world_does(make: Make, name: str):
    env = make(name)
    cell = env.reset(seed=0)[0]
    env.action_space.seed(0)
    kernel = np.asarray(env.world.kernel)
    visited = set()
    for _ in range(200):
        move = env.action_space.sample()
        cell, expected = env.step(move)[0], int(kernel[cell, move].argmax())
        assert cell == expected == env.state
        assert type(cell) is int
        visited.add(cell)
    assert len(visited) > 10


@pytest.mark.statistical  # six outcomes at four standard errors: 4e-4 in all
@pytest.mark.parametrize("cell", [0, 44])
def test_slippery_environment_has_the_frequencies_of_its_kernel(make: Make, cell: int):
    env, move, num_samples = make("slippery"), list(MOVES).index("east"), 5000
    env.reset(seed=1)
    counts = np.zeros(100)
    for _ in range(num_samples):
        env.reset(options={"state": cell})
        counts[env.step(move)[0]] += 1
    expected = np.asarray(env.world.kernel)[cell, move].astype(float)
    error = np.sqrt(expected * (1 - expected) / num_samples)
    assert (counts[expected == 0] == 0).all()
    assert (np.abs(counts / num_samples - expected) <= 4 * error + 1e-7).all()


@pytest.mark.statistical  # chi-squared with 99 degrees of freedom: 1e-4 beyond 160
def test_episodes_start_anywhere(make: Make):
    env = make("room")
    env.reset(seed=0)
    counts = np.bincount([env.reset()[0] for _ in range(5000)], minlength=100)
    assert ((counts - 50) ** 2 / 50).sum() < 160


@pytest.mark.parametrize("bad", [-1, 5, 1.0, "north", None, [1], True, np.array([1, 2])])
def test_bad_moves_are_refused(make: Make, bad: Any):
    env = make("maze")
    before = env.reset(seed=0)[0]
    sentence = "^Expected the action to be a whole number from 0 to 4; got "
    with pytest.raises(ValueError, match=sentence):
        env.step(bad)
    assert env.state == before


@pytest.mark.parametrize("move", [2, np.int64(2), np.array(2), np.uint8(2)])
def test_whole_numbers_of_any_kind_are_moves(make: Make, move: Any):
    env = make("room")
    env.reset(options={"state": 0})
    assert env.step(move)[0] == 1


@pytest.mark.parametrize("bad", [-1, 100, 0.5, [3, 4]])
def test_bad_start_cells_are_refused(make: Make, bad: Any):
    sentence = "^Expected the start state to be a whole number from 0 to 99; got "
    with pytest.raises(ValueError, match=sentence):
        make("maze").reset(options={"state": bad})


def dark(frame: np.ndarray | None) -> int:
    """Count the pixels that have the colour of walls."""
    assert frame is not None
    wall = np.rint(255 * np.array(INK))
    return int((np.abs(frame - wall) < 2).all(axis=2).sum())


def test_walls_and_filled_cells_are_drawn():
    darkness = []
    for drawing in (". .\n\n. .", ". .|\n\n. .", ". .\n-\n. .", ". #\n\n. ."):
        env = GridEnv(Grid(drawing, slip=0.5), render_mode="rgb_array")
        env.reset(options={"state": 0})
        darkness.append(dark(env.render()))
    plain, edge, wall, filled = darkness
    assert plain == edge  # a wall at the edge is there anyway
    assert plain < wall < filled


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (7, 2), (1, 30), (60, 3)])
def test_grids_of_any_size_can_be_drawn(columns: int, rows: int):
    drawing = "\n\n".join([" ".join("." * columns)] * rows)
    env = GridEnv(Grid(drawing), render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame is not None
    assert frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert (frame.shape[0] < frame.shape[1]) == (rows < columns)
