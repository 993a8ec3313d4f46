"""Plans of discrete actions: all of them, or those that hold an action longest."""

import itertools

import numpy as np
from jaxtyping import Array, Float

from empowerment.worlds import Box
from empowerment.worlds.base import as_array

MOST_PLANS = 128
"""Most plans of a codebook of discrete actions."""


def discrete_plans(actions: Box, steps: int) -> Float[Array, "plans steps action"]:
    """Return the plans of a codebook where actions are discrete.

    All of them if there are not too many. Otherwise those with the fewest changes of action come
    first, since what is held longest leads farthest, and as many as there may be are chosen evenly
    among those with as many changes.

    Args:
        actions: Discrete actions.
        steps: The number of actions in a plan.

    Returns:
        One-hot plans.
    """
    points = np.asarray(actions.all_choices())
    count = len(points)
    if count**steps <= MOST_PLANS:
        plans = list(itertools.product(range(count), repeat=steps))
        return as_array(points[np.array(plans)])
    plans = []
    for changes in range(steps):
        left = MOST_PLANS - len(plans)
        plans += _spread(_plans_with(changes, count, steps), left)
        if len(plans) == MOST_PLANS:
            break
    return as_array(points[np.array(plans)])


def is_complete(actions: Box, steps: int) -> bool:
    """Check whether `discrete_plans` returns all plans that there are."""
    return actions.num_choices**steps <= MOST_PLANS


def _plans_with(changes: int, count: int, steps: int) -> list[tuple[int, ...]]:
    """Return plans with so many changes of action; where there are too many, a fixed sample."""
    places = list(itertools.combinations(range(1, steps), changes))
    total = len(places) * count * (count - 1) ** changes
    numbers = np.arange(total) if total <= _MOST_LISTED else _evenly(total, _MOST_LISTED)
    plans = []
    for number in numbers.tolist():
        number, where = divmod(number, len(places))
        number, action = divmod(number, count)
        plan, before = [], 0
        for place in (*places[where], steps):
            plan += [action] * (place - before)
            number, shift = divmod(number, max(count - 1, 1))
            action, before = (action + 1 + shift) % count, place
        plans.append(tuple(plan))
    return plans


_MOST_LISTED = 1 << 16


def _spread(plans: list[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """Choose at most so many plans, evenly."""
    if len(plans) <= most:
        return plans
    return [plans[at] for at in _evenly(len(plans), most).tolist()]


def _evenly(total: int, count: int) -> np.ndarray:
    """Return so many different numbers below a total, evenly spread."""
    return np.arange(count) * total // count
