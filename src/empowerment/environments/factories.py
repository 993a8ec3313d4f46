"""Factories of the registered environments, with their worlds and painters."""

from functools import partial
from typing import Any

import gymnasium
import gymnasium.wrappers
import numpy as np

from empowerment.environments import painters, rod_painters
from empowerment.environments.grid_env import GridEnv
from empowerment.environments.world_env import WorldEnv
from empowerment.worlds import (
    WORLDS,
    AbstractWorld,
    Ball,
    Box,
    CartPole,
    Chain,
    Grid,
    Pendulum,
    double_integrator,
)
from empowerment.worlds.base import probe


def make_pendulum(*, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the pendulum, with the parameters of `Pendulum`."""
    world = Pendulum(**parameters)
    return WorldEnv(
        world,
        bounds=_bounds(world),
        painter=partial(painters.pendulum, max_torque=float(world.max_torque)),
        frames_per_second=max(round(1 / float(world.interval)), 1),
        render_mode=render_mode,
    )


def make_pendulum_by_direction(
    *, anywhere: bool = False, render_mode: str | None = None, **parameters: Any
) -> gymnasium.Env:
    """Make the pendulum with its angle observed as cosine and sine, without a jump.

    Args:
        anywhere: Whether to start at any speed, rather than nearly at rest.
        render_mode: `"rgb_array"`, or None for no rendering.
        **parameters: Passed to `Pendulum`.

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
    """Wrapper that starts in any observable state, unless a start state is given."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        if options is None:
            space = self.observation_space
            assert isinstance(space, gymnasium.spaces.Box)
            own_seed = self.np_random.integers(2**31) if seed is None else seed
            random = np.random.default_rng(own_seed)
            options = {"state": random.uniform(space.low, space.high)}
        return self.env.reset(seed=seed, options=options)


def _direction(observation: np.ndarray) -> np.ndarray:
    angle, velocity = observation
    return np.stack([np.cos(angle), np.sin(angle), velocity])


def make_ball(*, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the ball in a box, with the parameters of `Ball`."""
    world = Ball(**parameters)
    return WorldEnv(
        world,
        bounds=_bounds(world),
        painter=partial(painters.ball, side=float(world.side)),
        frames_per_second=10,
        render_mode=render_mode,
    )


def make_cart(*, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the cart on an unbounded rail, with the parameters of `double_integrator`."""
    return WorldEnv(
        double_integrator(**parameters),
        painter=painters.cart,
        frames_per_second=10,
        render_mode=render_mode,
    )


def make_chain(*, name: str, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the chain of a name in `empowerment.worlds.WORLDS`, with the parameters of `Chain`."""
    world = WORLDS[name](**parameters)
    assert isinstance(world, Chain)
    paint = partial(rod_painters.chain, driven=world.driven, max_torque=float(world.max_torque))
    return _rods(world, paint, render_mode)


def make_cart_pole(*, render_mode: str | None = None, **parameters: Any) -> WorldEnv:
    """Make the pole on a cart, with the parameters of `CartPole`."""
    world = CartPole(**parameters)
    paint = partial(
        rod_painters.cart_pole,
        rail=float(world.rail),
        length=float(world.pole_length),
        max_force=float(world.max_force),
    )
    return _rods(world, paint, render_mode)


def _rods(world: Chain | CartPole, painter: painters.Painter, render_mode: str | None) -> WorldEnv:
    rate = max(round(1 / world.interval), 1)
    return WorldEnv(world, painter=painter, frames_per_second=rate, render_mode=render_mode)


def make_grid(*, name: str, render_mode: str | None = None, **parameters: Any) -> GridEnv:
    """Make the grid of a name in `empowerment.worlds.WORLDS`, with the parameters of `Grid`."""
    world = WORLDS[name](**parameters)
    assert isinstance(world, Grid)
    return GridEnv(world, render_mode=render_mode)


def _bounds(world: AbstractWorld) -> Box | None:
    """Return the states that a world never leaves; None where process noise has no bounds."""
    _, transition, _ = probe(world, world.states, world.actions)
    return None if np.any(np.asarray(transition.scale) > 0) else world.states
