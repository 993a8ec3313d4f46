"""The named worlds under Gymnasium's names."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import gymnasium.wrappers
import numpy as np

from empowerment.environments import painters
from empowerment.environments.balls import BallsEnv
from empowerment.environments.grid_env import GridEnv
from empowerment.environments.world_env import WorldEnv
from empowerment.worlds import (
    WORLDS,
    AbstractWorld,
    Ball,
    Box,
    Grid,
    Pendulum,
    double_integrator,
)

ENVIRONMENTS: dict[str, str] = {name: f"empowerment/{name.capitalize()}-v0" for name in WORLDS}
"""The Gymnasium name of each world in `empowerment.worlds.WORLDS`."""

BALLS = "empowerment/Balls-v0"
"""The Gymnasium name of the balls, which are no world: there is nothing to imagine in."""

PENDULUM_DIRECTION, PENDULUM_ANYWHERE = (
    "empowerment/PendulumDirection-v0",
    "empowerment/PendulumAnywhere-v0",
)
"""The Gymnasium names of the pendulum whose angle is observed as cosine and sine; the second
starts at any speed, for data to learn from."""

_EPISODE_STEPS = {"pendulum": 400, "ball": 200, "cart": 200}  # the pendulum's are 20 s
_SHORT_STEPS = 12
_GRID_EPISODE_STEPS = 100
_BALLS_EPISODE_STEPS = 200  # 10 s


def make_pendulum(*, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the pendulum, its angle wrapped.

    Args:
        render_mode: `"rgb_array"`, or None for no pictures.
        **parameters: Given to `Pendulum`.

    Returns:
        The environment.
    """
    world = Pendulum(**parameters)
    return WorldEnv(
        world,
        periodic=(True, False),
        bounds=_bounds(world),
        painter=partial(painters.pendulum, max_torque=float(world.max_torque)),
        frames_per_second=max(round(1 / float(world.interval)), 1),
        render_mode=render_mode,
    )


def make_pendulum_by_direction(
    *, anywhere: bool = False, render_mode: str | None = None, **parameters: Any
) -> gymnasium.Env:
    """Make the pendulum, its angle observed as cosine and sine, without a jump.

    Args:
        anywhere: Whether to start at any speed, rather than nearly at rest: to learn from.
        render_mode: `"rgb_array"`, or None for no pictures.
        **parameters: Given to `Pendulum`.

    Returns:
        The environment.
    """
    inner: gymnasium.Env = make_pendulum(render_mode=render_mode, **parameters)
    space = inner.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    high = np.array([1, 1, space.high[1]], np.float32)
    if anywhere:
        inner = _Anywhere(inner)
    return gymnasium.wrappers.TransformObservation(
        inner, _direction, gymnasium.spaces.Box(-high, high)
    )


class _Anywhere(gymnasium.Wrapper):
    """Starts in any state that can be observed, where no start is given."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start anew."""
        if options is None:
            space = self.observation_space
            assert isinstance(space, gymnasium.spaces.Box)
            own = self.np_random.integers(2**31) if seed is None else seed
            random = np.random.default_rng(own)
            options = {"state": random.uniform(space.low, space.high)}
        return self.env.reset(seed=seed, options=options)


def _direction(seen: np.ndarray) -> np.ndarray:
    """Give an angle by its cosine and sine."""
    return np.stack([np.cos(seen[0]), np.sin(seen[0]), seen[1]])


def make_ball(*, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the ball in a box.

    Args:
        render_mode: `"rgb_array"`, or None for no pictures.
        **parameters: Given to `Ball`.

    Returns:
        The environment.
    """
    world = Ball(**parameters)
    return WorldEnv(
        world,
        bounds=_bounds(world),
        painter=partial(painters.ball, side=float(world.side)),
        frames_per_second=10,
        render_mode=render_mode,
    )


def make_cart(*, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the cart on a rail without end.

    Args:
        render_mode: `"rgb_array"`, or None for no pictures.
        **parameters: Given to `double_integrator`.

    Returns:
        The environment.
    """
    return WorldEnv(
        double_integrator(**parameters),
        painter=painters.cart,
        frames_per_second=10,
        render_mode=render_mode,
    )


def make_grid(*, name: str, render_mode: str | None = None, **parameters: Any) -> GridEnv:
    """Make one of the grids.

    Args:
        name: The name of the grid in `empowerment.worlds.WORLDS`.
        render_mode: `"rgb_array"`, or None for no pictures.
        **parameters: Given to `Grid`.

    Returns:
        The environment.
    """
    world = WORLDS[name](**parameters)
    assert isinstance(world, Grid)
    return GridEnv(world, render_mode=render_mode)


def _bounds(world: AbstractWorld) -> Box | None:
    """Give the states that a world keeps to: all it has, unless noise kicks it out."""
    centre = world.transition(world.states.centre, world.actions.centre)
    return None if bool((centre.scale > 0).any()) else world.states


_FACTORIES: dict[str, Callable[..., WorldEnv]] = {
    "pendulum": make_pendulum,
    "ball": make_ball,
    "cart": make_cart,
}


def register() -> None:
    """Make the environments known to `gymnasium.make`; again does no harm."""
    for name, environment_id in ENVIRONMENTS.items():
        if environment_id in gymnasium.registry:
            continue
        factory = _FACTORIES.get(name, make_grid)
        gymnasium.register(
            environment_id,
            # A string, so that a spec can be written to a file and read again.
            entry_point=f"{__name__}:{factory.__name__}",
            kwargs={"name": name} if factory is make_grid else {},
            max_episode_steps=_EPISODE_STEPS.get(name, _GRID_EPISODE_STEPS),
        )
    for environment_id in (PENDULUM_DIRECTION, PENDULUM_ANYWHERE):
        is_short = environment_id == PENDULUM_ANYWHERE
        if environment_id not in gymnasium.registry:
            gymnasium.register(
                environment_id,
                entry_point=f"{__name__}:{make_pendulum_by_direction.__name__}",
                kwargs={"anywhere": is_short},
                max_episode_steps=_SHORT_STEPS if is_short else _EPISODE_STEPS["pendulum"],
            )
    if BALLS not in gymnasium.registry:
        gymnasium.register(
            BALLS,
            entry_point=f"{BallsEnv.__module__}:{BallsEnv.__name__}",
            max_episode_steps=_BALLS_EPISODE_STEPS,
        )
