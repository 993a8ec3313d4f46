"""Simulated worlds and their rollouts."""

from collections.abc import Callable
from functools import partial

from empowerment.worlds.ball import Ball
from empowerment.worlds.base import AbstractWorld, Bounded, Box
from empowerment.worlds.grid import DOORWAYS, MAZE, MOVES, ROOM, Grid
from empowerment.worlds.linear import LinearGaussian, double_integrator
from empowerment.worlds.pendulum import Pendulum
from empowerment.worlds.rollouts import (
    has_closed_form_density,
    mean_observation,
    observation_density,
    perceive,
    switching_plans,
    unroll,
)

WORLDS: dict[str, Callable[..., AbstractWorld | Grid]] = {
    "pendulum": Pendulum,
    "ball": Ball,
    "cart": double_integrator,
    "room": partial(Grid, ROOM),
    "maze": partial(Grid, MAZE),
    "doorways": partial(Grid, DOORWAYS),
    "slippery": partial(Grid, DOORWAYS, slip=0.2),
}
"""Named worlds, as factories with default parameters."""

__all__ = [
    "DOORWAYS",
    "MAZE",
    "MOVES",
    "ROOM",
    "WORLDS",
    "AbstractWorld",
    "Ball",
    "Bounded",
    "Box",
    "Grid",
    "LinearGaussian",
    "Pendulum",
    "double_integrator",
    "has_closed_form_density",
    "mean_observation",
    "observation_density",
    "perceive",
    "switching_plans",
    "unroll",
]
