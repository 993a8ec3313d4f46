"""Exact empowerment under amplitude constraints on actions."""

import dataclasses
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

from empowerment.capacity.action import capacity_of_action
from empowerment.capacity.blahut_arimoto import AdditiveChannel, Capacity, blahut_arimoto
from empowerment.capacity.choices import capacity_of_choices
from empowerment.capacity.continuity import check_continuous
from empowerment.capacity.reachable import Reachable, reachable
from empowerment.types import Key, State
from empowerment.worlds import AbstractWorld, examine_noise, switching_plans

_BATCH = 64
"""States per batch."""

_NUM_EXAMINED = 256
"""Plans from each state along which the noise is examined."""

_EXAMINED_AT_ONCE = 1024
"""States whose noise is examined at once."""

_AXIS_SPACING = 0.25
"""Standard deviations between the inputs along one axis of a box."""


def exact_empowerment(
    world: AbstractWorld, state: State, *, steps: int, key: Key, tolerance: float = 1e-3
) -> Capacity:
    r"""Compute the empowerment of a state: the capacity from plans to perceived futures.

    Karl et al. (2018), Eq. 2 (eq:empowerment), for plans of any length under bounds on the
    amplitude of each action: $\mathcal{E}(z) = \max_\omega I(x', u_{1:n} | z)$. For worlds
    with at most two perceived dimensions in which futures depend continuously on the plan and
    noise is additive: the same along all plans, and without process noise but for a single step.
    After a single action of one axis, futures may jump, and noise may depend on state and action
    (with one perceived axis: noise of any kind). Plans of discrete actions are enumerated.

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
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    if world.actions.choices:
        for state in states:
            yield capacity_of_choices(world, state, steps=steps, tolerance=tolerance)
        return
    noise_key, jump_key, key = jax.random.split(key, 3)
    scale = _noise(world, states, steps, noise_key)
    if scale is None:
        for state in states:
            yield capacity_of_action(world, state, tolerance=tolerance)
        return
    size = len(states)
    # Pad the last batch, so that all batches have the compiled shape.
    padded = states[np.minimum(np.arange(size + -size % min(_BATCH, size)), size - 1)]
    for first in range(0, size, _BATCH):
        batch = padded[first : first + _BATCH]
        sets = reachable(world, batch, scale, steps=steps, key=key)
        check_continuous(world, batch, scale, steps=steps, key=jump_key)
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
    world: AbstractWorld, states: Float[Array, "states state"], steps: int, key: Key
) -> Float[Array, " axes"] | None:
    """Return the scale of the perceived noise; None if it varies along a single action.

    Raises:
        ValueError: If it varies otherwise.
    """
    if not world.actions.finite:
        raise ValueError(
            "Expected the limits of the actions to be finite for an exact capacity; got "
            f"{world.actions.low.tolist()} to {world.actions.high.tolist()}."
        )
    plan_key, noise_key = jax.random.split(key)
    plans = switching_plans(world.actions, steps, _NUM_EXAMINED, key=plan_key)
    is_gaussian = is_absent = True
    least, most, process = np.inf, -np.inf, np.zeros(states.shape[1])
    for first in range(0, len(states), _EXAMINED_AT_ONCE):
        part = np.asarray(states[first : first + _EXAMINED_AT_ONCE])
        repeated = np.repeat(part, len(plans), axis=0), np.tile(plans, (len(part), 1, 1))
        noise = jax.tree.map(
            np.asarray, examine_noise(world, *map(jnp.asarray, repeated), key=noise_key)
        )
        if noise.scale.shape[1] > 2:
            raise ValueError(
                "Expected at most two perceived dimensions for an exact capacity; got "
                f"{noise.scale.shape[1]}. Use the gaussian estimator."
            )
        is_absent &= noise.is_absent
        is_gaussian &= noise.is_absent or (steps == 1 and bool(noise.is_affine.all()))
        process = np.maximum(process, noise.process.max(axis=0))
        least = np.minimum(least, noise.scale.min(axis=0))
        most = np.maximum(most, noise.scale.max(axis=0))
    if is_gaussian and np.allclose(most, least, rtol=1e-3, atol=0.0):
        return jnp.asarray(least)
    if steps * world.actions.size == 1 and (is_gaussian or np.size(least) == 1):
        return None
    if steps > 1 and not is_absent:
        raise ValueError(
            "Expected no process noise for an exact capacity over more than one step; got a "
            f"scale of {process.tolist()}. Use the gaussian estimator."
        )
    raise ValueError(
        "Expected the perceived noise to be Gaussian, independent along each axis, and the same "
        "for every state and plan for an exact capacity; it is not. Use the variational estimator."
    )
