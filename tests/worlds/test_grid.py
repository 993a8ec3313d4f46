"""Grids: how drawings are read, and what the walls in them do."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.worlds import DOORWAYS, MAZE, MOVES, ROOM, Grid

SMALL = ". .|.\n  -\n. . #"
GRIDS = {"small": SMALL, "room": ROOM, "maze": MAZE, "doorways": DOORWAYS}
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}


def targets(grid: Grid) -> list[list[int]]:
    """The cell that each move leads to from each cell, where nothing slips."""
    return np.asarray(grid.kernel).argmax(axis=2).tolist()


def reachable(steps: list[list[int]], start: int, num_moves: int) -> set[int]:
    """The cells that some plan of a length ends in, breadth first."""
    found = {start}
    for _ in range(num_moves):
        found = {target for cell in found for target in steps[cell]}
    return found


def test_cells_are_counted_from_the_lower_left():
    assert Grid(SMALL).cells == ((0, 0), (1, 0), (0, 1), (1, 1), (2, 1))


def test_walls_and_filled_cells_stop_a_move():
    grid = Grid(SMALL)
    index, steps = {cell: i for i, cell in enumerate(grid.cells)}, targets(grid)

    def go(cell: tuple[int, int], move: str) -> tuple[int, int]:
        return grid.cells[steps[index[cell]][list(MOVES).index(move)]]

    assert go((0, 1), "east") == (1, 1)
    assert go((1, 1), "east") == (1, 1)  # the wall |
    assert go((2, 1), "west") == (2, 1)  # from the other side
    assert go((1, 1), "south") == (1, 1)  # the wall -
    assert go((0, 0), "north") == (0, 1)
    assert go((1, 0), "east") == (1, 0)  # a filled cell
    assert go((2, 1), "south") == (2, 1)
    assert go((0, 0), "west") == (0, 0)  # the edge
    assert go((0, 0), "stay") == (0, 0)


@pytest.mark.parametrize(
    ("drawing", "mark", "line", "column"),
    [
        (". x", "x", 1, 3),
        (". .\n\n. o", "o", 3, 3),
        (". .x", "x", 1, 4),  # past the last cell
        (".-.", "-", 1, 2),  # the wrong wall between two cells
        (". .\n| -", "|", 2, 1),  # the wrong wall between two rows
        (". .\n -", "-", 2, 2),  # a wall between nothing
        (". .\n#", "#", 2, 1),
        ("\n. .\n\n. x", "x", 4, 3),  # lines are counted as they were given
        (".\t.", r"\\t", 1, 2),
    ],
)
def test_bad_marks_are_refused_with_their_place(drawing: str, mark: str, line: int, column: int):
    mark = mark.replace("|", r"\|")
    sentence = f"got '{mark}' in line {line}, column {column}\\."
    with pytest.raises(ValueError, match=f"Expected a drawing of .*; {sentence}"):
        Grid(drawing)


@pytest.mark.parametrize("drawing", ["", "\n", "#", "# #\n\n#"])
def test_drawing_without_cells_is_refused(drawing: str):
    with pytest.raises(ValueError, match=r"at least one cell '\.'; got none"):
        Grid(drawing)


@pytest.mark.parametrize("slip", [-0.1, 1.1, float("nan")])
def test_slip_must_be_a_probability(slip: float):
    with pytest.raises(ValueError, match=f"slip to be a probability; got {slip}"):
        Grid(SMALL, slip=slip)


def test_trailing_space_and_walls_at_the_edge_change_nothing():
    assert Grid(". . \n\n. .|").cells == Grid(". .\n\n. .").cells


@pytest.mark.parametrize("slip", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("name", GRIDS)
def test_kernel_is_a_distribution(name: str, slip: float):
    kernel = np.asarray(Grid(GRIDS[name], slip=slip).kernel)
    assert (kernel >= 0).all()
    np.testing.assert_allclose(kernel.sum(axis=2), 1, rtol=1e-6)


@pytest.mark.parametrize("name", GRIDS)
def test_every_move_can_be_undone(name: str):
    """A wall that stops a move stops its opposite, so what moved can move back."""
    steps, moves = targets(Grid(GRIDS[name])), list(MOVES)
    for cell, row in enumerate(steps):
        for move, target in zip(moves, row, strict=True):
            if target != cell:
                assert steps[target][moves.index(OPPOSITE[move])] == cell


@pytest.mark.parametrize("name", ["room", "maze", "doorways"])
def test_every_cell_can_be_reached_from_every_other(name: str):
    steps = targets(Grid(GRIDS[name]))
    assert {len(reachable(steps, cell, 100)) for cell in range(100)} == {100}


def test_doorways_are_the_only_ways_between_rooms():
    grid = Grid(DOORWAYS)
    crossings = {
        (grid.cells[cell], grid.cells[target])
        for cell, row in enumerate(targets(grid))
        for target in row
        if (grid.cells[cell][0] < 5) != (grid.cells[target][0] < 5)
        or (grid.cells[cell][1] < 5) != (grid.cells[target][1] < 5)
    }
    assert len(crossings) == 8  # four doorways, both ways


@pytest.mark.parametrize(
    ("num_moves", "least", "greatest"),
    [(1, 1.00, 2.32), (2, 1.58, 3.70), (5, 3.46, 5.52), (10, None, 6.41)],
)
def test_maze_has_the_published_extremes(num_moves: int, least: float | None, greatest: float):
    """Klyubin, Polani and Nehaniv (2005), in bits: log2 of the reachable cells."""
    steps = targets(Grid(MAZE))
    bits = [math.log2(len(reachable(steps, cell, num_moves))) for cell in range(100)]
    assert round(max(bits), 2) == greatest
    if least is not None:
        assert round(min(bits), 2) == least


def test_slip_mixes_in_all_moves():
    sure, slippery = (np.asarray(Grid(SMALL, slip).kernel) for slip in (0.0, 0.25))
    cell, move = 2, list(MOVES).index("east")
    expected = 0.75 * sure[cell, move] + 0.25 * sure[cell].mean(axis=0)
    np.testing.assert_allclose(slippery[cell, move], expected, rtol=1e-6)
    assert slippery[cell, move].max() == pytest.approx(0.75 + 0.25 / 5)


def test_transition_and_emission_are_rows_and_compile():
    grid = Grid(SMALL, slip=0.3)
    cell, move = jnp.array(3), jnp.array(4)
    after = eqx.filter_jit(grid.transition)(cell, move).probabilities
    np.testing.assert_array_equal(after, grid.kernel[3, 4])
    np.testing.assert_array_equal(grid.emission(cell).probabilities, np.eye(5)[3])
    np.testing.assert_allclose(grid.initial().probabilities, [0.2] * 5)
