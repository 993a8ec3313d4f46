"""Gymnasium's pole on a cart, which is pushed to the left or to the right: its page."""

from typing import Any

import gymnasium

from empowerment.report import Live, Parameters
from empowerment.systems.base import System
from empowerment.systems.live import scripts

_PARAMETERS = (
    "gravity",
    "masscart",
    "masspole",
    "length",
    "force_mag",
    "tau",
    "theta_threshold_radians",
    "x_threshold",
)


def _parameters(environment: gymnasium.Env) -> Parameters:
    """Read the parameters of the equations; the page integrates as the environment does."""
    inner: Any = environment.unwrapped
    return {name: float(getattr(inner, name)) for name in _PARAMETERS}


SYSTEMS = (
    System(
        environments=("CartPole-v0", "CartPole-v1"),
        live=Live("gymnasium_cart_pole", scripts("cart_pole.js"), _parameters),
    ),
)
