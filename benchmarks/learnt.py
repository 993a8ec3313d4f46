"""Train agents in learnt models of the pendulum over seeds; compare with exact empowerment."""

import argparse
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from benchmarks.tables import Table, write_table
from empowerment.capacity import exact_landscape
from empowerment.landscapes import grid_states
from empowerment.runs import PRESETS, evaluate_agent, learnt_landscape, train_run
from empowerment.worlds import Pendulum

_GRID = "21x17"
_PRESET = PRESETS["pendulum-learnt"].experiment


def exact(states: np.ndarray) -> np.ndarray:
    """Compute the exact empowerment of the pendulum, perceived with the same resolution."""
    assert _PRESET.resolution is not None
    world, steps = Pendulum(resolution=_PRESET.resolution), _PRESET.agent.num_steps
    capacities = exact_landscape(
        world, jnp.asarray(states, float), steps=steps, key=jax.random.key(0)
    )
    return np.array([capacity.value for capacity in capacities])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--episodes", type=int, default=100, help="episodes of each evaluation")
    options = parser.parse_args()
    states = grid_states(Pendulum(), _GRID)
    truth = exact(states)
    rows: Table = []
    for seed in options.seeds:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            run = train_run(_PRESET, folder=Path(folder) / "run", seed=seed)
            seconds = time.monotonic() - start
        bound = learnt_landscape(run, states)
        figures = evaluate_agent(run, episodes=options.episodes)
        upright = figures["time_to_upright_median_s"]
        row: dict[str, object] = {
            "seed": seed,
            "Spearman with exact": f"{spearmanr(bound, truth)[0]:.3f}",
            "mean of bound - exact": f"{np.mean(bound - truth):.3f}",
            "held_fraction": f"{figures['held_fraction']:.2f}",
            "time to upright / s": "never" if upright is None else f"{upright:.2f}",
            "uniform held": f"{figures['uniform']['held_fraction']:.2f}",
            "seconds": round(seconds),
        }
        rows.append(row)
        print(row, flush=True)
    write_table("learnt-pendulum", rows, by=("seed",))


if __name__ == "__main__":
    main()
