"""The named worlds and the balls as Gymnasium environments; importing this registers them."""

from empowerment.environments.balls import BallsEnv, joint, per_ball
from empowerment.environments.continuous import WorldEnv
from empowerment.environments.discrete import GridEnv
from empowerment.environments.parallel import make_parallel
from empowerment.environments.registration import ANYWHERE, BALLS, DIRECTION, ENVIRONMENTS, register
from empowerment.environments.repeat import ActionRepeat, Held, repeats_of

register()

__all__ = [
    "ANYWHERE",
    "BALLS",
    "DIRECTION",
    "ENVIRONMENTS",
    "ActionRepeat",
    "BallsEnv",
    "GridEnv",
    "Held",
    "WorldEnv",
    "joint",
    "make_parallel",
    "per_ball",
    "register",
    "repeats_of",
]
