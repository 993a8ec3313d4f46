"""The named worlds and the balls as Gymnasium environments; importing this registers them.

The classes are loaded on first use, so that this import needs neither JAX nor Box2D.
"""

import importlib
from typing import TYPE_CHECKING, Any

from empowerment.environments.action_repeat import ActionRepeat, EnvFactory, action_repeat_of
from empowerment.environments.registration import (
    BALLS,
    ENVIRONMENTS,
    PENDULUM_ANYWHERE,
    PENDULUM_DIRECTION,
    register,
)

if TYPE_CHECKING:
    from empowerment.environments.balls import BallsEnv, joint, per_ball
    from empowerment.environments.grid_env import GridEnv
    from empowerment.environments.world_env import WorldEnv

_MODULES = {"WorldEnv": "world_env", "GridEnv": "grid_env"} | dict.fromkeys(
    ("BallsEnv", "joint", "per_ball"), "balls"
)

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
    "per_ball",
    "register",
]


def __getattr__(name: str) -> Any:
    """Import the module of a class or function on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
