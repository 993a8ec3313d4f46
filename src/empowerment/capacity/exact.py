"""Exact empowerment under amplitude constraints on actions."""

import dataclasses
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

from empowerment.capacity.blahut_arimoto import AdditiveChannel, Capacity, blahut_arimoto
from empowerment.capacity.reachable import Reachable, reachable
from empowerment.types import Key, State
from empowerment.worlds import AbstractWorld

_BATCH = 64
"""States per batch."""

_AXIS_SPACING = 0.25
"""Standard deviations between the inputs along one axis of a box."""


def exact_empowerment(
    world: AbstractWorld, state: State, *, steps: int, key: Key, tolerance: float = 1e-3
) -> Capacity:
    r"""Compute the empowerment of a state: the capacity from plans to perceived futures.

    Karl et al. (2018), Eq. 2 (eq:empowerment), for plans of any length under bounds on the
    amplitude of each action: $\mathcal{E}(z) = \max_\omega I(x', u_{1:n} | z)$. For worlds
    with at most two perceived dimensions and additive noise: transitions without process
    noise, or a single step.

    Args:
        world: The world.
        state: The state $z$.
        steps: The number of actions $n$.
        key: Consumed; the result hardly depends on it, see `reachable`.
        tolerance: The largest difference of the bounds of Blahut-Arimoto, in nats.

    Returns:
        The capacity. `lower` is attained by reachable futures; `upper` holds for the
        enclosure of the reachable set; `value` is the capacity of the inner set, to within
        half the tolerance.
    """
    return next(exact_landscape(world, state[None], steps=steps, key=key, tolerance=tolerance))


def exact_landscape(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    *,
    steps: int,
    key: Key,
    tolerance: float = 1e-3,
) -> Iterator[Capacity]:
    """Compute the empowerment of many states, in their order.

    Args:
        world: The world.
        states: The states.
        steps: The number of actions.
        key: Consumed.
        tolerance: The largest difference of the bounds of Blahut-Arimoto, in nats.

    Yields:
        The capacity of each state, as from `exact_empowerment`.
    """
    scale = _noise(world, states, steps)
    size = len(states)
    # Pad the last batch, so that all batches have the compiled shape.
    padded = states[jnp.minimum(jnp.arange(size + -size % min(_BATCH, size)), size - 1)]
    for first in range(0, size, _BATCH):
        sets = reachable(world, padded[first : first + _BATCH], scale, steps=steps, key=key)
        # Many small matrix products: one state per core is faster than threaded BLAS.
        with (
            threadpool_limits(1, user_api="blas"),
            ThreadPoolExecutor(os.cpu_count()) as pool,
        ):
            solve = partial(capacity_of, tolerance=tolerance)
            capacities = list(pool.map(solve, sets[: size - first]))
        yield from capacities


def capacity_of(found: Reachable, *, tolerance: float) -> Capacity:
    """Compute the capacity of a reachable set under additive noise of unit scale.

    Args:
        found: The set, in standard deviations of the noise.
        tolerance: The largest difference of the bounds of Blahut-Arimoto, in nats.

    Returns:
        The capacity, with an upper bound over the whole cover.
    """
    if found.is_box:
        return _capacity_of_box(found.inputs, tolerance=tolerance)
    channel = AdditiveChannel(found.inputs, np.ones(found.inputs.shape[1]))
    inner = blahut_arimoto(channel, tolerance=tolerance)
    beyond = float(channel.divergence_at(found.cover, inner.source).max())
    return dataclasses.replace(inner, upper=max(inner.upper, beyond))


def _capacity_of_box(corners: Float[np.ndarray, "4 2"], *, tolerance: float) -> Capacity:
    """Sum the capacities and bounds of independent axes."""
    axes = []
    for low, high in zip(corners.min(axis=0), corners.max(axis=0), strict=True):
        points = np.linspace(low, high, int(np.ceil((high - low) / _AXIS_SPACING)) + 1)
        channel = AdditiveChannel(points[:, None], np.ones(1))
        axes.append(blahut_arimoto(channel, tolerance=0.5 * tolerance))
    first, second = axes
    return Capacity(
        value=first.value + second.value,
        lower=first.lower + second.lower,
        upper=first.upper + second.upper,
        source=np.outer(first.source, second.source).ravel(),
        iterations=max(first.iterations, second.iterations),
        stopped=first.stopped,
    )


def _noise(
    world: AbstractWorld, states: Float[Array, "states state"], steps: int
) -> Float[Array, " axes"]:
    """Return the scale of the perceived additive noise; raise where it is not additive."""
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    if not world.actions.finite:
        raise ValueError(
            "Expected the limits of the actions to be finite for an exact capacity; got "
            f"{world.actions.low.tolist()} to {world.actions.high.tolist()}."
        )
    process, emission, gain = _noise_at(world, states)
    if emission.shape[1] > 2:
        raise ValueError(
            "Expected at most two perceived dimensions for an exact capacity; got "
            f"{emission.shape[1]}. Use the gaussian estimator."
        )
    if steps > 1 and bool(jnp.any(process > 0)):
        raise ValueError(
            "Expected no process noise for an exact capacity over more than one step; got a "
            f"scale of {process.max(axis=0).tolist()}. Use the gaussian estimator."
        )
    covariance = jnp.einsum("sij,sj,skj->sik", gain, process**2, gain)
    total = covariance + jax.vmap(jnp.diag)(emission**2)
    variance = jnp.diagonal(total, axis1=1, axis2=2)
    correlated = jnp.abs(total - jax.vmap(jnp.diag)(variance)).max() > 1e-6 * variance.max()
    if bool(correlated) or not bool(jnp.allclose(variance, variance[:1], rtol=1e-3)):
        raise ValueError(
            "Expected the perceived noise to be the same at every state and independent along "
            "each axis for an exact capacity; it is not. Use the gaussian estimator."
        )
    return jnp.sqrt(variance[0])


@eqx.filter_jit
def _noise_at(
    world: AbstractWorld, states: Float[Array, "states state"]
) -> tuple[
    Float[Array, "states state"],
    Float[Array, "states observation"],
    Float[Array, "states observation state"],
]:
    """Compute scales of transition and emission, and the Jacobian of the emission."""

    def of_state(state: State):
        process = world.transition(state, world.actions.centre).scale
        gain = jax.jacfwd(lambda state: world.emission(state).mean)(state)
        return process, world.emission(state).scale, gain

    return jax.vmap(of_state)(states)
