"""`empower landscape`."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from empowerment.cli.console import log, show_progress
from empowerment.files import check_writable, read_columns
from empowerment.landscapes import compute_landscape, grid_states, make_world, state_names
from empowerment.report import check_drawable, draw_landscape, write_landscape


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
    """exact: capacity under amplitude limits, by Blahut-Arimoto over the reachable set, between
    bounds. gaussian: the linearised channel under a power limit, in closed form; fast, for any
    world, without bounds. variational: a channel trained for the whole world at once, a lower
    bound; with an upper bound where the density is known."""

    steps: int = 5
    """Number of actions in a plan."""

    resolution: Annotated[float | None, arg(metavar="FLOAT")] = None
    """Scale of the noise on what is perceived; by default the world's own."""

    grid: Annotated[str | None, arg(metavar="NxM")] = None
    """Number of states along each axis of the region, such as 41x61."""

    states: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """Read the states from the columns of this file instead of a grid."""

    out: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """Write the table to this file, and its description to FILE.json beside it."""

    figure: Annotated[Path | None, arg(metavar="FILE.png")] = None
    """Draw the landscape to this file."""

    family: str = "auto"
    """Family of source and planning of the variational estimator (codebook, intent, flow,
    gaussian, autoregressive, paper); auto is the tightest that the world allows."""

    budget: Literal["smoke", "full"] = "full"
    """Training budget of the variational estimator."""

    channel: Annotated[Path | None, arg(metavar="FILE.safetensors")] = None
    """Use the trained channel in this file for the variational estimator; if there is none, train
    it and store it there."""

    seed: int = 0
    """Random seed."""

    debug: bool = False
    """Show the traceback of an error."""

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
            states = read_columns(self.states, names)
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
            sys.stdout.write(landscape.to_csv())
        if self.out is not None:
            write_landscape(landscape, self.out)
        if self.figure is not None:
            draw_landscape(landscape, self.figure)
        log(landscape.summary())
        for what, path in (("table", self.out), ("figure", self.figure)):
            if path is not None:
                log(f"The {what} is in {path}.")
