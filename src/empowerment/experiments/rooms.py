"""What balls in a box do: where they are, which way they push, how far apart they keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import jax
import numpy as np
from jaxtyping import Float

from empowerment.data import Episode, Trajectories, make_environment
from empowerment.environments import BALLS, ENVIRONMENTS, BallsEnv, per_ball
from empowerment.environments.box2d import RADIUS
from empowerment.experiments.agent import Made
from empowerment.experiments.evaluation import WHO, environment_of, states_of
from empowerment.experiments.measures import ball_distances
from empowerment.experiments.pilot import tracker
from empowerment.report import write_columns

ROOMS = (ENVIRONMENTS["ball"], BALLS)
"""Environments of balls in a box."""

_NUM_BINS = 20
"""Of a histogram, along an axis."""

_NUM_ARROWS = 12
"""Along an axis."""

_NEAR = 2.0
"""How close to a wall a push should be away from it."""

_FEWEST = 5
"""States that an arrow is the mean of, at least."""


@dataclass(frozen=True)
class Arrows:
    """Which way a policy pushes, on the mean over all that else may be.

    Attributes:
        places: The middles of squares that the floor is divided into.
        pushes: The mean action there.
        side: Of the floor.
    """

    places: Float[np.ndarray, "squares 2"]
    pushes: Float[np.ndarray, "squares 2"]
    side: float

    @property
    def inward(self) -> float:
        """The share of pushes near walls that are away from each wall that is near."""
        away = []
        for sign, distance in ((1, self.places), (-1, self.side - self.places)):
            near = distance - 0.5 * self.side / _NUM_ARROWS < _NEAR
            away.append(sign * self.pushes[near] > 0)
        return float(np.mean(np.concatenate(away)))


def arrows(made: Made, episodes: Sequence[Episode], environment: gymnasium.Env) -> Arrows:
    """Give the mean push at each place, over the states that episodes went through.

    Args:
        made: What a run has made.
        episodes: Of someone who goes everywhere.
        environment: A room.
    """
    agents, side = made.experiment.agents, _side(environment)
    track = tracker(made.model, agents)
    states = np.concatenate([states_of(track, each) for each in episodes])
    places = np.concatenate([_places(each.observations, agents) for each in episodes])
    act = jax.jit(jax.vmap(lambda state: made.world.squash(made.policy(state).mean)))
    pushes = np.asarray(act(states))
    squares = np.clip((places / side * _NUM_ARROWS).astype(int), 0, _NUM_ARROWS - 1)
    index = squares[:, 0] * _NUM_ARROWS + squares[:, 1]
    counts = np.bincount(index, minlength=_NUM_ARROWS**2)
    sums = [np.bincount(index, each, minlength=_NUM_ARROWS**2) for each in pushes.T]
    enough = counts >= _FEWEST
    middles = (np.stack(np.divmod(np.arange(_NUM_ARROWS**2), _NUM_ARROWS), 1) + 0.5) / _NUM_ARROWS
    means = np.stack(sums, axis=1)[enough] / counts[enough, None]
    return Arrows(side * middles[enough], means, side)


def survey_room(made: Made, folder: Path) -> float:
    """Write tables of where balls were, which way they push, and how far apart they kept.

    Args:
        made: What a run has made, in an environment of `ROOMS`.
        folder: With the episodes of its evaluation.

    Returns:
        The share of pushes near walls that are away from them.
    """
    environment = make_environment(environment_of(made.experiment))
    acted = {who: Trajectories.load(folder / f"evaluated-{who}.npz").episodes for who in WHO}
    agents, side = made.experiment.agents, _side(environment)
    edges = np.linspace(0, side, _NUM_BINS + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    where = {}
    for who, episodes in acted.items():
        places = np.concatenate([_places(each.observations, agents) for each in episodes])
        where[who] = np.histogram2d(*places.T, bins=(edges, edges), density=True)[0].ravel()
    x, y = (each.ravel() for each in np.meshgrid(middles, middles, indexing="ij"))
    write_columns({"x": x, "y": y, **where}, folder / "positions.csv")
    found = arrows(made, acted["uniform"], environment)
    (x, y), (push_x, push_y) = found.places.T, found.pushes.T
    table: dict[str, np.ndarray] = {"x": x, "y": y, "push_x": push_x, "push_y": push_y}
    write_columns(table, folder / "arrows.csv")
    room = environment.unwrapped
    if isinstance(room, BallsEnv):
        distances = {who: ball_distances(episodes, room) for who, episodes in acted.items()}
        limits = {"walls": side / 2 - RADIUS, "pairs": side}
        for index, (name, limit) in enumerate(limits.items()):
            edges = np.linspace(0, limit, 2 * _NUM_BINS + 1)
            shares = {
                who: np.histogram(each[index], bins=edges, density=True)[0]
                for who, each in distances.items()
            }
            table = {"distance": 0.5 * (edges[1:] + edges[:-1]), **shares}
            write_columns(table, folder / f"{name}.csv")
    environment.close()
    return found.inward


def _places(
    observations: Float[np.ndarray, "times observation"], agents: int
) -> Float[np.ndarray, "places 2"]:
    """Give where all balls were, in the order in which states are tracked."""
    return per_ball(observations, agents)[..., :2].reshape(-1, 2)


def _side(environment: gymnasium.Env) -> float:
    space = environment.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    return float(space.high[0])
