"""`empower landscape` and `empower worlds`."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from empowerment.cli.console import say, show_progress
from empowerment.environments import ENVIRONMENTS
from empowerment.experiments import compute_landscape, grid_states, make_world, state_names
from empowerment.report import (
    Landscape,
    check_drawable,
    check_writable,
    draw_landscape,
    read_states,
    to_csv,
    write_landscape,
)
from empowerment.worlds import WORLDS, Grid


@dataclasses.dataclass(frozen=True)
class LandscapeCommand:
    """Compute the empowerment of many states of a world, in nats.

    Writes a CSV file with a column for each coordinate of a state (angle,velocity for the
    pendulum, angle 0 is upright; x,y for the ball), then empowerment, and lower,upper where
    the estimator gives bounds. Without --out the CSV goes to standard output.

    Try `empower landscape pendulum --steps 5 --figure pendulum.png --out pendulum.csv`,
    `empower landscape ball --steps 1 --resolution 0.1 --grid 21x21 --out ball.csv`, or
    `empower landscape pendulum --estimator gaussian --states mine.csv`.
    """

    world: Annotated[Positional[str], arg(metavar="WORLD")]
    """A world by its name; `empower worlds` lists them."""

    estimator: Literal["exact", "gaussian", "variational"] = "exact"
    """exact: capacity under the limits of the actions, by Blahut-Arimoto over all that can
    be reached, between bounds. gaussian: the linearised channel under a limit on power,
    in closed form; fast, for any world, without bounds. variational: a channel trained for
    the whole world at once, a lower bound; with an upper bound where that can be had."""

    steps: int = 5
    """How many actions a plan has."""

    resolution: Annotated[float | None, arg(metavar="FLOAT")] = None
    """The scale of the noise on what is perceived; the world's own if not given."""

    grid: Annotated[str | None, arg(metavar="NxM")] = None
    """States along each axis of the world's region, such as 41x61."""

    states: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """Take the states from the columns of this file instead of a grid."""

    out: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """Write the table here, and what it is to FILE.json beside it."""

    figure: Annotated[Path | None, arg(metavar="FILE.png")] = None
    """Draw the landscape here."""

    family: str = "auto"
    """Of the variational estimator: what kind of source and planning (codebook, intent, flow,
    gaussian, autoregressive, paper); auto is the tightest that the world allows."""

    budget: Literal["smoke", "full"] = "full"
    """Of the variational estimator: how long to train."""

    channel: Annotated[Path | None, arg(metavar="FILE.safetensors")] = None
    """Of the variational estimator: use the trained channel in this file; if there is none,
    train it and keep it there."""

    seed: int = 0
    """Of everything random."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Check everything, compute, then write."""
        if self.grid is not None and self.states is not None:
            raise ValueError("Expected one of --grid and --states; got both.")
        world = make_world(self.world, resolution=self.resolution)
        names = state_names(world)
        if self.figure is not None:
            check_drawable(names, self.figure)
        if self.out is not None and self.out.suffix == ".json":
            raise ValueError(
                f"Expected --out to be a file such as {self.out.with_suffix('.csv')}; got "
                f"{self.out}, where the description of the table goes."
            )
        for path in (self.out, self.figure, self.channel):
            if path is not None:
                check_writable(path)
        if self.states is not None:
            states = read_states(self.states, names)
        else:
            states = grid_states(world, self.grid)
        with show_progress(f"{self.world}, {self.steps}-step") as progress:
            landscape = compute_landscape(
                self.world,
                world,
                states,
                estimator=self.estimator,
                steps=self.steps,
                family=self.family,
                budget=self.budget,
                channel=self.channel,
                seed=self.seed,
                progress=progress,
            )
        if self.out is None and self.figure is None:
            sys.stdout.write(to_csv(landscape))
        if self.out is not None:
            write_landscape(landscape, self.out)
        if self.figure is not None:
            draw_landscape(landscape, self.figure)
        say(_summary(landscape))
        for what, path in (("table", self.out), ("picture", self.figure)):
            if path is not None:
                say(f"The {what} is in {path}.")


@dataclasses.dataclass(frozen=True)
class WorldsCommand:
    """List the worlds that can be called by name."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Print a table."""
        table = Table("world", "states", "actions", "noise", "environment")
        for name, make in WORLDS.items():
            world = make()
            if isinstance(world, Grid):
                row = (f"{len(world.cells)} cells x,y", "5 moves", "none needed")
            else:
                row = (_ranges(world.states), _ranges(world.actions), f"{_noise(world):g}")
            table.add_row(name, *row, ENVIRONMENTS[name])
        Console(width=None if sys.stdout.isatty() else 120).print(table)


def _summary(landscape: Landscape) -> str:
    """Say in one sentence where empowerment is highest and lowest."""
    value = landscape.empowerment
    if len(value) == 1:
        return f"Empowerment is {value[0]:.3f} nats."

    def at(index: int) -> str:
        pairs = zip(landscape.names, landscape.states[index], strict=True)
        return ", ".join(f"{name} {coordinate:.3g}" for name, coordinate in pairs)

    low, high = int(np.argmin(value)), int(np.argmax(value))
    sentence = (
        f"Empowerment of {len(value)} states: from {value[low]:.3f} nats at {at(low)} "
        f"to {value[high]:.3f} nats at {at(high)}"
    )
    if landscape.lower is None or landscape.upper is None:
        return f"{sentence}."
    gap = float(np.max(landscape.upper - landscape.lower))
    return f"{sentence}; bounds at most {gap:.3f} apart."


def _ranges(box) -> str:
    """Give the axes of a box with their limits."""
    limits = zip(box.names, box.low.tolist(), box.high.tolist(), strict=True)
    return ", ".join(f"{name} {low:.4g}..{high:.4g}" for name, low, high in limits)


def _noise(world) -> float:
    """Give the scale of the noise on what is perceived."""
    return float(jnp.max(world.emission(world.states.centre).scale))
