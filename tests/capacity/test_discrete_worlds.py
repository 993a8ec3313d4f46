"""Empowerment of grid worlds against breadth-first search and brute force."""

import itertools
import math

import numpy as np
import pytest

from empowerment.capacity import Stopped, discrete_empowerment
from empowerment.worlds import WORLDS, Grid

SMALL = Grid(". .|.\n  -\n. . #", slip=0.3)


def kernel_of(name: str) -> np.ndarray:
    world = WORLDS[name]()
    assert isinstance(world, Grid)
    return np.asarray(world.kernel)


def in_reach(kernel: np.ndarray, cell: int, steps: int) -> int:
    """Count the cells that some sequence of moves ends in, breadth first."""
    found = {cell}
    for _ in range(steps):
        found = {int(target) for place in found for target in kernel[place].argmax(axis=1)}
    return len(found)


def all_futures(kernel: np.ndarray, cell: int, steps: int) -> np.ndarray:
    """The distribution of the last cell after every sequence, one by one."""
    futures = []
    for moves in itertools.product(range(5), repeat=steps):
        where = np.eye(len(kernel))[cell]
        for move in moves:
            where = where @ kernel[:, move].astype(float)
        futures.append(where / where.sum())
    return np.array(futures)


def textbook(matrix: np.ndarray, gap: float = 1e-4) -> tuple[float, float]:
    """The plain iteration of Blahut (1972), and the bounds it ends with."""
    source = np.full(len(matrix), 1 / len(matrix))
    lower, upper = -math.inf, math.inf
    for _ in range(20_000):
        ratio = np.where(matrix > 0, matrix / np.maximum(source @ matrix, 1e-300), 1.0)
        divergence = (matrix * np.log(ratio)).sum(axis=1)
        lower, upper = float(source @ divergence), float(divergence.max())
        if upper - lower < gap:
            break
        source = source * np.exp(divergence)
        source /= source.sum()
    return lower, upper


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["room", "maze", "doorways"])
def test_sure_world_tells_the_cells_in_reach_apart(name: str, steps: int):
    kernel = kernel_of(name)
    for cell in range(len(kernel)):
        found = discrete_empowerment(kernel, cell, steps=steps)
        count = in_reach(kernel, cell, steps)
        assert found.value == found.lower == found.upper == math.log(count)
        np.testing.assert_allclose(found.source, np.full(count, 1 / count))
        assert found.stopped is Stopped.CONVERGED


@pytest.mark.parametrize("cell", [0, 22, 44])
@pytest.mark.parametrize("steps", [2, 3])
def test_slippery_world_against_every_sequence(cell: int, steps: int):
    kernel = kernel_of("slippery")
    lower, upper = textbook(all_futures(kernel, cell, steps))
    found = discrete_empowerment(kernel, cell, steps=steps)
    assert upper - lower <= 1e-4
    assert found.lower <= upper + 1e-9
    assert lower <= found.upper + 1e-9
    assert found.lower <= found.value <= found.upper <= found.lower + 1e-6
    assert found.value < math.log(in_reach(kernel_of("doorways"), cell, steps))


@pytest.mark.parametrize("steps", [1, 4])
def test_small_slippery_world_against_every_sequence(steps: int):
    kernel = np.asarray(SMALL.kernel)
    for cell in range(5):
        lower, upper = textbook(all_futures(kernel, cell, steps))
        found = discrete_empowerment(kernel, cell, steps=steps)
        assert found.lower <= upper + 1e-9
        assert lower <= found.upper + 1e-9


def test_world_that_only_slips_has_no_empowerment():
    kernel = np.asarray(Grid(". .|.\n  -\n. . #", slip=1.0).kernel)
    assert discrete_empowerment(kernel, 0, steps=3).value == pytest.approx(0, abs=1e-6)


def test_sequences_with_one_future_are_one_input():
    """Thousands of sequences of an open room come down to the cells they end in."""
    found = discrete_empowerment(kernel_of("room"), 44, steps=6)
    assert len(found.source) == in_reach(kernel_of("room"), 44, 6) < 5**6


@pytest.mark.parametrize("cell", [-1, 100])
def test_bad_cell_is_refused(cell: int):
    with pytest.raises(ValueError, match=f"Expected the cell to be from 0 to 99; got {cell}"):
        discrete_empowerment(kernel_of("room"), cell, steps=1)


@pytest.mark.parametrize("steps", [0, -3])
def test_bad_steps_are_refused(steps: int):
    with pytest.raises(ValueError, match=f"Expected steps to be at least 1; got {steps}"):
        discrete_empowerment(kernel_of("room"), 0, steps=steps)


def test_too_many_futures_are_refused_before_the_memory_is_full(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("empowerment.capacity.discrete._MAX_FUTURES", 20)
    with pytest.raises(ValueError, match=r"at most 20 distinct futures; got \d+. Take fewer steps"):
        discrete_empowerment(kernel_of("slippery"), 44, steps=3)
