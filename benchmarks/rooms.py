"""Keep balls off the walls of a box and off each other, from data alone, over seeds."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from benchmarks.seeds import Sweeper, Trained, finished, parser, sweeper
from benchmarks.tables import beside
from empowerment.capacity import exact_landscape
from empowerment.landscapes import grid_states
from empowerment.runs import (
    PRESETS,
    TrainedRun,
    evaluate_run,
    known_world,
    learnt_landscape,
    load_run,
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


def ball(sweeper: Sweeper) -> Iterator[dict[str, object]]:
    """Train one ball with plans of one step and of ten, and compare their behaviour."""
    presets = "ball", "ball-10step"
    runs = finished(_trained(sweeper, *presets))
    for seed in sweeper.seeds:
        own = [run for run in runs if run.seed == seed]
        if len(own) < len(presets):
            continue
        row: dict[str, object] = {"seed": seed}
        occupancy = []
        for each in own:
            figures = evaluate_run(each.folder, episodes=sweeper.episodes)
            run = load_run(each.folder)
            steps = run.experiment.agent.num_steps
            row |= {
                f"touching, n = {steps}": beside(figures, "wall_touch_fraction", 4),
                f"wall distance, n = {steps}": beside(figures, "mean_wall_distance", 2),
                f"inward, n = {steps}": f"{figures['inward_fraction']:.3f}",
                f"seconds, n = {steps}": each.seconds,
            }
            rows = np.loadtxt(each.folder / "positions.csv", delimiter=",", skiprows=1)
            occupancy.append(rows[:, 3] / rows[:, 3].sum())
            if steps == 1:
                row |= _against_exact(run)
        row["overlap"] = f"{np.minimum(*occupancy).sum():.2f}"
        yield row


def _trained(sweeper: Sweeper, *presets: str) -> list[Trained]:
    return sweeper.train({name: PRESETS[name].experiment for name in presets}, evaluate=False)


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


def balls(sweeper: Sweeper) -> Iterator[dict[str, object]]:
    """Train four balls, and evaluate their behaviour."""
    for run in finished(_trained(sweeper, "balls")):
        figures = evaluate_run(run.folder, episodes=sweeper.episodes)
        row: dict[str, object] = {"seed": run.seed}
        row |= {name: beside(figures, *figure) for name, figure in _FIGURES.items()}
        yield row | {"inward": f"{figures['inward_fraction']:.3f}", "seconds": run.seconds}


def main() -> None:
    options = parser(__doc__, out="rooms", seeds="0-4", episodes=50)
    options.add_argument("what", choices=("ball", "balls"), help="one ball, or four")
    given = options.parse_args()
    seeds = sweeper(given)
    for row in (ball if given.what == "ball" else balls)(seeds):
        print(row, flush=True)
        seeds.write(f"{given.what}-seeds", [row], by=("seed",))


if __name__ == "__main__":
    main()
