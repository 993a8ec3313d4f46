"""How fast an environment is, and for how many steps an action can be repeated in it."""

import numpy as np
from jaxtyping import Float

from empowerment.data.trajectories import Trajectories

_SHARE = 0.25
"""Share of its way to being independent that an observation goes in the time that is measured."""

_ACTIONS = 6
"""Fewest actions in that time."""

_LONGEST = 96
"""Most steps of that time."""

_FEWEST = 200
"""Fewest pairs of observations from which a difference is estimated."""


def repeat_of(data: Trajectories) -> int:
    r"""Choose for how many steps an action is repeated, from data whose actions are not.

    Observations $k$ steps apart differ by $\mathrm{E}(x_{t+k} - x_t)^2$, which goes from 0 to
    $2 \mathrm{Var}(x)$. An action is repeated where even the fastest column needs many steps for
    a quarter of that: so many times that six actions are left in that time.

    Args:
        data: Episodes of random actions, each of one step.
    """
    return max(1, _steps_of_change(data) // _ACTIONS)


def _steps_of_change(data: Trajectories) -> int:
    """Return the number of steps in which the fastest column changes, 0 if data are too few."""
    paths = [np.asarray(episode.observations, float) for episode in data.episodes]
    variance = np.concatenate(paths).var(axis=0)
    paths = [path[:, variance > 0] / np.sqrt(variance[variance > 0]) for path in paths]
    for count in range(1, _LONGEST + 1):
        pairs = [path[count:] - path[:-count] for path in paths if len(path) > count]
        if sum(map(len, pairs)) < _FEWEST or not paths[0].shape[1]:
            return count - 1
        differences: Float[np.ndarray, " columns"] = np.mean(np.concatenate(pairs) ** 2, axis=0)
        if differences.max() >= 2 * _SHARE:
            return count
    return _LONGEST
