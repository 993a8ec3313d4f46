"""Exact n-step empowerment of discrete worlds."""

import math

import numpy as np
from jaxtyping import Float

from empowerment.capacity.blahut_arimoto import Capacity, Stopped, blahut_arimoto

_MAX_FUTURES = 100_000
"""Maximum number of distinct futures, each a row of probabilities."""


def discrete_empowerment(
    kernel: Float[np.ndarray, "cells moves cells"],
    cell: int,
    *,
    steps: int,
    tolerance: float = 1e-6,
) -> Capacity:
    r"""Compute the n-step empowerment of a cell, in nats.

    Klyubin, Polani and Nehaniv (2005): the capacity from sequences of moves to the final
    cell. In a deterministic world it is $\ln$ of the number of reachable cells. Sequences
    with the same future are merged into one input.

    Args:
        kernel: The probability of the next cell, given the cell and the move.
        cell: The start cell.
        steps: The number of moves.
        tolerance: The largest difference of the bounds, in nats.

    Returns:
        The capacity; its inputs are the distinct futures.
    """
    kernel = np.asarray(kernel, dtype=np.float64)
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    if not 0 <= cell < len(kernel):
        raise ValueError(f"Expected the cell to be from 0 to {len(kernel) - 1}; got {cell}.")
    futures = futures_of(kernel, cell, steps=steps)
    if np.all((futures == 0) | (futures == 1)):
        size = len(futures)
        value = math.log(size)
        return Capacity(value, value, value, np.full(size, 1 / size), 0, Stopped.CONVERGED)
    return blahut_arimoto(futures, tolerance=tolerance)


def futures_of(
    kernel: Float[np.ndarray, "cells moves cells"], cell: int, *, steps: int
) -> Float[np.ndarray, "futures cells"]:
    """Compute the distinct distributions of the final cell over all sequences of moves."""
    futures = np.eye(len(kernel))[[cell]]
    for _ in range(steps):
        moved = np.einsum("fc,cmd->fmd", futures, kernel).reshape(-1, len(kernel))
        # Rounding merges futures that differ only by floating-point error.
        futures = moved[np.unique(moved.round(12), axis=0, return_index=True)[1]]
        if len(futures) > _MAX_FUTURES:
            raise ValueError(
                f"Expected at most {_MAX_FUTURES} distinct futures; got {len(futures)}. Take "
                "fewer steps."
            )
    return futures
