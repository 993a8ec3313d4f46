"""Keep balls off the walls of a box and off each other, from data alone, over seeds."""

import argparse
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from benchmarks.tables import beside, write_table
from empowerment.capacity import exact_landscape
from empowerment.landscapes import grid_states
from empowerment.runs import (
    PRESETS,
    TrainedRun,
    evaluate_run,
    known_world,
    learnt_landscape,
    train_run,
)

_GRID = "15x15"
_REACH = 1.0
"""Longest move of a ball in a step: farther from all walls, its empowerment is constant."""

_FIGURES = {
    "touching": ("wall_touch_fraction", 4),
    "wall distance": ("mean_wall_distance", 2),
    "contacts": ("contacts_per_step", 4),
    "pair distance": ("mean_pair_distance", 2),
    "close": ("close_fraction", 4),
    "empowerment": ("empowerment_mean", 2),
}


def ball(seed: int, episodes: int, folder: Path) -> dict[str, object]:
    """Train one ball with plans of one step and of ten, and compare their behaviour."""
    row: dict[str, object] = {"seed": seed}
    occupancy = {}
    for preset in ("ball", "ball-10step"):
        own = folder / f"{preset}-{seed}"
        run, figures, seconds = _train(preset, seed, episodes, own)
        steps = run.experiment.agent.num_steps
        row |= {
            f"touching, n = {steps}": beside(figures, "wall_touch_fraction", 4),
            f"wall distance, n = {steps}": beside(figures, "mean_wall_distance", 2),
            f"inward, n = {steps}": f"{figures['inward_fraction']:.3f}",
            f"seconds, n = {steps}": seconds,
        }
        rows = np.loadtxt(own / "positions.csv", delimiter=",", skiprows=1)
        occupancy[preset] = rows[:, 3] / rows[:, 3].sum()
        if steps == 1:
            row |= _against_exact(run)
    row["overlap"] = f"{np.minimum(*occupancy.values()).sum():.2f}"
    return row


def _train(
    preset: str, seed: int, episodes: int, folder: Path
) -> tuple[TrainedRun, dict[str, Any], int]:
    """Train or resume a run and evaluate it; return the seconds of training, too."""
    start = time.monotonic()
    experiment = PRESETS[preset].experiment
    run = train_run(experiment, folder=folder, seed=seed, resume=folder.exists())
    seconds = round(time.monotonic() - start)
    return run, evaluate_run(folder, episodes=episodes), seconds


def _against_exact(run: TrainedRun) -> dict[str, str]:
    """Compare the bound in the learnt world with the exact empowerment of the known one."""
    known = known_world(run)
    assert known is not None
    world = known[1]
    states = grid_states(world, _GRID)
    bound = learnt_landscape(run, states)
    exact = exact_landscape(world, jnp.asarray(states), steps=1, key=jax.random.key(0))
    truth = [capacity.value for capacity in exact]
    low, high = world.states.low + _REACH, world.states.high - _REACH
    inner = bound[np.all((states > low) & (states < high), axis=1)]
    return {
        "plateau": f"{inner.std() / inner.mean():.3f}",
        "Spearman with exact": f"{spearmanr(bound, truth)[0]:.3f}",
    }


def balls(seed: int, episodes: int, folder: Path) -> dict[str, object]:
    """Train four balls, and evaluate their behaviour."""
    _, figures, seconds = _train("balls", seed, episodes, folder / f"balls-{seed}")
    row: dict[str, object] = {"seed": seed}
    row |= {name: beside(figures, *figure) for name, figure in _FIGURES.items()}
    return row | {"inward": f"{figures['inward_fraction']:.3f}", "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ball", "balls"), help="one ball, or four")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--episodes", type=int, default=50, help="episodes of each evaluation")
    parser.add_argument("--out", type=Path, default=Path("results/rooms"), help="folder of runs")
    options = parser.parse_args()
    measure = ball if options.what == "ball" else balls
    for seed in options.seeds:
        row = measure(seed, options.episodes, options.out)
        print(row, flush=True)
        write_table(f"{options.what}-seeds", [row], by=("seed",))


if __name__ == "__main__":
    main()
