"""Discrete actions: indices of choices, and their one-hot encoding."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from empowerment.controller.bundle import Vector


def encode(action: Vector, choices: Sequence[int]) -> Vector:
    """Return the encoding of an action: one-hot vectors of all columns, one after the other.

    Args:
        action: Index of the choice in each column.
        choices: Number of choices of each column; without any, the action is its own encoding.
    """
    if not choices:
        return action
    encoded = np.zeros(sum(choices), action.dtype)
    encoded[np.cumsum((0, *choices[:-1])) + action.astype(int)] = 1
    return encoded


def choose(scores: np.ndarray, choices: Sequence[int]) -> np.ndarray:
    """Return the index of the largest score of each column, the first on a tie.

    The scores may be logits or, as the inverse of `encode`, one-hot vectors.

    Args:
        scores: Scores of all choices, column after column in the last axis.
        choices: Number of choices of each column; without any, the scores are the action.
    """
    if not choices:
        return scores
    groups = zip(choices, accumulate(choices), strict=True)
    indices = [scores[..., end - count : end].argmax(-1) for count, end in groups]
    return np.stack(indices, -1).astype(scores.dtype)


def labels(names: Sequence[str], choices: Sequence[int]) -> list[str]:
    """Return the names of the columns of an action, with the range of each index."""
    if not choices:
        return list(names)
    pairs = zip(names, choices, strict=True)
    return [f"{name} (index of a choice, 0 to {count - 1})" for name, count in pairs]
