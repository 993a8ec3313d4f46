"""Plans to the boundary of the reachable set, by gradient ascent through the world."""

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
"""Step sizes of the line search; zero is among them, so that an ascent never descends."""

_OFF_RAY = 3.0
"""Penalty on distance from a ray, relative to progress along it."""

_BESIDE_RAY = 0.2
"""Tolerated distance of a future from its ray, in standard deviations of the noise."""


class Border(eqx.Module):
    """Plans to the boundary of a set, ordered by the angle of their futures.

    Attributes:
        plans: The plans.
        ends: Their futures, in standard deviations of the noise.
        normals: Outward unit normals of the set at `ends`.
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

    Each ascent starts from the best of many samples, and adopts the plan of another
    direction if that is better.

    Args:
        world: The world.
        states: The start states.
        samples: Candidate plans to start from.
        scale: The standard deviation of the noise on each perceived axis.

    Returns:
        The boundary for each state, and the futures of all samples.
    """
    directions = _circle() if scale.size == 2 else jnp.array([[1.0], [-1.0]])

    def of_state(state: State) -> tuple[Border, Float[Array, "samples axes"]]:
        futures = jax.vmap(lambda plan: mean_observation(world, state, plan) / scale)(samples)
        rounding = _rounding(futures)
        future = _future(world, state, scale, rounding)
        plans = samples[jnp.argmax(directions @ rounding @ futures.T, axis=1)]
        for _ in range(2):
            plans = jax.vmap(partial(_ascend, future, _limits(world)))(directions, plans)
            ends = jax.vmap(future)(plans)
            plans = plans[jnp.argmax(directions @ ends.T, axis=1)]
        ends = jax.vmap(future)(plans)
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
    """Find in addition the plan that goes farthest along each of many rays from the centre.

    Directions find extreme points only; rays find the boundary between them where the set is
    not convex.

    Args:
        world: The world.
        states: The start states.
        corners: The result of `find_corners`.
        futures: The futures of all samples.
        scale: The standard deviation of the noise on each perceived axis.

    Returns:
        The boundary for each state, corners included, and whether the set is star-shaped:
        whether the future of every ray lies on it.
    """
    directions = _circle()

    def of_state(
        state: State, corners: Border, futures: Float[Array, "samples axes"]
    ) -> tuple[Border, Bool[Array, ""]]:
        rounding = _rounding(futures)
        future = _future(world, state, scale, rounding)
        corner_ends = corners.ends @ rounding.T
        centre = corner_ends.mean(axis=0)
        ascend = partial(_ascend_ray, future, _limits(world), centre)
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
    """Trace the futures of interpolated plans around the closed boundary."""
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
    """Compute the whitening map of the futures: in a round set, directions miss no part."""
    centred = futures - futures.mean(axis=0, keepdims=True)
    # Regularised for sets that are a line or a point.
    covariance = centred.T @ centred / futures.shape[0] + 0.01 * jnp.eye(futures.shape[1])
    variances, axes = jnp.linalg.eigh(covariance)
    return axes.T / jnp.sqrt(variances)[:, None]


def _unround(border: Border, rounding: Float[Array, "axes axes"]) -> Border:
    """Map ends and normals back from whitened coordinates."""
    normals = border.normals @ rounding
    normals = normals / jnp.linalg.norm(normals, axis=1, keepdims=True)
    return Border(border.plans, jnp.linalg.solve(rounding, border.ends.T).T, normals)


def _future(
    world: AbstractWorld,
    state: State,
    scale: Float[Array, " axes"],
    rounding: Float[Array, "axes axes"],
) -> Callable[[Plan], Observation]:
    """Return the map from plans to whitened futures."""
    return lambda plan: rounding @ (mean_observation(world, state, plan) / scale)


def _limits(world: AbstractWorld) -> tuple[Action, Action]:
    return world.actions.low, world.actions.high


def _circle() -> Float[Array, "directions 2"]:
    """Return unit vectors at equal angles."""
    angles = jnp.arange(_NUM_DIRECTIONS, dtype=float) * (2 * jnp.pi / _NUM_DIRECTIONS)
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)


def _ascend(
    future: Callable[[Plan], Observation],
    limits: tuple[Action, Action],
    direction: Observation,
    plan: Plan,
) -> Plan:
    """Improve a plan so that its future lies farther in a direction, by Frank-Wolfe."""
    low, high = (jnp.broadcast_to(limit, plan.shape) for limit in limits)

    def step(_: Int[Array, ""], plan: Plan) -> Plan:
        slope = jax.grad(lambda plan: direction @ future(plan))(plan)
        corner = jnp.where(slope > 0, high, jnp.where(slope < 0, low, plan))
        tries = jnp.stack([plan + stride * (corner - plan) for stride in _STRIDES])
        return tries[jnp.argmax(jax.vmap(future)(tries) @ direction)]

    return jax.lax.fori_loop(0, _NUM_ASCENTS, step, plan)


def _ascend_ray(
    future: Callable[[Plan], Observation],
    limits: tuple[Action, Action],
    centre: Observation,
    direction: Observation,
    plans: Float[Array, "starts steps action"],
    ends: Float[Array, "starts axes"],
) -> tuple[Plan, Observation, Observation]:
    """Find a plan whose future lies farther along a ray, by sequential linear programming.

    With the future linearised around a plan, the farthest point on the ray solves a linear
    program with one equality constraint: the point stays on the ray.

    Returns:
        The plan, its future, and the outward normal of the set there.
    """
    across = jnp.stack([-direction[1], direction[0]])

    def merit(end: Observation) -> Scalar:
        offset = end - centre
        return direction @ offset - _OFF_RAY * jnp.abs(across @ offset)

    def step(_: Int[Array, ""], carry: tuple[Plan, Observation]) -> tuple[Plan, Observation]:
        plan = carry[0]
        jacobian = jax.jacrev(future)(plan)
        gain = jnp.tensordot(direction, jacobian, 1)
        drift = jnp.tensordot(across, jacobian, 1)
        aim = across @ (centre - future(plan)) + jnp.sum(drift * plan)
        target, multiplier = _linear_program(gain, drift, aim, limits)
        tries = jnp.stack([plan + stride * (target - plan) for stride in _STRIDES])
        best = tries[jnp.argmax(jax.vmap(merit)(jax.vmap(future)(tries)))]
        return best, direction - multiplier * across

    start = plans[jnp.argmax(jax.vmap(merit)(ends))]
    plan, normal = jax.lax.fori_loop(0, _NUM_ASCENTS, step, (start, direction))
    return plan, future(plan), normal / jnp.linalg.norm(normal)


def _linear_program(
    gain: Plan, constraint: Plan, value: Scalar, limits: tuple[Action, Action]
) -> tuple[Plan, Scalar]:
    r"""Maximise $g^\top u$ subject to $c^\top u = v$ and bounds on every action.

    The multiplier $\lambda$ of the constraint determines each action by the sign of $g_i -
    \lambda c_i$. As it grows, actions flip one by one at $g_i / c_i$; the one at which the
    constraint is met takes an intermediate value.

    Returns:
        The plan and the multiplier; if infeasible, the plan that comes closest to $v$.
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
