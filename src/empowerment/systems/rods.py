"""Rods on hinges, to be swung up: how high the tip is at the end of an episode."""

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.data import Episode
from empowerment.environments import ENVIRONMENTS, WorldEnv
from empowerment.systems.base import System, Watched
from empowerment.systems.live import live_world
from empowerment.worlds import CartPole, Chain

_LAST = 0.1
"""Fraction of an episode at its end over which the height is averaged: that of Shah and Tiomkin
(2026), Controllable Information Production."""


def height(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Compute the mean height of the tip at the end of episodes: 0 hanging, 1 upright."""
    del watched
    inner = environment.unwrapped
    assert isinstance(inner, WorldEnv)
    assert isinstance(inner.world, CartPole | Chain)
    ends = [each.observations[-round(_LAST * each.length) :] for each in episodes]
    every = np.asarray(_heights(inner.world, jnp.asarray(np.concatenate(ends))))
    heights = [
        np.mean(each) for each in np.split(every, np.cumsum([len(end) for end in ends])[:-1])
    ]
    return {"height_mean": float(np.mean(heights)), "height_lowest": float(np.min(heights))}


@eqx.filter_jit
def _heights(
    world: CartPole | Chain, states: Float[Array, "times state"]
) -> Float[Array, " times"]:
    return jax.vmap(world.height)(states)


def summary(figures: dict) -> list[str]:
    """Describe how high the tip is in the end."""
    return [
        "In the last tenth of an episode the tip is at "
        f"{figures['height_mean']:.3f} of its height on average over episodes, "
        f"{figures['height_lowest']:.3f} in the lowest (0 hanging, 1 upright; random: "
        f"{figures['uniform']['height_mean']:.3f})."
    ]


_UNITS = {
    "position": "m",
    "velocity": "m/s",
    "angle": "rad",
    "turning": "rad/s",
    **{f"angle_{number}": "rad" for number in (1, 2, 3)},
    **{f"velocity_{number}": "rad/s" for number in (1, 2, 3)},
}
_RODS = System(metrics=height, summary=summary, units=_UNITS)
_LIVE = {"cart-pole": "cart_pole", "double-pendulum": "chain", "triple-pendulum": "chain"}
"""What these systems are called in the script of the page."""

SYSTEMS = tuple(
    replace(_RODS, environments=(ENVIRONMENTS[name],), live=live_world(script, "rods.js"))
    for name, script in _LIVE.items()
)
