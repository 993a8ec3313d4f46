"""Keep a robot with two legs on its feet, from data alone: several seeds and variants.

The first variant collects data and learns models. The others begin with its first data, and differ
in what counts as empowerment, or in whether models are told that episodes end.
"""

import json
from dataclasses import replace
from pathlib import Path

from benchmarks.seeds import Trained, finished, parser, slug, sweeper
from benchmarks.tables import Table, beside
from empowerment.data import Trajectories
from empowerment.runs import PRESETS, Experiment, evaluate_agent, load_run, read_manifest
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
"""The variant whose first data the others reuse."""

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


def rows_of(variant: str, run: Trained, episodes: int) -> Table:
    """Evaluate a run after each round.

    The duration is only reported for complete runs, which collect their first data themselves.
    """
    folder, rows = run.folder, list[dict[str, object]]()
    manifest = read_manifest(folder)
    num_rounds, kept = manifest.get("num_rounds", 1), manifest.get("kept_round", 0)
    for rounds in range(num_rounds):
        figures = evaluate_agent(load_run(folder, rounds=rounds), episodes=episodes, seed=1000)
        row: dict[str, object] = {"variant": variant, "seed": run.seed, "rounds": rounds}
        row["kept"] = "yes" if rounds == kept else ""
        row["imagined / real"] = _compared(folder, rounds)
        row |= {name: beside(figures, *figure) for name, figure in _FIGURES.items()}
        row["environment steps"] = _steps(folder, rounds)
        is_complete = variant == _FIRST and rounds == num_rounds - 1
        row["seconds"] = run.seconds if is_complete else ""
        rows.append(row)
        print(row, flush=True)
    return rows


def share(source: Path, folder: Path, *, endless: bool) -> None:
    """Start a run folder with the first data of another run, with or without its ends.

    From the same data and seed it learns the same first model.
    """
    if folder.exists():
        return
    if not (source / "data.npz").exists():
        raise FileNotFoundError(f"Expected {source} to be a run with data to reuse; got none.")
    data = Trajectories.load(source / "data.npz")
    if endless:
        cut = [replace(each, terminated=False, truncated=True) for each in data.episodes]
        data = replace(data, episodes=tuple(cut))
    data.save(folder / "data.npz")


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
    options = parser(__doc__, out="biped", seeds="0-2", episodes=20)
    options.add_argument(
        "--variants", nargs="+", choices=_VARIANTS, default=[_FIRST, _ENDLESS], metavar="VARIANT"
    )
    given = options.parse_args()
    seeds = sweeper(given)
    for variant in given.variants:
        case = slug(variant)
        if variant != _FIRST:
            for seed in seeds.seeds:
                source, folder = (seeds.folder(each, seed) for each in (slug(_FIRST), case))
                share(source, folder, endless=variant == _ENDLESS)
        for run in finished(seeds.train({case: _VARIANTS[variant]}, evaluate=False)):
            rows = rows_of(variant, run, given.episodes)
            seeds.write("biped", rows, by=("variant", "seed", "rounds"))


if __name__ == "__main__":
    main()
