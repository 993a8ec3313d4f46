"""Goals beside empowerment: where policies end up, by the weight of the goal, over seeds."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.seeds import Sweeper, finished, parser, slug, sweeper
from benchmarks.tables import Table
from empowerment.agent import AgentSettings
from empowerment.data import Trajectories
from empowerment.runs import Experiment
from empowerment.systems import evaluated

_WEIGHTS: tuple[float | Literal["alone"], ...] = 0.0, 0.1, 0.3, 1.0, 3.0, "alone"
_FIGURES = Path(__file__).parent.parent / "docs" / "figures"


@dataclass(frozen=True)
class _System:
    experiment: Experiment
    columns: tuple[int, ...]
    place: tuple[float, ...]
    turns: bool = False
    walls: tuple[float, float] | None = None

    def off_walls(self, data: Trajectories) -> float | None:
        """Return the mean distance from the closest wall over the last quarter of episodes."""
        if self.walls is None:
            return None
        rows = np.concatenate([e.observations[-e.length // 4 :] for e in data.episodes])
        return float(np.minimum(rows - self.walls[0], self.walls[1] - rows).min(axis=1).mean())

    def distances(self, data: Trajectories) -> np.ndarray:
        """Return the distance from the goal over the last quarter of each episode."""
        rows = [each.observations[-each.length // 4 :] for each in data.episodes]
        offset = np.concatenate(rows)[:, self.columns] - np.array(self.place)
        if self.turns:
            offset = (offset + np.pi) % (2 * np.pi) - np.pi
        return np.linalg.norm(offset, axis=1)


_SYSTEMS = {
    "pendulum at 0.3 rad": _System(
        Experiment(world="pendulum", goal="angle=0.3", goal_scale=0.1), (0,), (0.3,), turns=True
    ),
    "ball by the wall": _System(
        Experiment(
            world="ball",
            resolution=0.2,
            goal="x=0.5,y=5",
            goal_scale=0.5,
            agent=AgentSettings(steps=1, channel_updates=1000),
        ),
        (0, 1),
        (0.5, 5.0),
        walls=(0.0, 10.0),
    ),
}


def train(sweeper: Sweeper, name: str) -> Iterator[dict[str, object]]:
    """Train a system with all weights, and evaluate: rows of the table."""
    system, folder = _SYSTEMS[name], slug(name)
    cases = {
        f"{folder}/weight={weight}": replace(system.experiment, task_weight=weight)
        for weight in _WEIGHTS
    }
    weights = dict(zip(cases, _WEIGHTS, strict=True))
    for run in finished(sweeper.train(cases)):
        figures = run.figures
        data = Trajectories.load(evaluated(run.folder, "policy"))
        distances, off_walls = system.distances(data), system.off_walls(data)
        yield {
            "system": name,
            "weight": str(weights[run.case]),
            "seed": run.seed,
            "distance at the end": f"{distances.mean():.3f}",
            "90 % within": f"{np.quantile(distances, 0.9):.3f}",
            "off walls": "" if off_walls is None else f"{off_walls:.3f}",
            "reward per step": f"{figures['task_reward_mean']:.3f}",
            "random: reward": f"{figures['uniform']['task_reward_mean']:.3f}",
            "empowerment": f"{figures['empowerment_mean']:.3f}",
            "random: empowerment": f"{figures['uniform']['empowerment_mean']:.3f}",
        }


def draw(rows: Table) -> None:
    """Draw what a task pays against empowerment, by the weight; a point for each seed."""
    figure, all_axes = plt.subplots(1, len(_SYSTEMS), figsize=(9, 3.5), layout="constrained")
    for axes, name in zip(np.atleast_1d(all_axes), _SYSTEMS, strict=True):
        for weight in map(str, _WEIGHTS):
            own = [row for row in rows if (row["system"], row["weight"]) == (name, weight)]
            places = [(float(str(r["reward per step"])), float(str(r["empowerment"]))) for r in own]
            if places:
                axes.plot(*zip(*places, strict=True), "o", label=weight)
        axes.set_xlabel("reward of the goal per step")
        axes.set_ylabel("empowerment / nats")
        axes.set_title(name)
    all_axes[0].legend(title="weight", fontsize=8)
    figure.savefig(_FIGURES / "tasks.png", dpi=120)
    plt.close(figure)


def main() -> None:
    options = parser(__doc__, out="tasks", seeds="0-2", episodes=20)
    options.add_argument("systems", nargs="*", default=list(_SYSTEMS))
    given = options.parse_args()
    seeds = sweeper(given)
    for name in given.systems:
        seeds.write("tasks", list(train(seeds, name)), by=("system", "weight", "seed"))
    if given.budget == "full":
        draw(json.loads((_FIGURES.parent / "results" / "tasks.json").read_text("utf-8")))


if __name__ == "__main__":
    main()
