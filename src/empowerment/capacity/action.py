"""The capacity of a single action of one axis, for noise of any kind.

The inputs are a line, so a dense sample of it needs neither additive noise nor continuity.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.capacity.blahut_arimoto import Capacity, DenseChannel, blahut_arimoto
from empowerment.types import Action, State
from empowerment.worlds import AbstractWorld, examine_noise, observation_density

_NUM_ACTIONS = 1025
"""Actions from one limit to the other."""

_MOST_NODES = 4096
"""Values of process noise in all, over which the density is integrated."""

_TAILS = 6.0
_SPACING = 0.5
"""Standard deviations between two observations, and between two nodes as they are perceived."""

_MOST_CELLS = 2**14
"""Most cells of a lattice of observations."""


def capacity_of_action(world: AbstractWorld, state: State, *, tolerance: float) -> Capacity:
    """Compute the capacity of one action from a table of densities.

    Args:
        world: A world with one action axis, and one perceived axis or two; with two, its
            density must be known in closed form.
        state: The state.
        tolerance: The largest difference of the bounds of Blahut-Arimoto, in nats.

    Returns:
        The capacity of a thousand actions between the limits.
    """
    shares = jnp.linspace(0.0, 1.0, _NUM_ACTIONS)[:, None]
    low, high = world.actions.low[None], world.actions.high[None]
    table = _table(world, state, low + shares * (high - low))
    return blahut_arimoto(DenseChannel(table), tolerance=tolerance)


def _table(
    world: AbstractWorld, state: State, actions: Float[Array, "actions 1"]
) -> Float[np.ndarray, "actions observations"]:
    """Tabulate the probability of each cell of observations after each action."""
    states = jnp.tile(state, (len(actions), 1))
    noise = examine_noise(world, states, actions[:, None], key=jax.random.key(0))
    if noise.is_absent or bool(noise.is_affine.all()):
        mean, scale = _closed_form(world, state, actions)
        return tabulate(np.asarray(mean, np.float64)[None], np.asarray(scale, np.float64)[None])
    scales = noise.process.max(axis=0)
    if (scales > 0).sum() > 1:
        raise ValueError(
            "Expected process noise on one axis of the state for an exact capacity, unless it is "
            f"perceived through an affine emission; got scales up to {scales.tolist()}. "
            "Use the variational estimator."
        )
    num_nodes = 64
    while True:
        mean, scale = (
            np.asarray(part, np.float64) for part in _integrated(world, state, actions, num_nodes)
        )
        gap = np.max(np.abs(np.diff(mean, axis=0)) / np.minimum(scale[1:], scale[:-1]))
        if gap <= _SPACING:
            weights = np.exp(-0.5 * np.linspace(-_TAILS, _TAILS, num_nodes) ** 2)
            return tabulate(mean, scale, weights / weights.sum())
        num_nodes *= 2
        if num_nodes > _MOST_NODES:
            raise ValueError(
                "Expected the noise of the emission to blur the process noise for an exact "
                f"capacity; got futures that are {gap:.3g} standard deviations apart. Use the "
                "variational estimator."
            )


@eqx.filter_jit
def _closed_form(
    world: AbstractWorld, state: State, actions: Float[Array, "actions 1"]
) -> tuple[Float[Array, "actions axes"], Float[Array, "actions axes"]]:
    futures = jax.vmap(lambda action: observation_density(world, state, action[None]))(actions)
    return futures.mean, futures.scale


@eqx.filter_jit
def _integrated(
    world: AbstractWorld, state: State, actions: Float[Array, "actions 1"], num_nodes: int
) -> tuple[Float[Array, "nodes actions 1"], Float[Array, "nodes actions 1"]]:
    """Compute what is perceived for each value of the process noise, along its only axis."""
    nodes = jnp.linspace(-_TAILS, _TAILS, num_nodes)

    def of_action(node: Array, action: Action):
        successor = world.transition(state, action)
        return world.emission(successor.mean + successor.scale * node)

    of_actions = jax.vmap(of_action, in_axes=(None, 0))
    futures = jax.vmap(of_actions, in_axes=(0, None))(nodes, actions)
    return futures.mean, futures.scale


def tabulate(
    mean: Float[np.ndarray, "nodes actions axes"],
    scale: Float[np.ndarray, "nodes actions axes"],
    weights: Float[np.ndarray, " nodes"] | None = None,
) -> Float[np.ndarray, "actions observations"]:
    """Tabulate mixtures of Gaussians on a lattice; their axes are independent."""
    weights = np.ones(1) if weights is None else weights
    low = (mean - _TAILS * scale).min(axis=(0, 1))
    high = (mean + _TAILS * scale).max(axis=(0, 1))
    counts = np.ceil((high - low) / (_SPACING * scale.min(axis=(0, 1)))) + 1
    if not np.prod(counts) <= _MOST_CELLS:
        raise ValueError(
            f"Expected futures to be distributed over at most {_MOST_CELLS} cells of half the "
            "least noise for an exact capacity; got "
            f"{' by '.join(f'{count:.0f}' for count in counts)}. Take a coarser resolution."
        )
    lattice = [np.linspace(*ends) for ends in zip(low, high, counts.astype(int), strict=True)]
    table = 0.0
    for weight, centres, widths in zip(weights, mean, scale, strict=True):
        density = np.ones((len(centres), 1))
        for points, centre, width in zip(lattice, centres.T, widths.T, strict=True):
            factor = np.exp(-0.5 * ((points - centre[:, None]) / width[:, None]) ** 2)
            factor /= factor.sum(axis=1, keepdims=True)
            density = (density[:, :, None] * factor[:, None]).reshape(len(centres), -1)
        table = table + weight * density
    return np.asarray(table)
