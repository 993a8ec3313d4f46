"""Named worlds, grids of their states, and landscapes by the exact and closed-form estimators."""

import itertools
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.capacity import (
    Capacity,
    discrete_empowerment,
    exact_landscape,
    gaussian_empowerment,
)
from empowerment.channel import train_discrete
from empowerment.environments import ENVIRONMENTS
from empowerment.landscapes.variational import (
    DISCRETE_BUDGETS,
    trained_channel,
    variational_landscape,
)
from empowerment.report import Landscape
from empowerment.systems import system_of
from empowerment.types import Progress
from empowerment.worlds import WORLDS, AbstractWorld, Bounded, Grid

ESTIMATORS = ("exact", "gaussian", "variational")

_DEFAULT_GRID = {1: (201,), 2: (41, 61)}
_MAX_STATES = 1_000_000
_GAUSSIAN_BATCH = 4096


def make_world(name: str, *, resolution: float | None = None) -> AbstractWorld | Grid:
    """Build a named world."""
    if name not in WORLDS:
        raise ValueError(f"Expected WORLD to be one of {', '.join(WORLDS)}; got {name!r}.")
    world = WORLDS[name]()
    if resolution is None:
        return world
    if not (resolution > 0 and np.isfinite(resolution)):
        raise ValueError(
            f"Expected the resolution to be a number above zero; got {resolution}. Without "
            "noise on what is perceived, empowerment is infinite."
        )
    is_discrete = isinstance(world, Grid)
    if is_discrete:
        raise ValueError(
            f"Expected no resolution for {name}: its cells are told apart without error; "
            f"got {resolution}."
        )
    return WORLDS[name](resolution=resolution)


def state_names(world: AbstractWorld | Grid) -> tuple[str, ...]:
    """Return the names of the coordinates of a state."""
    return ("x", "y") if isinstance(world, Grid) else world.states.names


def grid_states(
    world: AbstractWorld | Grid, grid: str | None = None
) -> Float[np.ndarray, "states axes"]:
    """Return a grid of states of a world; every cell of a discrete world.

    Returns:
        The states; the last axis varies fastest.
    """
    if isinstance(world, Grid):
        if grid is not None:
            raise ValueError(
                f"Expected no grid for a discrete world: every cell is taken; got {grid!r}."
            )
        return np.array(world.cells, dtype=float)
    size = world.states.size
    counts = _DEFAULT_GRID.get(size, (11,) * size) if grid is None else _parse_grid(grid, size)
    axes = [
        np.linspace(low, high, count) if count > 1 else np.array([0.5 * (low + high)])
        for low, high, count in zip(
            world.states.low.tolist(), world.states.high.tolist(), counts, strict=True
        )
    ]
    return np.array(list(itertools.product(*axes)))


def _parse_grid(grid: str, size: int) -> tuple[int, ...]:
    parts = grid.lower().split("x")
    counts = tuple(int(part) if part.isascii() and part.isdigit() else 0 for part in parts)
    if len(counts) != size or min(counts) < 1 or np.prod(counts, dtype=float) > _MAX_STATES:
        raise ValueError(
            f"Expected the grid to be {size} whole numbers of at least 1 joined by x, of at "
            f"most {_MAX_STATES} states; got {grid!r}."
        )
    return counts


