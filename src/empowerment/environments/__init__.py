"""The named worlds and the balls as Gymnasium environments; importing this registers them."""

from empowerment.environments.action_repeat import ActionRepeat, EnvFactory, action_repeat_of
from empowerment.environments.balls import BallsEnv, joint, per_ball
from empowerment.environments.grid_env import GridEnv
from empowerment.environments.parallel import make_parallel
from empowerment.environments.registration import (
    BALLS,
    ENVIRONMENTS,
    PENDULUM_ANYWHERE,
    PENDULUM_DIRECTION,
    register,
)
from empowerment.environments.world_env import WorldEnv

register()

__all__ = [
    "BALLS",
    "ENVIRONMENTS",
    "PENDULUM_ANYWHERE",
    "PENDULUM_DIRECTION",
    "ActionRepeat",
    "BallsEnv",
    "EnvFactory",
    "GridEnv",
    "WorldEnv",
    "action_repeat_of",
    "joint",
    "make_parallel",
    "per_ball",
    "register",
]
