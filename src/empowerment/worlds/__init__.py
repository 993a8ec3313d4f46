"""Simulated worlds and their rollouts."""

from collections.abc import Callable
from functools import partial

from empowerment.worlds.ball import Ball as Ball
from empowerment.worlds.base import (
    AbstractWorld as AbstractWorld,
    Bounded as Bounded,
    Box as Box,
    discrete as discrete,
)
from empowerment.worlds.grid import (
    DOORWAYS as DOORWAYS,
    MAZE as MAZE,
    MOVES as MOVES,
    ROOM as ROOM,
    Grid as Grid,
)
from empowerment.worlds.linear import (
    LinearGaussian as LinearGaussian,
    double_integrator as double_integrator,
)
from empowerment.worlds.pendulum import Pendulum as Pendulum
from empowerment.worlds.rods import CartPole as CartPole, Chain as Chain
from empowerment.worlds.rollouts import (
    examine_noise as examine_noise,
    has_closed_form_density as has_closed_form_density,
    mean_observation as mean_observation,
    observation_density as observation_density,
    perceive as perceive,
    switching_plans as switching_plans,
    unroll as unroll,
)

WORLDS: dict[str, Callable[..., AbstractWorld | Grid]] = {
    "pendulum": Pendulum,
    "ball": Ball,
    "cart": double_integrator,
    "cart-pole": CartPole,
    "double-pendulum": Chain,
    "triple-pendulum": partial(
        Chain, num_links=3, driven=(0, 1, 2), max_torque=25.0, damping=1.0, substeps=10
    ),
    "room": partial(Grid, ROOM),
    "maze": partial(Grid, MAZE),
    "doorways": partial(Grid, DOORWAYS),
    "slippery": partial(Grid, DOORWAYS, slip=0.2),
}
"""Named worlds, as factories with default parameters."""
