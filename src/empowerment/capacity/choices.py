"""The capacity of plans of discrete actions, by enumeration."""

import itertools

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from empowerment.capacity.action import tabulate
from empowerment.capacity.blahut_arimoto import Capacity, DenseChannel, blahut_arimoto
from empowerment.types import State
from empowerment.worlds import AbstractWorld, examine_noise, observation_density
from empowerment.worlds.base import as_array

_MOST_PLANS = 4096
"""Most plans whose futures are tabulated."""


def capacity_of_choices(
    world: AbstractWorld, state: State, *, steps: int, tolerance: float
) -> Capacity:
    """Compute the capacity of all plans of discrete actions from a table of densities.

    Args:
        world: A world with discrete actions and one perceived axis or two, whose density is known
            in closed form.
        state: The state.
        steps: The number of actions in a plan.
        tolerance: The largest difference of the bounds of Blahut-Arimoto, in nats.
    """
    plans = _all_plans(world, steps)
    states = as_array(np.tile(np.asarray(state), (len(plans), 1)))
    noise = examine_noise(world, states, plans, key=jax.random.key(0))
    if noise.scale.shape[1] > 2 or not (
        noise.is_absent or (steps == 1 and bool(noise.is_affine.all()))
    ):
        raise ValueError(
            "Expected at most two perceived axes, and no process noise but for a single step with "
            "an affine emission, for an exact capacity; got another world. Use the variational "
            "estimator."
        )
    mean, scale = _futures(world, state, plans)
    table = tabulate(np.asarray(mean, np.float64)[None], np.asarray(scale, np.float64)[None])
    return blahut_arimoto(DenseChannel(table), tolerance=tolerance)


def _all_plans(world: AbstractWorld, steps: int) -> Float[Array, "plans steps action"]:
    """Return all plans, one-hot."""
    count = world.actions.num_choices
    if count**steps > _MOST_PLANS:
        raise ValueError(
            f"Expected at most {_MOST_PLANS} plans for an exact capacity; {count} actions in "
            f"{steps} steps have {count**steps}. Take fewer steps, or the variational estimator."
        )
    indices = np.array(list(itertools.product(range(count), repeat=steps)))
    return as_array(np.asarray(world.actions.all_choices())[indices])


@eqx.filter_jit
def _futures(
    world: AbstractWorld, state: State, plans: Float[Array, "plans steps action"]
) -> tuple[Float[Array, "plans axes"], Float[Array, "plans axes"]]:
    futures = jax.vmap(lambda plan: observation_density(world, state, plan))(plans)
    return futures.mean, futures.scale
