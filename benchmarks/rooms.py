"""Keep balls off the walls of a box and off each other, from data alone, over seeds."""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from benchmarks.tables import beside, write_table
from empowerment.capacity import exact_landscape
from empowerment.experiments import PRESETS, evaluate_run, train_agent
from empowerment.experiments.charts import learnt_landscape, truth_of
from empowerment.experiments.landscape import grid_states

_GRID = "15x15"
_REACH = 1.0
"""How far a ball gets in a step: farther from all walls, its empowerment is the same."""

_FIGURES = {
    "touching": ("wall_touch_fraction", 4),
    "wall distance": ("mean_wall_distance", 2),
    "contacts": ("contacts_per_step", 4),
    "pair distance": ("mean_pair_distance", 2),
    "close": ("close_fraction", 4),
    "empowerment": ("empowerment_mean", 2),
}


def ball(seed: int, episodes: int, folder: Path) -> dict[str, object]:
    """Train one ball by one step and by ten, and compare what both do."""
    row: dict[str, object] = {"seed": seed}
    where = {}
    for preset in ("ball", "ball-10step"):
        start = time.monotonic()
        own = folder / f"{preset}-{seed}"
        made = train_agent(PRESETS[preset], folder=own, seed=seed, resume=own.exists())
        taken = time.monotonic() - start
        found = evaluate_run(own, episodes=episodes)
        steps = PRESETS[preset].steps
        row |= {
            f"touching, n = {steps}": beside(found, "wall_touch_fraction", 4),
            f"wall distance, n = {steps}": beside(found, "mean_wall_distance", 2),
            f"inward, n = {steps}": f"{found['inward_fraction']:.3f}",
            f"seconds, n = {steps}": round(taken),
        }
        rows = np.loadtxt(own / "positions.csv", delimiter=",", skiprows=1)
        where[preset] = rows[:, 3] / rows[:, 3].sum()
        if steps == 1:
            world = truth_of(made)[1]
            states = grid_states(world, _GRID)
            bound = learnt_landscape(made, states)
            exact = exact_landscape(world, jnp.asarray(states), steps=1, key=jax.random.key(0))
            truth = [each.value for each in exact]
            low, high = world.states.low + _REACH, world.states.high - _REACH
            inner = np.all((states > low) & (states < high), axis=1)
            plateau = bound[inner].std() / bound[inner].mean()
            row |= {
                "plateau": f"{plateau:.3f}",
                "Spearman with exact": f"{spearmanr(bound, truth)[0]:.3f}",
            }
    row["overlap"] = f"{np.minimum(*where.values()).sum():.2f}"
    return row


def balls(seed: int, episodes: int, folder: Path) -> dict[str, object]:
    """Train four balls and see what they do."""
    start = time.monotonic()
    own = folder / f"balls-{seed}"
    train_agent(PRESETS["balls"], folder=own, seed=seed, resume=own.exists())
    taken = time.monotonic() - start
    found = evaluate_run(own, episodes=episodes)
    row: dict[str, object] = {"seed": seed}
    row |= {name: beside(found, *figure) for name, figure in _FIGURES.items()}
    return row | {"inward": f"{found['inward_fraction']:.3f}", "seconds": round(taken)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ball", "balls"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("results/rooms"))
    given = parser.parse_args()
    measure = ball if given.what == "ball" else balls
    for seed in given.seeds:
        row = measure(seed, given.episodes, given.out)
        print(row, flush=True)
        write_table(f"{given.what}-seeds", [row], by=("seed",))


if __name__ == "__main__":
    main()
