"""One ball in a box: how well it keeps off the walls."""

from collections.abc import Sequence

import gymnasium
import numpy as np

from empowerment.data import Episode
from empowerment.environments import ENVIRONMENTS
from empowerment.systems import room
from empowerment.systems.base import System, Truth, Watched
from empowerment.systems.live import live_world

_TOUCH = 1e-4
"""Distance within which the ball touches a wall."""


def walls(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Compute how often a ball touches a wall, and its mean distance from the closest one."""
    del watched
    space = environment.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    places = np.concatenate([each.observations for each in episodes])
    distance = np.minimum(places - space.low, space.high - places).min(1)
    return {
        "wall_touch_fraction": float(np.mean(distance <= _TOUCH)),
        "mean_wall_distance": float(distance.mean()),
    }


SYSTEMS = (
    System(
        environments=(ENVIRONMENTS["ball"],),
        metrics=walls,
        truth=Truth("ball", lambda states: states, lambda observations: observations),
        summary=room.summary,
        after_evaluation=room.write_room,
        sections=room.SECTIONS,
        live=live_world("ball", "ball.js"),
    ),
)
