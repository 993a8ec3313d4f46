"""`empower worlds`."""

import dataclasses

import jax.numpy as jnp
from rich.table import Table

from empowerment.cli.console import table_console
from empowerment.environments import ENVIRONMENTS
from empowerment.worlds import WORLDS, Grid


@dataclasses.dataclass(frozen=True)
class WorldsCommand:
    """List the named worlds."""

    debug: bool = False
    """Show the traceback of an error."""

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
        table_console(120).print(table)


def _ranges(box) -> str:
    """Format the axes of a box with their limits."""
    limits = zip(box.names, box.low.tolist(), box.high.tolist(), strict=True)
    return ", ".join(f"{name} {low:.4g}..{high:.4g}" for name, low, high in limits)


def _noise(world) -> float:
    """Return the scale of the noise on what is perceived."""
    return float(jnp.max(world.emission(world.states.centre).scale))
