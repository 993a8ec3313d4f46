"""Learnt worlds whose truth is known: which state of it is behind an observation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.environments import ENVIRONMENTS, PENDULUM_DIRECTION
from empowerment.experiments.agent import Made, bounded_world
from empowerment.experiments.evaluation import bounds_at
from empowerment.experiments.measures import angle_of
from empowerment.model import Filter
from empowerment.worlds import AbstractWorld

Observe = Callable[[Float[Array, "states axes"]], Float[Array, "states observation"]]
"""Gives what is observed in states."""

_NUM_SAMPLES = 4096
"""Draws for the bound of a state: differences between states are to be seen, not chance."""


@dataclass(frozen=True)
class Chart:
    """The world that an environment is of.

    Attributes:
        world: Its name.
        observe: What the environment shows of a state.
        locate: The state behind what it shows.
    """

    world: str
    observe: Observe
    locate: Callable[[np.ndarray], np.ndarray]


def _direction(states: Float[Array, "states axes"]) -> Float[Array, "states observation"]:
    angle, velocity = states.T
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), velocity], axis=1)


def _angle_and_velocity(
    seen: Float[np.ndarray, "times observation"],
) -> Float[np.ndarray, "times state"]:
    return np.stack([angle_of(seen), seen[:, 2]], axis=1)


CHARTS: dict[str | None, Chart] = {
    ENVIRONMENTS["ball"]: Chart("ball", lambda states: states, lambda seen: seen),
    PENDULUM_DIRECTION: Chart("pendulum", _direction, _angle_and_velocity),
    "Pendulum-v1": Chart("pendulum", _direction, _angle_and_velocity),
}
"""Environments whose worlds are known, by their id."""


def truth_of(made: Made) -> tuple[str, AbstractWorld]:
    """Give the name and the world that a run in an environment of `CHARTS` has learnt."""
    name = CHARTS[made.experiment.env].world
    return name, bounded_world(replace(made.experiment, world=name)).world


def learnt_landscape(
    made: Made, states: Float[np.ndarray, "states axes"]
) -> Float[np.ndarray, " states"]:
    """Give the bound on a learnt world, at the states that its filter recognises.

    Args:
        made: What a run in an environment of `CHARTS` has made.
        states: Of the world that is known.

    Returns:
        In nats.
    """
    assert made.model is not None
    own = Filter(made.model)
    seen = CHARTS[made.experiment.env].observe(jnp.asarray(states, float))
    first = jnp.repeat(seen[:, None], made.model.num_initial, axis=1)
    found = np.asarray(jax.jit(jax.vmap(own.init))(first))
    return bounds_at(made, found, 0, num_samples=_NUM_SAMPLES)
