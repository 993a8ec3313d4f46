r"""The set of perceived futures that plans can lead to, from within and from without.

A channel with additive noise depends on a plan only through the mean $\bar x$ of what is
perceived after it. This module finds the set of those means in one or two dimensions.

- *From within.* The plans that go farthest are sought, in many directions $d$
  ($\max_\mathrm{plan} d^\top \bar x$) and along as many rays. Walking from each of these
  plans to the next traces a closed curve of futures that are all reached. Every point it
  winds around is reached too: the plans form a convex set, so the loop of plans can be
  shrunk to a point, and its image sweeps over all that is inside.
- *From without.* The tangents at those farthest futures (chords, where the set is hollow)
  enclose the set in a polygon.

The first is a subset of the true set and the second a superset, so their capacities bound
the truth. It rests on every maximum being the global one: each is sought from the best of
thousands of plans, and every direction may take over the plan of any other.

A set that is not star-shaped (at a limit of the velocity, say, where half of it is pressed
flat) shows itself: rays end beside themselves. Then thousands of futures, spread over all
plans, stand for the set: thinned from within, all of them from without, which is a dense
sample and no proven enclosure. After a single action the set is a curve, sampled as such.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.capacity.boundary import Border, find_corners, find_hollows, walk
from empowerment.capacity.polygons import (
    area,
    beyond,
    circumscribe,
    fill,
    lattice,
    one_per_cell,
    thin,
)
from empowerment.types import Key
from empowerment.worlds import AbstractWorld, mean_observation, switching_plans

_NUM_SAMPLES = 8192
"""Candidate plans in the search for the farthest."""

_NUM_CURVE_POINTS = 2049

# Distances between points, in standard deviations of the noise. A lattice of Gaussians at
# spacing h ripples by 2 exp(-2 pi^2 / h^2), 1e-34 at 0.5: as good as a filled set.
_EDGE_SPACING = 0.4
_INNER_SPACING = 0.5
_FUTURES_SPACING = 0.3
_ENDS_SPACING = 0.05
_COVER_SPACING = 0.25  # Half of that of the inputs: the upper bound holds between them too.
_COVER_EDGE_SPACING = 0.1
_BOX_TOLERANCE = 0.02

_HOLLOW = 1e-4
"""The fraction of its polygon that a set may lack and still count as convex."""

_LARGEST_SET = 1e5
"""Largest area of the bounding rectangle; beyond, a single state would take minutes."""

_LONGEST_SET = 800
"""Largest extent along each axis, and along a curve, that `_EDGE_SPACING` resolves."""


@dataclass(frozen=True)
class Reachable:
    """The reachable set of one state, in standard deviations of the noise.

    Attributes:
        inputs: A dense sample of the futures that plans reach.
        cover: A dense sample of an enclosure of the set, including futures that `inputs`
            misses.
        is_box: Whether the set is an axis-parallel box. Then `inputs` are its corners, and
            the channel is a product of one channel for each axis.
    """

    inputs: Float[np.ndarray, "inputs axes"]
    cover: Float[np.ndarray, "cover axes"]
    is_box: bool


def reachable(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    scale: Float[Array, " axes"],
    *,
    steps: int,
    key: Key,
) -> list[Reachable]:
    """Find the reachable set of each of a batch of states.

    Args:
        world: A world with finite action bounds and one or two perceived axes.
        states: The start states.
        scale: The standard deviation of the noise on each perceived axis.
        steps: The number of actions in a plan.
        key: Consumed.

    Returns:
        One set for each state.
    """
    samples = switching_plans(world.actions, steps, _NUM_SAMPLES, key=key)
    is_curve = samples[0].size == 1
    find = _sets_of_curves if is_curve else _sets_of_borders
    return find(world, states, samples, scale)


def _sets_of_curves(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    samples: Float[Array, "samples steps action"],
    scale: Float[Array, " axes"],
) -> list[Reachable]:
    """Trace the futures of a single action between its bounds."""
    del samples
    lines = np.asarray(_trace(world, states, scale), np.float64)
    _check_size(np.linalg.norm(np.diff(lines, axis=1), axis=2).sum(axis=1).max(keepdims=True))
    return [_set_of_curve(line) for line in lines]


def _set_of_curve(line: Float[np.ndarray, "curve axes"]) -> Reachable:
    """Thin a curve, but keep both sides of every jump; fill an interval without any."""
    gaps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    if line.shape[1] == 1 and gaps.max() <= _EDGE_SPACING:
        return _set_of_interval(float(line.min()), float(line.max()))
    jumps = np.flatnonzero(gaps > _COVER_EDGE_SPACING)
    sides = line[np.union1d(jumps, jumps + 1)]
    inputs, cover = (
        np.concatenate([thin(line, spacing), sides])
        for spacing in (_EDGE_SPACING, _COVER_EDGE_SPACING)
    )
    return Reachable(inputs, cover, is_box=False)


@eqx.filter_jit
def _trace(
    world: AbstractWorld, states: Float[Array, "states state"], scale: Float[Array, " axes"]
) -> Float[Array, "states curve axes"]:
    shares = jnp.linspace(0.0, 1.0, _NUM_CURVE_POINTS)[:, None, None]
    low, high = world.actions.low[None, None], world.actions.high[None, None]
    of_plan = jax.vmap(lambda state, plan: mean_observation(world, state, plan) / scale, (None, 0))
    return jax.vmap(of_plan, (0, None))(states, low + shares * (high - low))


def _sets_of_borders(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    samples: Float[Array, "samples steps action"],
    scale: Float[Array, " axes"],
) -> list[Reachable]:
    """Find the boundary of each set, and fill it."""
    corners, futures = find_corners(world, states, samples, scale)
    _check_size(np.ptp(np.asarray(corners.ends, np.float64), axis=1).max(axis=0))
    if scale.size == 1:
        return [
            _set_of_interval(*sorted(pair)) for pair in np.asarray(corners.ends[..., 0], np.float64)
        ]
    convex = _outline(world, states, corners, scale)
    if all(outline.is_convex for outline in convex):
        return [_set_of_loop(outline) for outline in convex]
    border, is_star = find_hollows(world, states, corners, futures, scale)
    hollow = _outline(world, states, border, scale)
    return [
        _set_of_loop(first)
        if first.is_convex
        else _with_futures(_set_of_loop(second), sample)
        if star
        else _set_of_futures(second, sample)
        for first, second, star, sample in zip(
            convex, hollow, np.asarray(is_star), np.asarray(futures, np.float64), strict=True
        )
    ]


@dataclass(frozen=True)
class _Outline:
    """The boundary of a set: a closed loop of futures, and a polygon that encloses it."""

    loop: Float[np.ndarray, "loop 2"]
    ends: Float[np.ndarray, "border 2"]
    polygon: Float[np.ndarray, "polygon 2"]

    @property
    def is_convex(self) -> bool:
        """Whether the loop fills the polygon."""
        return area(self.loop) >= (1 - _HOLLOW) * area(self.polygon)


def _outline(
    world: AbstractWorld,
    states: Float[Array, "states state"],
    border: Border,
    scale: Float[Array, " axes"],
) -> list[_Outline]:
    """Trace the boundary of each set."""
    ends, normals = np.asarray(border.ends, np.float64), np.asarray(border.normals, np.float64)
    gaps = np.linalg.norm(np.diff(ends, axis=1, append=ends[:, :1]), axis=2)
    # A power of two limits the number of compiled shapes.
    num_between = 2 ** int(np.ceil(np.log2(max(gaps.max() / _EDGE_SPACING, 4))))
    loops = np.asarray(walk(world, states, border.plans, scale, num_between), np.float64)
    return [
        _Outline(loop, end, circumscribe(end, normal))
        for loop, end, normal in zip(loops, ends, normals, strict=True)
    ]


def _check_size(size: Float[np.ndarray, " axes"], largest: float = np.inf) -> None:
    """Check that a set does not need too many points."""
    if not (size.max() <= _LONGEST_SET and np.prod(size) <= largest):
        limit = f"{_LONGEST_SET} standard deviations of the noise along each axis"
        if np.isfinite(largest):
            limit += f" and {largest:.0f} squared in all"
        raise ValueError(
            f"Expected the reachable set to span at most {limit}; got "
            f"{' by '.join(f'{side:.0f}' for side in size)}. Take a coarser resolution or "
            "fewer steps."
        )


def _set_of_interval(low: float, high: float) -> Reachable:
    """Fill an interval: by continuity, plans in between reach all of it."""
    count = int(np.ceil((high - low) / _EDGE_SPACING)) + 1
    inputs = np.linspace(low, high, count)[:, None]
    return Reachable(inputs, np.linspace(low, high, 4 * count)[:, None], is_box=False)


def _set_of_loop(outline: _Outline) -> Reachable:
    """Fill a loop from within, and enclose it from without; a box keeps its corners alone."""
    low, high = outline.loop.min(axis=0), outline.loop.max(axis=0)
    size = high - low
    corners = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    missed = np.linalg.norm(corners[:, None] - outline.ends, axis=2).min(axis=1).max()
    if missed < _BOX_TOLERANCE and area(outline.loop) >= (1 - _HOLLOW) * np.prod(size):
        return Reachable(corners, corners, is_box=True)
    _check_size(size, _LARGEST_SET)
    edge = thin(np.concatenate([outline.loop, outline.loop[:1]]), _EDGE_SPACING)
    # The extreme points are always kept: corners carry the most information.
    ends = one_per_cell(outline.ends, _ENDS_SPACING)
    inputs = np.concatenate([ends, edge, lattice(edge, _INNER_SPACING)])
    polygon = outline.polygon
    rim = fill(np.concatenate([polygon, polygon[:1]]), _COVER_EDGE_SPACING)
    cover = np.concatenate([rim, lattice(polygon, _COVER_SPACING), inputs])
    return Reachable(inputs, cover, is_box=False)


def _with_futures(found: Reachable, futures: Float[np.ndarray, "samples 2"]) -> Reachable:
    """Add futures that a loop does not wind around, such as those of a ring."""
    if found.is_box:
        return found
    more = beyond(futures, found.inputs, _FUTURES_SPACING)
    outside = beyond(futures, found.inputs, 2 * _INNER_SPACING)
    if not len(outside):
        return found
    inputs = np.concatenate([found.inputs, more])
    return Reachable(inputs, np.concatenate([found.cover, more]), is_box=False)


def _set_of_futures(outline: _Outline, futures: Float[np.ndarray, "samples 2"]) -> Reachable:
    """Represent a set that is not star-shaped by its sampled futures."""
    edge = thin(np.concatenate([outline.loop, outline.loop[:1]]), _EDGE_SPACING)
    ends, inner = one_per_cell(outline.ends, _ENDS_SPACING), one_per_cell(futures, _FUTURES_SPACING)
    inputs = np.concatenate([ends, edge, inner])
    return Reachable(inputs, np.concatenate([inputs, outline.loop, futures]), is_box=False)
