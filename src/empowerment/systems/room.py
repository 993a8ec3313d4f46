"""What one ball and several balls in a box have in common: where they are and how they push."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure

from empowerment.agent import ACTORS, TrainedAgent, states_of
from empowerment.data import Episode
from empowerment.environments import per_ball
from empowerment.files import read_columns, write_columns
from empowerment.policy import Policy
from empowerment.report import Section
from empowerment.systems.base import Study
from empowerment.worlds import Bounded

LABELS = {
    "uniform": "uniformly random",
    "sampled": "policy, sampled actions",
    "policy": "policy, mean action",
}

NUM_BINS = 20
"""Number of histogram bins along an axis."""

_NUM_ARROWS = 12
"""Number of arrows along an axis."""

_NEAR = 2.0
"""Distance from a wall within which a push should point away from it."""

_FEWEST = 5
"""Minimal number of states that an arrow is the mean of."""


@dataclass(frozen=True)
class Arrows:
    """Mean action by position, averaged over the other state variables.

    Attributes:
        places: Centres of the squares that the floor is divided into.
        pushes: Mean action in each square.
        side: Side of the floor.
    """

    places: Float[np.ndarray, "squares 2"]
    pushes: Float[np.ndarray, "squares 2"]
    side: float

    @property
    def inward(self) -> float:
        """The fraction of pushes near walls that point away from each wall that is near."""
        away = []
        for sign, distance in ((1, self.places), (-1, self.side - self.places)):
            near = distance - 0.5 * self.side / _NUM_ARROWS < _NEAR
            away.append(sign * self.pushes[near] > 0)
        return float(np.mean(np.concatenate(away)))


def arrows(agent: TrainedAgent, episodes: Sequence[Episode], side: float) -> Arrows:
    """Compute the mean push by position, over the states of some episodes."""
    states = states_of(agent, episodes)
    places = np.concatenate([positions(each.observations, agent.num_agents) for each in episodes])
    pushes = np.asarray(_pushes(agent.policy, agent.world, jnp.asarray(states, float)))
    squares = np.clip((places / side * _NUM_ARROWS).astype(int), 0, _NUM_ARROWS - 1)
    index = squares[:, 0] * _NUM_ARROWS + squares[:, 1]
    counts = np.bincount(index, minlength=_NUM_ARROWS**2)
    sums = [np.bincount(index, each, minlength=_NUM_ARROWS**2) for each in pushes.T]
    enough = counts >= _FEWEST
    middles = (np.stack(np.divmod(np.arange(_NUM_ARROWS**2), _NUM_ARROWS), 1) + 0.5) / _NUM_ARROWS
    means = np.stack(sums, axis=1)[enough] / counts[enough, None]
    return Arrows(side * middles[enough], means, side)


@eqx.filter_jit
def _pushes(
    policy: Policy, world: Bounded, states: Float[Array, "states state"]
) -> Float[Array, "states action"]:
    return jax.vmap(lambda state: world.squash(policy(state).mean))(states)


def write_room(study: Study) -> dict[str, float]:
    """Write tables of positions and pushes; return the fraction of pushes away from walls."""
    environment = study.environment()
    side, num_agents = side_of(environment), study.agent.num_agents
    environment.close()
    edges = np.linspace(0, side, NUM_BINS + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    densities = {}
    for actor in ACTORS:
        places = [positions(each.observations, num_agents) for each in study.episodes(actor)]
        histogram = np.histogram2d(*np.concatenate(places).T, bins=(edges, edges), density=True)[0]
        densities[actor] = histogram.ravel()
    x, y = (each.ravel() for each in np.meshgrid(middles, middles, indexing="ij"))
    write_columns({"x": x, "y": y, **densities}, study.folder / "positions.csv")
    found = arrows(study.agent, study.episodes("uniform"), side)
    (x, y), (push_x, push_y) = found.places.T, found.pushes.T
    table: dict[str, np.ndarray] = {"x": x, "y": y, "push_x": push_x, "push_y": push_y}
    write_columns(table, study.folder / "arrows.csv")
    return {"inward_fraction": found.inward}


def positions(
    observations: Float[np.ndarray, "times observation"], num_agents: int
) -> Float[np.ndarray, "places 2"]:
    """Return the positions of all balls, in the order in which states are tracked."""
    return per_ball(observations, num_agents)[..., :2].reshape(-1, 2)


def side_of(environment: gymnasium.Env) -> float:
    """Return the side of the floor."""
    space = environment.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    return float(space.high[0])


def summary(figures: dict) -> list[str]:
    """Describe how well walls are avoided."""
    uniform = figures["uniform"]
    return [
        f"It touches a wall {figures['wall_touch_fraction']:.1%} of the time (random: "
        f"{uniform['wall_touch_fraction']:.1%}); its mean distance from the closest wall is "
        f"{figures['mean_wall_distance']:.2f} (random: {uniform['mean_wall_distance']:.2f})."
    ]


def draw_positions(folder: Path) -> Figure:
    """Draw the density of positions, for each actor."""
    table = read_columns(folder / "positions.csv", ["x", "y", *LABELS])
    count = round(len(table) ** 0.5)
    side = table[:, :2].min() + table[:, :2].max()
    figure, all_axes = plt.subplots(1, len(LABELS), figsize=(11, 4.1), layout="constrained")
    for axes, label, share in zip(all_axes, LABELS.values(), table[:, 2:].T, strict=True):
        axes.imshow(
            share.reshape(count, count).T,
            extent=(0, side, 0, side),
            origin="lower",
            cmap="Blues",
            vmin=0,
        )
        axes.set_title(label, fontsize=10)
    return figure


def draw_arrows(folder: Path) -> Figure:
    """Draw the mean push by position."""
    x, y, push_x, push_y = read_columns(folder / "arrows.csv", ["x", "y", "push_x", "push_y"]).T
    figure, axes = plt.subplots(figsize=(4.8, 4.8), layout="constrained")
    axes.quiver(x, y, push_x, push_y, np.hypot(push_x, push_y), cmap="viridis", pivot="mid")
    side = x.min() + x.max()
    axes.set(xlim=(0, side), ylim=(0, side), aspect="equal", xlabel="x", ylabel="y")
    return figure


SECTIONS = (
    Section(
        "positions",
        "Density of positions",
        ("positions.csv",),
        draw_positions,
        "Where balls were in the evaluated episodes, seen from above; darker is more often.",
    ),
    Section(
        "arrows",
        "Mean action by position, averaged over the other state variables",
        ("arrows.csv",),
        draw_arrows,
        "Arrows are as long as the mean push there, relative to the longest.",
    ),
)
