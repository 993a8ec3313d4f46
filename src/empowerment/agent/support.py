"""How much of what a policy imagines the data have seen."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from empowerment.agent.reality import imagine
from empowerment.agent.training import TrainedAgent
from empowerment.data import Trajectories

USUAL = 0.99
"""Share of rows of the data that other rows of the data support, by definition."""

_NUM_REFERENCE, _NUM_HELD_OUT = 8000, 2000
"""Rows of the data that support, and those from which the reach is taken."""

_LONGEST = 128
"""Maximal number of steps of an imagined episode."""

_BLOCK = 256
"""Points whose distances are computed at once."""


@dataclass(frozen=True)
class Support:
    """Where the data support what is imagined.

    Attributes:
        share: Share of imagined rows that are as near to the data as data are to each other.
        by_time: The same for each step of an imagined episode.
    """

    share: float
    by_time: tuple[float, ...]


def support(agent: TrainedAgent, data: Trajectories, *, seed: int) -> Support:
    """Compare what an agent imagines by its mean action with the data of its model.

    A row is an observation with the action that is taken upon it, in units of the standard
    deviations of the data. It is supported if a row of the data is within the distance that 99 %
    of other episodes' rows have to them.

    Args:
        agent: An agent of a learnt world.
        data: What the world was learnt from.
        seed: Random seed.
    """
    if agent.model is None:
        raise ValueError("Expected an agent of a learnt world; got one of a known world.")
    steps = min(max(episode.length for episode in data.episodes), _LONGEST)
    imagined, _ = imagine(agent.policy, agent.world, key=jax.random.key(seed))
    states = np.asarray(imagined)[:steps]
    flat = states.reshape(-1, states.shape[-1])
    decoded = jax.jit(jax.vmap(agent.model.decode))(flat).mean
    rows = [np.asarray(agent.model.observations.physical(decoded))]
    if not data.spaces.action_choices:
        acted = jax.vmap(lambda state: agent.world.squash(agent.policy(state).mean))(flat)
        rows.append(np.asarray(acted))
    near = is_supported(np.concatenate(rows, axis=1), _rows(data), seed=seed)
    by_time = near.reshape(steps, -1).mean(axis=1)
    return Support(float(by_time.mean()), tuple(by_time.tolist()))


def _rows(data: Trajectories) -> list[Float[np.ndarray, "rows column"]]:
    """Return the rows of each episode; halves of the only one."""
    episodes = data.episodes
    if len(episodes) == 1:
        half = episodes[0].length // 2
        episodes = (episodes[0].part(0, half), episodes[0].part(half, episodes[0].length))
    if data.spaces.action_choices:
        return [each.observations[:-1] for each in episodes]
    return [np.concatenate([each.observations[:-1], each.actions], axis=1) for each in episodes]


def is_supported(
    points: Float[np.ndarray, "points column"],
    episodes: list[Float[np.ndarray, "_ column"]],
    *,
    seed: int,
) -> np.ndarray:
    """Return which points are as near to some episodes as others are to them.

    Args:
        points: The points.
        episodes: Rows of two episodes or more.
        seed: Random seed of the choice of episodes and rows.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(episodes))
    half = max(len(order) // 2, 1)
    kept, held = (
        np.concatenate([episodes[index] for index in part]) for part in (order[half:], order[:half])
    )
    scale = kept.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    kept = _some(kept, _NUM_REFERENCE, random) / scale
    reach = np.quantile(nearest(_some(held, _NUM_HELD_OUT, random) / scale, kept), USUAL)
    return nearest(points / scale, kept) <= reach


def nearest(
    points: Float[np.ndarray, "points column"], reference: Float[np.ndarray, "_ column"]
) -> Float[np.ndarray, " points"]:
    """Return the distance of each point to the nearest of others."""
    squares = np.sum(reference**2, axis=1)
    found = []
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        distances = squares - 2 * block @ reference.T + np.sum(block**2, axis=1)[:, None]
        found.append(np.sqrt(np.maximum(distances.min(axis=1), 0)))
    return np.concatenate(found)


def _some(rows: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Choose as many rows at random, without repetition."""
    return rows if len(rows) <= count else rows[random.choice(len(rows), count, replace=False)]
