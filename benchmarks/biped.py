"""Keep a robot with two legs on its feet, from data alone: several seeds and variants.

The first variant collects data and learns models. The others begin with its first data, and differ
in what counts as empowerment, or in whether models are told that episodes end.
"""

import argparse
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.tables import Table, beside, write_table
from empowerment.data import Trajectories
from empowerment.runs import (
    PRESETS,
    Experiment,
    evaluate_agent,
    load_run,
    read_manifest,
    train_run,
)
from empowerment.runs.loading import data_path

_PRESET = PRESETS["biped"].experiment
_LATENT = replace(_PRESET, perceive="latent")
_VARIANTS: dict[str, Experiment] = {
    "observations, 3 steps": _PRESET,
    "observations, 1 step": _PRESET.with_agent(steps=1),
    "latent, 3 steps": _LATENT,
    "latent, 1 step": _LATENT.with_agent(steps=1),
    "ends ignored": replace(_PRESET, rounds=0),
}
_FIRST = next(iter(_VARIANTS))
"""The variant whose data, and models but for the last, the others reuse."""

_ENDLESS = "ends ignored"
"""The variant whose data do not say that an episode ended where the robot fell."""

_FIGURES = {
    "survived": ("survived_fraction", 2),
    "left the terrain": ("left_terrain_fraction", 2),
    "standing": ("standing_fraction", 2),
    "height": ("mean_height", 2),
    "tilt": ("mean_abs_angle", 2),
    "median steps": ("steps_to_end_median", 0),
}


def measure(variant: str, seed: int, episodes: int, folder: Path) -> Table:
    """Train or resume one agent, and evaluate it after each round.

    The duration is only reported for complete runs, which learn their models themselves.
    """
    start = time.monotonic()
    train_run(_VARIANTS[variant], folder=folder, seed=seed, resume=folder.exists())
    seconds = round(time.monotonic() - start)
    rows: Table = []
    manifest = read_manifest(folder)
    num_rounds, kept = manifest.get("num_rounds", 1), manifest.get("kept_round", 0)
    for rounds in range(num_rounds):
        figures = evaluate_agent(load_run(folder, rounds=rounds), episodes=episodes, seed=1000)
        row: dict[str, object] = {"variant": variant, "seed": seed, "rounds": rounds}
        row["kept"] = "yes" if rounds == kept else ""
        row["imagined / real"] = _compared(folder, rounds)
        row |= {name: beside(figures, *figure) for name, figure in _FIGURES.items()}
        row["environment steps"] = _steps(folder, rounds)
        is_complete = variant == _FIRST and rounds == num_rounds - 1
        row["seconds"] = seconds if is_complete else ""
        rows.append(row)
        print(row, flush=True)
    return rows


def share(source: Path, folder: Path, *, endless: bool) -> None:
    """Start a run folder with the first data and model of another run, or data without ends."""
    if not (source / "model.safetensors").exists():
        raise FileNotFoundError(f"Expected {source} to be a run with models to reuse; got none.")
    folder.mkdir(parents=True)
    if endless:
        data = Trajectories.load(source / "data.npz")
        cut = [replace(each, terminated=False, truncated=True) for each in data.episodes]
        replace(data, episodes=tuple(cut)).save(folder / "data.npz")
        return
    for name in ("data.npz", "model.json", "model.safetensors"):
        shutil.copy(source / name, folder)


def _compared(folder: Path, rounds: int) -> str:
    """Format what a round imagined and what happened: nats, and actions until the end."""
    path = folder / "rounds.json"
    if not path.exists():
        return ""
    found = json.loads(path.read_text("utf-8"))["rounds"][rounds]
    imagined, real = found["imagined"], found["real"][-1]
    nats = f"{imagined['empowerment']:.2f} / {real['empowerment']:.2f} nats"
    return f"{nats}, {imagined['length']:.0f} / {real['length']:.0f}"


def _steps(folder: Path, rounds: int) -> int:
    """Count the environment steps of all data up to a round."""
    data = [Trajectories.load(data_path(folder, number)) for number in range(rounds + 1)]
    return _PRESET.num_repeats * sum(each.num_transitions for each in data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--variants", nargs="+", choices=_VARIANTS, default=[_FIRST, _ENDLESS])
    parser.add_argument("--episodes", type=int, default=20, help="episodes of each evaluation")
    parser.add_argument("--out", type=Path, default=Path("results/biped"), help="folder of runs")
    options = parser.parse_args()
    for variant in options.variants:
        for seed in options.seeds:
            folder = options.out / f"{list(_VARIANTS).index(variant)}-{seed}"
            if variant != _FIRST and not folder.exists():
                share(options.out / f"0-{seed}", folder, endless=variant == _ENDLESS)
            rows = measure(variant, seed, options.episodes, folder)
            write_table("biped", rows, by=("variant", "seed", "rounds"))


if __name__ == "__main__":
    main()
