"""What can be said of episodes of the systems that we know."""

import math
from collections.abc import Callable, Sequence

import gymnasium
import numpy as np
from jaxtyping import Float

from empowerment.data import Episode
from empowerment.environments import (
    BALLS,
    ENVIRONMENTS,
    PENDULUM_DIRECTION,
    BallsEnv,
    action_repeat_of,
    per_ball,
)
from empowerment.environments.box2d import RADIUS, SKIN
from empowerment.experiments.held import UPRIGHT

_INTERVAL, _HELD_SECONDS = 0.05, 5.0
_HANGING_NOISE = 0.01
"""The scale of what the start is off by, in angle and velocity, when hanging at rest."""

_TOUCH = 1e-4
"""How close to a wall the single ball touches it."""

_CLOSE = 1.1
"""Diameters within which balls are close to each other."""

SET_BY_STATE = (ENVIRONMENTS["pendulum"], PENDULUM_DIRECTION)
"""Pendulums that can be set to hang."""

BIPED = "BipedalWalker-v3"
"""Gymnasium's robot with two legs."""

_STANDING_HEIGHT, _STANDING_ANGLE = 4.8, 0.4
"""A robot stands whose hull is above the one and tilted by less than the other."""

LONGEST = 2000
"""Actions after which an episode is cut, where the environment itself sets no limit."""

Watched = Sequence[Float[np.ndarray, " steps"]]
"""What was watched in each of some episodes, before each action."""

Measure = Callable[[Sequence[Episode], gymnasium.Env, Watched], dict[str, float]]
"""Gives figures of episodes in an environment, with what was watched."""


def pendulum(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Give the share of episodes that end with the pendulum held upright."""
    del environment, watched
    last = round(_HELD_SECONDS / _INTERVAL)
    held = [np.all(np.abs(angle_of(each.observations[-last:])) <= UPRIGHT) for each in episodes]
    return {"held_fraction": float(np.mean(held))}


def ball(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Give how often a ball touches a wall, and how far from the closest one it is."""
    del watched
    space = environment.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    places = np.concatenate([each.observations for each in episodes])
    distance = np.minimum(places - space.low, space.high - places).min(1)
    return {
        "wall_touch_fraction": float(np.mean(distance <= _TOUCH)),
        "mean_wall_distance": float(distance.mean()),
    }


def balls(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Give how far balls are from the walls and from each other, and how often they touch."""
    del watched
    room = environment.unwrapped
    assert isinstance(room, BallsEnv)
    walls, pairs = ball_distances(episodes, room)
    return {
        "wall_touch_fraction": float(np.mean(walls <= SKIN)),
        "mean_wall_distance": float(walls.mean()),
        "contacts_per_step": float((pairs <= 2 * RADIUS).sum(1).mean()),
        "mean_pair_distance": float(pairs.mean()),
        "close_fraction": float(np.mean(pairs <= _CLOSE * 2 * RADIUS)),
    }


def ball_distances(
    episodes: Sequence[Episode], room: BallsEnv
) -> tuple[Float[np.ndarray, "times balls"], Float[np.ndarray, "times pairs"]]:
    """Give how far each rim is from the nearest wall, and how far apart middles are."""
    rows = np.concatenate([each.observations for each in episodes])
    places = per_ball(rows, room.num_balls)[..., :2].astype(float)
    walls = np.minimum(places, room.side - places).min(-1) - RADIUS
    first, second = np.triu_indices(room.num_balls, 1)
    return walls, np.linalg.norm(places[:, first] - places[:, second], axis=-1)


def biped(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Give how a robot holds itself, and how long.

    Standing is a share of all steps that there could have been: after its end, a robot does not
    stand. Height and angle are means over the steps that there were.
    """
    held, limit = action_repeat_of(environment), limit_of(environment)
    height = np.concatenate(watched)
    angle = np.concatenate([np.abs(each.observations[:-1, 0]) for each in episodes])
    standing = (height > _STANDING_HEIGHT) & (angle < _STANDING_ANGLE)
    longest = -(-limit // held)
    lengths = np.minimum([held * each.length for each in episodes], limit)
    return {
        "standing_fraction": float(standing.sum() / (len(episodes) * longest)),
        "mean_height": float(height.mean()),
        "mean_abs_angle": float(angle.mean()),
        "steps_to_end_median": float(np.median(lengths)),
    }


def limit_of(environment: gymnasium.Env) -> int:
    """Give after how many steps an episode is cut, counted without repetitions of actions."""
    own = environment.spec.max_episode_steps if environment.spec else None
    return own or LONGEST * action_repeat_of(environment)


def hull_height(environment: gymnasium.Env) -> float:
    """Give how high up the hull of the robot is."""
    return float(environment.unwrapped.hull.position.y)  # pyright: ignore[reportAttributeAccessIssue]


WATCHES: dict[str, Callable[[gymnasium.Env], float]] = {BIPED: hull_height}
"""What is not observed and worth watching, by the id of an environment."""

IDLE = (BIPED,)
"""Environments in which to do nothing is a policy worth comparing with."""

MEASURES: dict[str, Measure] = {
    ENVIRONMENTS["pendulum"]: pendulum,
    PENDULUM_DIRECTION: pendulum,
    "Pendulum-v1": pendulum,
    ENVIRONMENTS["ball"]: ball,
    BALLS: balls,
    BIPED: biped,
}
"""What is measured in an environment, by its id."""


def hanging_starts(count: int, seed: int) -> Float[np.ndarray, "starts 2"]:
    """Draw starts of the pendulum from hanging nearly at rest."""
    angle, velocity = np.random.default_rng(seed).normal(0, _HANGING_NOISE, (2, count))
    return np.stack([angle - math.pi * np.sign(angle), velocity], axis=1)  # Within half a turn.


def angle_of(
    observations: Float[np.ndarray, "times observation"],
) -> Float[np.ndarray, " times"]:
    """Give the angle of a pendulum, observed as it is or by cosine and sine."""
    if observations.shape[1] == 2:
        return observations[:, 0]
    return np.arctan2(observations[:, 1], observations[:, 0])


def time_to_upright(observations: Float[np.ndarray, "times observation"]) -> float:
    """Give the seconds after which a pendulum stays upright; infinite if it never does."""
    away = np.flatnonzero(np.abs(angle_of(observations)) > UPRIGHT)
    if not away.size:
        return 0.0
    is_last = away[-1] == len(observations) - 1
    return math.inf if is_last else _INTERVAL * float(away[-1] + 1)
