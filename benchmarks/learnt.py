"""Act in worlds learnt from data alone, over seeds, and compare with what is known."""

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
from empowerment.experiments import PRESETS, evaluate_agent, train_agent
from empowerment.experiments.charts import learnt_landscape
from empowerment.experiments.landscape import grid_states
from empowerment.worlds import Pendulum

_GRID = "21x17"
_PRESET = PRESETS["pendulum-learnt"]


def exact(states: np.ndarray) -> np.ndarray:
    """Give the exact empowerment of the pendulum, seen with the same resolution."""
    assert _PRESET.resolution is not None
    world = Pendulum(resolution=_PRESET.resolution)
    found = exact_landscape(
        world, jnp.asarray(states, float), steps=_PRESET.steps, key=jax.random.key(0)
    )
    return np.array([each.value for each in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--episodes", type=int, default=100)
    given = parser.parse_args()
    states = grid_states(Pendulum(), _GRID)
    truth = exact(states)
    rows: Table = []
    for seed in given.seeds:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            made = train_agent(_PRESET, folder=Path(folder) / "run", seed=seed)
            taken = time.monotonic() - start
            bound = learnt_landscape(made, states)
            found = evaluate_agent(made, episodes=given.episodes)
        upright = found["time_to_upright_median_s"]
        row: dict[str, object] = {
            "seed": seed,
            "Spearman with exact": f"{spearmanr(bound, truth)[0]:.3f}",
            "mean of bound - exact": f"{np.mean(bound - truth):.3f}",
            "held_fraction": f"{found['held_fraction']:.2f}",
            "time to upright / s": "never" if upright is None else f"{upright:.2f}",
            "uniform held": f"{found['uniform']['held_fraction']:.2f}",
            "seconds": round(taken),
        }
        rows.append(row)
        print(row, flush=True)
    write_table("learnt-pendulum", rows, by=("seed",))


if __name__ == "__main__":
    main()
