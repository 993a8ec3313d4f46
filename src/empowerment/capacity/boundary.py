"""Plans that lead to the border of the reachable set, by ascent through the world."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from empowerment.types import Action, Observation, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, mean_observation

_NUM_DIRECTIONS = 96
_NUM_ASCENTS = 8
_STRIDES = (0.0, 1.0, 0.5, 0.25, 0.1, 0.03)
"""Shares of a step that are tried; none of it among them, so that no ascent descends."""

_OFF_RAY = 3.0
"""How much a step beside a ray weighs against one along it."""

_BESIDE_RAY = 0.2
"""How far beside its ray, in standard deviations of the noise, a future may end."""


class Border(eqx.Module):
    """Plans to the border of a set, in the order of the angle at which they end.

    Attributes:
        plans: The plans.
        ends: The futures they lead to, in standard deviations of the noise.
        normals: Unit vectors that point out of the set.
    """

    plans: Float[Array, "*states border steps action"]
    ends: Float[Array, "*states border axes"]
    normals: Float[Array, "*states border axes"]


@eqx.filter_jit
def find_corners(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    samples: Float[Array, "samples steps action"],
    scale: Float[Array, " axes"],
) -> tuple[Border, Float[Array, "states samples axes"]]:
    """Find the plan that goes farthest in each of many directions.

    Each ascends from the best of many samples, and may take over the plan of any other.

    Args:
        world: The world.
        states: Where plans start.
        samples: Plans to ascend from.
        scale: The standard deviation of the noise on each perceived axis.

    Returns:
        The border of each state, and the futures of all samples.
    """
    directions = _circle() if scale.size == 2 else jnp.array([[1.0], [-1.0]])

    def of_state(state: State) -> tuple[Border, Float[Array, "samples axes"]]:
        futures = jax.vmap(lambda plan: mean_observation(world, state, plan) / scale)(samples)
        rounding = _rounding(futures)
        seen = _seen(world, state, scale, rounding)
        plans = samples[jnp.argmax(directions @ rounding @ futures.T, axis=1)]
        for _ in range(2):
            plans = jax.vmap(partial(_ascend, seen, _limits(world)))(directions, plans)
            ends = jax.vmap(seen)(plans)
            plans = plans[jnp.argmax(directions @ ends.T, axis=1)]
        ends = jax.vmap(seen)(plans)
        return _unround(Border(plans, ends, directions), rounding), futures

    return jax.vmap(of_state)(states)


@eqx.filter_jit
def find_hollows(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    corners: Border,
    futures: Float[Array, "states samples axes"],
    scale: Float[Array, " axes"],
) -> tuple[Border, Bool[Array, " states"]]:
    """Find also the plan that goes farthest along each of many rays from the middle.

    Directions find corners only; rays find what lies between them where the set is hollow.

    Args:
        world: The world.
        states: Where plans start.
        corners: What `find_corners` found.
        futures: The futures of all samples.
        scale: The standard deviation of the noise on each perceived axis.

    Returns:
        The border of each state, corners included, and whether it is star-shaped: whether
        every ray ended on itself.
    """
    directions = _circle()

    def of_state(
        state: State, corners: Border, futures: Float[Array, "samples axes"]
    ) -> tuple[Border, Bool[Array, ""]]:
        rounding = _rounding(futures)
        seen = _seen(world, state, scale, rounding)
        corner_ends = corners.ends @ rounding.T
        centre = corner_ends.mean(axis=0)
        ascend = partial(_ascend_ray, seen, _limits(world), centre)
        plans, ends, normals = jax.vmap(ascend, in_axes=(0, None, None))(
            directions, corners.plans, corner_ends
        )
        offsets = ends - centre[None, :]
        along = jnp.maximum(jnp.sum(offsets * directions, axis=1, keepdims=True), 0.0)
        beside = jnp.linalg.solve(rounding, (offsets - along * directions).T)
        is_star = jnp.all(jnp.linalg.norm(beside, axis=0) < _BESIDE_RAY)
        rays = _unround(Border(plans, ends, normals), rounding)
        border = jax.tree.map(lambda *both: jnp.concatenate(both), corners, rays)
        x, y = (border.ends @ rounding.T - centre[None, :]).T
        order = jnp.argsort(jnp.arctan2(y, x))
        return jax.tree.map(lambda leaf: leaf[order], border), is_star

    return jax.vmap(of_state)(states, corners, futures)


@eqx.filter_jit
def walk(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    plans: Float[Array, "states border steps action"],
    scale: Float[Array, " axes"],
    num_between: int,
) -> Float[Array, "states loop axes"]:
    """Trace the futures between neighbouring plans, all the way round."""
    shares = jnp.arange(num_between, dtype=plans.dtype) / num_between

    def of_state(
        state: State, plans: Float[Array, "border steps action"]
    ) -> Float[Array, "loop axes"]:
        change = jnp.roll(plans, -1, axis=0) - plans
        between = plans[:, None] + shares[None, :, None, None] * change[:, None]
        flat = between.reshape(-1, *plans.shape[1:])
        return jax.vmap(lambda plan: mean_observation(world, state, plan) / scale)(flat)

    return jax.vmap(of_state)(states, plans)


def _rounding(futures: Float[Array, "samples axes"]) -> Float[Array, "axes axes"]:
    """Give the linear map that makes a set look round, so that no part is overlooked."""
    centred = futures - futures.mean(axis=0, keepdims=True)
    # One hundredth keeps a set that is a line or a point from dividing by zero.
    spread = centred.T @ centred / futures.shape[0] + 0.01 * jnp.eye(futures.shape[1])
    lengths, axes = jnp.linalg.eigh(spread)
    return axes.T / jnp.sqrt(lengths)[:, None]


def _unround(border: Border, rounding: Float[Array, "axes axes"]) -> Border:
    """Undo the rounding of ends and normals."""
    normals = border.normals @ rounding
    normals = normals / jnp.linalg.norm(normals, axis=1, keepdims=True)
    return Border(border.plans, jnp.linalg.solve(rounding, border.ends.T).T, normals)


def _seen(
    world: AbstractWorld,
    state: State,
    scale: Float[Array, " axes"],
    rounding: Float[Array, "axes axes"],
) -> Callable[[Plan], Observation]:
    """Give the function from plans to rounded futures."""
    return lambda plan: rounding @ (mean_observation(world, state, plan) / scale)


def _limits(world: AbstractWorld) -> tuple[Action, Action]:
    return world.actions.low, world.actions.high


def _circle() -> Float[Array, "directions 2"]:
    """Give unit vectors at equal angles."""
    angles = jnp.arange(_NUM_DIRECTIONS, dtype=float) * (2 * jnp.pi / _NUM_DIRECTIONS)
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)


def _ascend(
    seen: Callable[[Plan], Observation],
    limits: tuple[Action, Action],
    direction: Observation,
    plan: Plan,
) -> Plan:
    """Go from a plan to one whose future lies farther in a direction, by Frank-Wolfe."""
    low, high = (jnp.broadcast_to(limit, plan.shape) for limit in limits)

    def step(_: Int[Array, ""], plan: Plan) -> Plan:
        slope = jax.grad(lambda plan: direction @ seen(plan))(plan)
        corner = jnp.where(slope > 0, high, jnp.where(slope < 0, low, plan))
        tries = jnp.stack([plan + stride * (corner - plan) for stride in _STRIDES])
        return tries[jnp.argmax(jax.vmap(seen)(tries) @ direction)]

    return jax.lax.fori_loop(0, _NUM_ASCENTS, step, plan)


def _ascend_ray(
    seen: Callable[[Plan], Observation],
    limits: tuple[Action, Action],
    centre: Observation,
    direction: Observation,
    plans: Float[Array, "starts steps action"],
    ends: Float[Array, "starts axes"],
) -> tuple[Plan, Observation, Observation]:
    """Go to a plan whose future lies farther along a ray, by linear programs.

    Around a plan the future is linear in the plan, so the farthest point of the ray is a
    linear program with one equation: the one that keeps it on the ray.

    Returns:
        The plan, its future, and the direction that points out of the set there.
    """
    across = jnp.stack([-direction[1], direction[0]])

    def merit(end: Observation) -> Scalar:
        offset = end - centre
        return direction @ offset - _OFF_RAY * jnp.abs(across @ offset)

    def step(_: Int[Array, ""], carry: tuple[Plan, Observation]) -> tuple[Plan, Observation]:
        plan = carry[0]
        jacobian = jax.jacrev(seen)(plan)
        gain = jnp.tensordot(direction, jacobian, 1)
        drift = jnp.tensordot(across, jacobian, 1)
        aim = across @ (centre - seen(plan)) + jnp.sum(drift * plan)
        target, multiplier = _linear_program(gain, drift, aim, limits)
        tries = jnp.stack([plan + stride * (target - plan) for stride in _STRIDES])
        best = tries[jnp.argmax(jax.vmap(merit)(jax.vmap(seen)(tries)))]
        return best, direction - multiplier * across

    start = plans[jnp.argmax(jax.vmap(merit)(ends))]
    plan, normal = jax.lax.fori_loop(0, _NUM_ASCENTS, step, (start, direction))
    return plan, seen(plan), normal / jnp.linalg.norm(normal)


def _linear_program(
    gain: Plan, constraint: Plan, value: Scalar, limits: tuple[Action, Action]
) -> tuple[Plan, Scalar]:
    r"""Maximise $g^\top u$ with $c^\top u = v$ and every action within its limits.

    The multiplier $\lambda$ of the equation decides each action by the sign of $g_i -
    \lambda c_i$. As it grows, actions flip one by one at $g_i / c_i$; the one at which the
    equation is met is left in between.

    Returns:
        The plan and the multiplier; the plan nearest to the value if none meets it.
    """
    low, high = (jnp.broadcast_to(limit, gain.shape).ravel() for limit in limits)
    shape, gain, constraint = gain.shape, gain.ravel(), constraint.ravel()
    free = constraint == 0
    flips = jnp.where(free, jnp.inf, gain / jnp.where(free, 1.0, constraint))
    is_high = jnp.where(free, gain, constraint) > 0
    before, after = jnp.where(is_high, high, low), jnp.where(is_high, low, high)
    order = jnp.argsort(flips)
    drop = jnp.abs(constraint * (high - low))[order]
    excess = constraint @ before - value - (jnp.cumsum(drop) - drop)
    share = jnp.where(drop == 0, 0.0, jnp.clip(excess / jnp.where(drop == 0, 1.0, drop), 0, 1))
    plan = before.at[order].add(share * (after - before)[order])
    multiplier = flips[order][jnp.clip(jnp.sum(share > 0) - 1, 0)]
    return plan.reshape(shape), jnp.where(jnp.isfinite(multiplier), multiplier, 0.0)
