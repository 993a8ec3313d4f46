"""Discrete grid worlds, drawn as text."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.distributions import Categorical
from empowerment.types import Cell, Move

MOVES = {
    "stay": (0, 0),
    "north": (0, 1),
    "east": (1, 0),
    "south": (0, -1),
    "west": (-1, 0),
}
"""The five moves of Klyubin et al. (2005), as steps along x and y."""


class Grid(eqx.Module):
    r"""A grid world: the agent stays or moves to a neighbouring cell; walls block it.

    With probability `slip` a move drawn uniformly from all five replaces the intended
    one. A discrete world needs no noise: its information is finite.

    The drawing has a line for each row of cells, top row first, and a line between two
    rows. A dot is a cell, `#` a blocked cell; `|` between two dots and `-` between two
    rows are walls. `cells` lists the (x, y) of each cell, x to the right and y upwards
    from the lower left; a state is an index into it.

    ```text
    . .|.
      -
    . . .
    ```

    Args:
        drawing: The grid as text.
        slip: The probability that a move is random.
    """

    drawing: str = eqx.field(static=True)
    cells: tuple[tuple[int, int], ...] = eqx.field(static=True)
    kernel: Float[Array, "cells moves cells"]

    def __init__(self, drawing: str, slip: float = 0.0):
        if not 0 <= slip <= 1:
            raise ValueError(f"Expected slip to be a probability; got {slip}.")
        self.drawing = drawing
        self.cells, walls = _read(drawing)
        self.kernel = jnp.asarray(_kernel(self.cells, walls, slip), dtype=float)

    def initial(self) -> Categorical:
        """Return the uniform distribution over cells."""
        size = len(self.cells)
        return Categorical(jnp.full((size,), 1.0 / size))

    def transition(self, state: Cell, action: Move) -> Categorical:
        """Return the distribution of the next cell."""
        return Categorical(self.kernel[state, action])

    def emission(self, state: Cell) -> Categorical:
        """Return the cell itself, perceived without noise."""
        return Categorical(jnp.eye(len(self.cells))[state])


def _read(
    drawing: str,
) -> tuple[tuple[tuple[int, int], ...], set[frozenset[tuple[int, int]]]]:
    """Parse the cells of a drawing and the walls between them."""
    lines = drawing.strip("\n").split("\n")
    # Leading blank lines count in the line numbers of errors.
    above = len(drawing) - len(drawing.lstrip("\n"))
    height, width = (len(lines) + 1) // 2, max(map(len, lines))
    canvas = [line.ljust(width) for line in lines]
    cells, walls = [], set()
    for row, column in itertools.product(range(len(canvas)), range(width)):
        mark = canvas[row][column]
        x, y = column // 2, height - 1 - row // 2
        kind = (row % 2, column % 2)
        if kind == (0, 0) and mark == ".":
            cells.append((x, y))
        elif kind == (0, 1) and mark == "|":
            walls.add(frozenset(((x, y), (x + 1, y))))
        elif kind == (1, 0) and mark == "-":
            walls.add(frozenset(((x, y), (x, y - 1))))
        elif mark != " " and (kind, mark) != ((0, 0), "#"):
            raise ValueError(
                "Expected a drawing of '.' and '#' for cells, '|' and '-' between "
                f"them; got {mark!r} in line {above + row + 1}, column {column + 1}."
            )
    if not cells:
        raise ValueError("Expected a drawing with at least one cell '.'; got none.")
    return tuple(sorted(cells, key=lambda cell: (cell[1], cell[0]))), walls


def _kernel(
    cells: tuple[tuple[int, int], ...],
    walls: set[frozenset[tuple[int, int]]],
    slip: float,
) -> Float[np.ndarray, "cells moves cells"]:
    """Compute the transition kernel: the probability of each next cell."""
    index = {cell: number for number, cell in enumerate(cells)}
    kernel = np.zeros((len(cells), len(MOVES), len(cells)))
    for (number, (x, y)), (move, (dx, dy)) in itertools.product(
        enumerate(cells), enumerate(MOVES.values())
    ):
        target = (x + dx, y + dy)
        free = target in index and frozenset(((x, y), target)) not in walls
        kernel[number, move, index[target] if free else number] = 1.0
    return (1 - slip) * kernel + slip * kernel.mean(axis=1, keepdims=True)


ROOM = "\n\n".join([". . . . . . . . . ."] * 10)
"""An open room of ten by ten cells."""

MAZE = """\
. . . . . . . . . .
      -
. . . .|. . . . . .
        -
. . . . .|. . . . .
        -
. . . . .|. . . . .
    - - -
. . . . . . . . . .

. . . . . . . . . .
            -
. . . . . .|.|. . .

. . . . . .|.|. . .
- - - - - -   - -
. . . . . . . . . .

. . . . . . . . . ."""
"""The maze of Klyubin, Polani and Nehaniv (2005)."""

DOORWAYS = """\
. . . . .|. . . . .

. . . . .|. . . . .

. . . . . . . . . .

. . . . .|. . . . .

. . . . .|. . . . .
- -   - - - -   - -
. . . . .|. . . . .

. . . . .|. . . . .

. . . . . . . . . .

. . . . .|. . . . .

. . . . .|. . . . ."""
"""Four rooms of five by five cells, joined by doorways one cell wide."""
