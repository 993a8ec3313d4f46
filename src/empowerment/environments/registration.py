"""Table of the Gymnasium environments of this package, without their code."""

from typing import Any

import gymnasium

BALLS = "empowerment/Balls-v0"
"""Id of the balls, of which there is no world: their dynamics have to be learnt."""

PENDULUM_DIRECTION = "empowerment/PendulumDirection-v0"
"""Id of the pendulum whose angle is observed as cosine and sine."""

PENDULUM_ANYWHERE = "empowerment/PendulumAnywhere-v0"
"""Id of the same with short episodes that start at any speed, for data to learn from."""

# Entry points are strings: a spec can be written to a file, and JAX is imported when it is made.
_MAKE = "empowerment.environments.factories:make_"
_TABLE: tuple[tuple[str | None, str, str, dict[str, Any], int], ...] = (
    # world, id, entry point, its arguments, steps after which an episode is truncated
    ("pendulum", "empowerment/Pendulum-v0", f"{_MAKE}pendulum", {}, 400),  # 20 s
    ("ball", "empowerment/Ball-v0", f"{_MAKE}ball", {}, 200),
    ("cart", "empowerment/Cart-v0", f"{_MAKE}cart", {}, 200),
    ("cart-pole", "empowerment/CartPole-v0", f"{_MAKE}cart_pole", {}, 240),  # 12 s
    (
        "double-pendulum",
        "empowerment/DoublePendulum-v0",
        f"{_MAKE}chain",
        {"name": "double-pendulum"},
        400,
    ),
    (
        "triple-pendulum",
        "empowerment/TriplePendulum-v0",
        f"{_MAKE}chain",
        {"name": "triple-pendulum"},
        400,
    ),
    ("room", "empowerment/Room-v0", f"{_MAKE}grid", {"name": "room"}, 100),
    ("maze", "empowerment/Maze-v0", f"{_MAKE}grid", {"name": "maze"}, 100),
    ("doorways", "empowerment/Doorways-v0", f"{_MAKE}grid", {"name": "doorways"}, 100),
    ("slippery", "empowerment/Slippery-v0", f"{_MAKE}grid", {"name": "slippery"}, 100),
    (None, PENDULUM_DIRECTION, f"{_MAKE}pendulum_by_direction", {"anywhere": False}, 400),
    (None, PENDULUM_ANYWHERE, f"{_MAKE}pendulum_by_direction", {"anywhere": True}, 12),
    (None, BALLS, "empowerment.environments.balls:BallsEnv", {}, 200),  # 10 s
)

ENVIRONMENTS: dict[str, str] = {world: env_id for world, env_id, *_ in _TABLE if world is not None}
"""The Gymnasium id of each world in `empowerment.worlds.WORLDS`."""


def register() -> None:
    """Register the environments with Gymnasium, those that are not registered yet."""
    for _, environment_id, entry_point, kwargs, steps in _TABLE:
        if environment_id not in gymnasium.registry:
            gymnasium.register(
                environment_id, entry_point=entry_point, kwargs=kwargs, max_episode_steps=steps
            )
