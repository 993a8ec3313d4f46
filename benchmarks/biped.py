"""Keep a robot with two legs on its feet, from data alone, over seeds and in other ways.

The first way collects data and learns models. The others act in the same models: what differs is
the empowerment that they go by.
"""

import argparse
import shutil
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.tables import Table, beside, write_table
from empowerment.data import Trajectories
from empowerment.experiments import PRESETS, Experiment, evaluate_agent, load_agent, train_agent

_PRESET = PRESETS["biped"]
_VARIANTS: dict[str, Experiment] = {
    "observations, 3 steps": _PRESET,
    "observations, 1 step": replace(_PRESET, steps=1),
    "latent, 3 steps": replace(_PRESET, perceive="latent"),
    "latent, 1 step": replace(_PRESET, perceive="latent", steps=1),
}
_FIRST = next(iter(_VARIANTS))
"""Whose models the others act in."""

_FIGURES = {
    "survived": ("survived_fraction", 2),
    "standing": ("standing_fraction", 2),
    "height": ("mean_height", 2),
    "tilt": ("mean_abs_angle", 2),
    "median steps": ("steps_to_end_median", 0),
}


def measure(variant: str, seed: int, episodes: int, folder: Path) -> Table:
    """Train one agent, or go on with it, and evaluate what it was after each round.

    How long it took is told of whole runs alone, which learn their models themselves.
    """
    start = time.monotonic()
    train_agent(_VARIANTS[variant], folder=folder, seed=seed, resume=folder.exists())
    taken = round(time.monotonic() - start)
    rows: Table = []
    for rounds in range(_VARIANTS[variant].rounds + 1):
        found = evaluate_agent(load_agent(folder, rounds=rounds), episodes=episodes, seed=1000)
        row: dict[str, object] = {"variant": variant, "seed": seed, "rounds": rounds}
        row |= {name: beside(found, *figure) for name, figure in _FIGURES.items()}
        row["environment steps"] = _steps(folder, rounds)
        is_whole = variant == _FIRST and rounds == _VARIANTS[variant].rounds
        row["seconds"] = taken if is_whole else ""
        rows.append(row)
        print(row, flush=True)
    return rows


def share(source: Path, folder: Path) -> None:
    """Begin a run with the data and the models of another one, which must be there."""
    if not (source / "model.safetensors").exists():
        raise FileNotFoundError(f"Expected a run to share models with in {source}; there is none.")
    folder.mkdir(parents=True)
    for path in [*source.glob("data*"), *source.glob("model*")]:
        shutil.copy(path, folder)


def _steps(folder: Path, rounds: int) -> int:
    """Count the steps of the environment up to a round."""
    names = ["data", *(f"data-{number}" for number in range(1, rounds + 1))]
    logs = [Trajectories.load(folder / f"{name}.npz") for name in names]
    return _PRESET.action_repeat * sum(each.num_transitions for each in logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--variants", nargs="+", choices=_VARIANTS, default=list(_VARIANTS))
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/biped"))
    given = parser.parse_args()
    for variant in given.variants:
        for seed in given.seeds:
            folder = given.out / f"{list(_VARIANTS).index(variant)}-{seed}"
            if variant != _FIRST and not folder.exists():
                share(given.out / f"0-{seed}", folder)
            rows = measure(variant, seed, given.episodes, folder)
            write_table("biped-seeds", rows, by=("variant", "seed", "rounds"))


if __name__ == "__main__":
    main()
