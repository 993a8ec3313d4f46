"""The command line, `empower`."""

import contextlib
import dataclasses
import io
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from tyro.conf import Positional, arg

from empowerment.capacity import NotConvergedError
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

_LINE_INTERVAL = 5.0
"""Seconds between two lines of progress where there is no terminal."""


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
        with _progress(f"{self.world}, {self.steps}-step") as progress:
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
        _say(_summary(landscape))
        for what, path in (("table", self.out), ("picture", self.figure)):
            if path is not None:
                _say(f"The {what} is in {path}.")


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what the user got wrong ends in one sentence and exit code 2.

    Args:
        arguments: The words after `empower`; those of the process if none.
    """
    command = _parse(sys.argv[1:] if arguments is None else arguments)
    try:
        command.run()
    except (ValueError, OSError, NotConvergedError) as error:
        if command.debug:
            raise
        _fail(str(error))
    except KeyboardInterrupt:
        _say("Interrupted; nothing was written.")
        raise SystemExit(130) from None


def _parse(arguments: Sequence[str]) -> LandscapeCommand | WorldsCommand:
    """Parse the command line; a mistake in it becomes one sentence."""
    commands = {"landscape": LandscapeCommand, "worlds": WorldsCommand}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.extras.subcommand_cli_from_dict(
                commands,
                prog="empower",
                description="Empowerment: how much a system can do about its own future.",
                args=arguments,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if stop.code != 2:
            raise
    # Of the parser's box, the text before the first rule is what is wrong.
    lines = [line.strip("│ \n") for line in complaint.getvalue().split("\n")[1:]]
    wrong = []
    for line in lines:
        if line.startswith(("───", "╰")):
            break
        wrong.append(line)
    _fail(f"{' '.join(wrong).rstrip('.')}. See empower --help.")
    raise AssertionError


def _fail(sentence: str) -> None:
    """End with one line on standard error and exit code 2."""
    print(f"empower: {' '.join(sentence.split())}", file=sys.stderr)
    raise SystemExit(2)


def _say(sentence: str) -> None:
    """Tell the user; standard output is for tables."""
    print(sentence, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _progress(title: str) -> Iterator:
    """Show progress: a bar on a terminal, a line now and then elsewhere."""
    console = Console(stderr=True)
    if console.is_terminal:
        text = TextColumn("{task.description}")
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(title, total=None)

            def show(doing: str, done: int, total: int) -> None:
                bar.update(task, description=f"{title}: {doing}", completed=done, total=total)

            yield show
        return
    last = time.monotonic()

    def report(doing: str, done: int, total: int) -> None:
        nonlocal last
        if done < total and time.monotonic() - last >= _LINE_INTERVAL:
            last = time.monotonic()
            _say(f"{title}: {doing}, {done} of {total}")

    yield report


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


if __name__ == "__main__":
    main()
