"""Train and evaluate a preset over many seeds, and write its table of docs/results.md."""

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path

from benchmarks.tables import Table, write_table
from empowerment.experiments.agent import train_agent
from empowerment.experiments.config import PRESETS, Experiment
from empowerment.experiments.evaluation import evaluate_agent


def measure(experiment: Experiment, seeds: range, episodes: int) -> Table:
    """Train with each seed and evaluate with starts of the same seed."""
    rows: Table = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            made = train_agent(experiment, folder=Path(folder) / "run", seed=seed)
            seconds = time.perf_counter() - start
            found = evaluate_agent(made, episodes=episodes, seed=seed)
        upright = found["time_to_upright_median_s"]
        rows.append(
            {
                "n": experiment.steps,
                "seed": seed,
                "training": f"{seconds:.0f} s",
                "held": f"{found['held_fraction']:.2f}",
                "time to upright": "never" if upright is None else f"{upright:.2f} s",
                "empowerment": f"{found['empowerment_mean']:.3f}",
                "uniform: held": f"{found['uniform']['held_fraction']:.2f}",
                "uniform: empowerment": f"{found['uniform']['empowerment_mean']:.3f}",
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("--seeds", type=int, default=20, help="how many, from 0")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--steps", type=int, nargs="*", help="the preset's if not given")
    chosen = parser.parse_args()
    preset = PRESETS[chosen.preset]
    rows, name = [], f"agent-{chosen.preset}"
    if chosen.steps:
        name = f"{name}-steps"
    for steps in chosen.steps or [preset.steps]:
        experiment = dataclasses.replace(preset, steps=steps)
        rows += measure(experiment, range(chosen.seeds), chosen.episodes)
    write_table(name, rows)


if __name__ == "__main__":
    main()