def compute_landscape(
    name: str,
    world: AbstractWorld | Grid,
    states: Float[np.ndarray, "states axes"],
    *,
    estimator: str,
    steps: int,
    family: str = "auto",
    budget: str = "full",
    channel: Path | None = None,
    seed: int = 0,
    progress: Progress = lambda doing, done, total: None,
) -> Landscape:
    """Estimate the empowerment of many states.

    Args:
        name: Name of the world.
        world: The world.
        states: The states; for a discrete world, the (x, y) of cells.
        estimator: `exact`, `gaussian` or `variational`.
        steps: Number of actions in a plan.
        family: Family of source and planning, for the variational estimator.
        budget: `smoke` or `full`, for the variational estimator.
        channel: File of the trained channel of the variational estimator: loaded if it exists,
            else written.
        seed: Random seed.
        progress: Receives progress.

    Returns:
        The landscape, with bounds if the estimator proves them.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(
            f"Expected the estimator to be one of {', '.join(ESTIMATORS)}; got {estimator!r}."
        )
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    if not 0 <= seed < 2**32:
        raise ValueError(f"Expected the seed to be from 0 to {2**32 - 1}; got {seed}.")
    about = describe(name, world, estimator=estimator, steps=steps, seed=seed)
    if estimator == "variational":
        about |= {"family": family, "budget": budget}
    if isinstance(world, Grid):
        return _discrete(world, states, about, progress=progress)
    if estimator == "gaussian":
        value = _gaussian(world, states, steps=steps, progress=progress)
        return Landscape(world.states.names, states, value, None, None, about)
    if estimator == "variational":
        squashed = Bounded(world)
        trained = trained_channel(
            squashed,
            family=family,
            steps=steps,
            budget=budget,
            seed=seed,
            progress=progress,
            path=channel,
            about={key: value for key, value in about.items() if key != "versions"},
        )
        found = variational_landscape(trained, squashed, states, seed=seed, progress=progress)
        bounds = found.value, found.lower, found.upper
        return Landscape(world.states.names, states, *bounds, about | found.about)
    capacities = exact_landscape(
        world, jnp.asarray(states, float), steps=steps, key=jax.random.key(seed)
    )
    return _collect(world.states.names, states, capacities, about, progress=progress)


def _collect(
    names: tuple[str, ...],
    states: Float[np.ndarray, "states axes"],
    capacities: Iterator[Capacity],
    about: dict[str, Any],
    *,
    progress: Progress,
) -> Landscape:
    """Collect capacities as they are computed."""
    rows = []
    for capacity in capacities:
        rows.append((capacity.value, capacity.lower, capacity.upper))
        progress("computing", len(rows), len(states))
    value, lower, upper = np.array(rows).T
    return Landscape(names, states, value, lower, upper, about)


def _discrete(
    world: Grid,
    states: Float[np.ndarray, "states axes"],
    about: dict[str, Any],
    *,
    progress: Progress,
) -> Landscape:
    """Compute the empowerment of cells."""
    if about["estimator"] == "gaussian":
        raise ValueError(
            "Expected the estimator to be exact or variational for a discrete world; got "
            "'gaussian'."
        )
    index = {cell: number for number, cell in enumerate(world.cells)}
    for x, y in states.tolist():
        if (x, y) not in index:
            raise ValueError(f"Expected every state to be the x,y of a cell; got {x:g},{y:g}.")
    cells = [index[x, y] for x, y in states.tolist()]
    steps = about["steps"]
    if about["estimator"] == "variational":
        bounds = train_discrete(
            world,
            steps=steps,
            num_updates=DISCRETE_BUDGETS[about["budget"]],
            key=jax.random.key(about["seed"]),
        )
        value = np.asarray(bounds, np.float64)[cells]
        return Landscape(("x", "y"), states, value, None, None, about)
    kernel = np.asarray(world.kernel)
    capacities = (discrete_empowerment(kernel, cell, steps=steps) for cell in cells)
    return _collect(("x", "y"), states, capacities, about, progress=progress)


def _gaussian(
    world: AbstractWorld,
    states: Float[np.ndarray, "states axes"],
    *,
    steps: int,
    progress: Progress,
) -> Float[np.ndarray, " states"]:
    """Compute the empowerment of the linearised channel at every state."""

    @eqx.filter_jit
    def of_batch(
        world: AbstractWorld, batch: Float[Array, "batch state"]
    ) -> Float[Array, " batch"]:
        return jax.vmap(lambda state: gaussian_empowerment(world, state, steps=steps))(batch)

    values = []
    for first in range(0, len(states), _GAUSSIAN_BATCH):
        batch = jnp.asarray(states[first : first + _GAUSSIAN_BATCH], float)
        values.append(np.asarray(of_batch(world, batch), np.float64))
        progress("computing", min(first + _GAUSSIAN_BATCH, len(states)), len(states))
    return np.concatenate(values)


def describe(
    name: str, world: AbstractWorld | Grid, *, estimator: str, steps: int, seed: int
) -> dict[str, Any]:
    """Describe a landscape: a capacity names its noise and its constraint."""
    about: dict[str, Any] = {
        "world": name,
        "estimator": estimator,
        "steps": steps,
        "unit": "nats",
        "seed": seed,
        "versions": {package: version(package) for package in ("empowerment", "jax", "numpy")},
    }
    if isinstance(world, Grid):
        return about | {"constraint": "none: finitely many moves", "drawing": world.drawing}
    limits = [world.actions.low.tolist(), world.actions.high.tolist()]
    if estimator == "gaussian":
        constraint = "power: that of an action uniform between its limits"
    else:
        constraint = "amplitude: every action between its limits"
    return about | {
        "noise": noise(world),
        "constraint": constraint,
        "limits": limits,
        "angles": list(world.states.angles),
        "units": dict(system_of(ENVIRONMENTS.get(name)).units),
    }


def noise(world: AbstractWorld) -> dict[str, list[float]]:
    """Return the noise of a world, without which no figure of information means anything."""
    return {
        "process": world.transition(world.states.centre, world.actions.centre).scale.tolist(),
        "perception": world.emission(world.states.centre).scale.tolist(),
    }
