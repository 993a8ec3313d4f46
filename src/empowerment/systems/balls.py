"""Several balls in a box: how well they keep off the walls and off each other."""

from collections.abc import Sequence
from pathlib import Path

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from empowerment.agent import ACTORS
from empowerment.data import Episode
from empowerment.environments import BALLS, BallsEnv, per_ball
from empowerment.environments.box2d import RADIUS, SKIN
from empowerment.files import read_columns, write_columns
from empowerment.report import Section
from empowerment.systems import room
from empowerment.systems.base import Study, System, Watched

_CLOSE = 1.1
"""Distance in diameters within which balls are close to each other."""


def contacts(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Compute distances from walls and between balls, and how often they touch."""
    del watched
    walls, pairs = distances(episodes, _room(environment))
    return {
        "wall_touch_fraction": float(np.mean(walls <= SKIN)),
        "mean_wall_distance": float(walls.mean()),
        "contacts_per_step": float((pairs <= 2 * RADIUS).sum(1).mean()),
        "mean_pair_distance": float(pairs.mean()),
        "close_fraction": float(np.mean(pairs <= _CLOSE * 2 * RADIUS)),
    }


def _room(environment: gymnasium.Env) -> BallsEnv:
    inner = environment.unwrapped
    assert isinstance(inner, BallsEnv)
    return inner


def distances(
    episodes: Sequence[Episode], environment: BallsEnv
) -> tuple[Float[np.ndarray, "times balls"], Float[np.ndarray, "times pairs"]]:
    """Compute the distance of each rim from the closest wall, and between centres."""
    rows = np.concatenate([each.observations for each in episodes])
    places = per_ball(rows, environment.num_balls)[..., :2].astype(float)
    walls = np.minimum(places, environment.side - places).min(-1) - RADIUS
    first, second = np.triu_indices(environment.num_balls, 1)
    return walls, np.linalg.norm(places[:, first] - places[:, second], axis=-1)


def write_distances(study: Study) -> dict[str, float]:
    """Write the tables of a room, and histograms of distances."""
    figures = room.write_room(study)
    environment = study.environment()
    inner = _room(environment)
    of_actors = {actor: distances(study.episodes(actor), inner) for actor in ACTORS}
    limits = {"walls": inner.side / 2 - RADIUS, "pairs": inner.side}
    environment.close()
    for index, (name, limit) in enumerate(limits.items()):
        edges = np.linspace(0, limit, 2 * room.NUM_BINS + 1)
        densities = {
            actor: np.histogram(each[index], bins=edges, density=True)[0]
            for actor, each in of_actors.items()
        }
        table = {"distance": 0.5 * (edges[1:] + edges[:-1]), **densities}
        write_columns(table, study.folder / f"{name}.csv")
    return figures


def summary(figures: dict) -> list[str]:
    """Describe how well walls and other balls are avoided."""
    uniform = figures["uniform"]
    return [
        *room.summary(figures),
        f"Balls are in contact {figures['contacts_per_step']:.3f} times a step (random: "
        f"{uniform['contacts_per_step']:.3f}), {figures['mean_pair_distance']:.2f} apart on "
        f"average (random: {uniform['mean_pair_distance']:.2f}).",
    ]


def draw_distances(folder: Path) -> Figure:
    """Draw the density of distances from walls and between balls, for each actor."""
    figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    labels = {"walls": "distance to the closest wall", "pairs": "distance between two balls"}
    for axes, (name, label) in zip(all_axes, labels.items(), strict=True):
        table = read_columns(folder / f"{name}.csv", ["distance", *room.LABELS])
        distance, *densities = table.T
        for actor, density in zip(room.LABELS.values(), densities, strict=True):
            axes.plot(distance, density, drawstyle="steps-mid", label=actor)
        axes.set(xlabel=label, ylabel="density", ylim=(0, None))
    all_axes[0].legend(fontsize=8)
    return figure


SYSTEMS = (
    System(
        environments=(BALLS,),
        metrics=contacts,
        summary=summary,
        after_evaluation=write_distances,
        sections=(
            *room.SECTIONS,
            Section(
                "distances",
                "Distances from the walls and between balls",
                ("walls.csv", "pairs.csv"),
                draw_distances,
                "How often each distance occurred, by actor. A wall is touched at 0, another ball "
                "at a diameter.",
            ),
        ),
    ),
)
