"""Goals beside empowerment: where policies end up, by the weight of the goal, over seeds."""

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.shared import Shared
from benchmarks.tables import Table, write_table
from empowerment.agent import AgentSettings, train_stages
from empowerment.data import Trajectories
from empowerment.runs import Experiment, TrainedRun, evaluate_agent
from empowerment.runs.loading import named_world

_WEIGHTS = 0.0, 0.1, 0.3, 1.0, 3.0, "alone"
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


def measure(name: str, weight: Any, seed: int, episodes: int, shared: Shared) -> dict[str, object]:
    """Train with a weight and a seed, and evaluate: one row of the table."""
    system, kept = _SYSTEMS[name], {}
    experiment = replace(system.experiment, task_weight=weight)
    world = named_world(experiment)
    task = experiment.task(world.states.names, world.states.angles)
    keys = jax.random.split(jax.random.key(seed), 3)
    agent = train_stages(world, experiment.agent, shared, *keys, task=task)
    run = TrainedRun(experiment, seed, agent)
    figures = evaluate_agent(run, episodes=episodes, seed=seed, keep=kept.__setitem__)
    distances, off_walls = system.distances(kept["policy"]), system.off_walls(kept["policy"])
    return {
        "system": name,
        "weight": str(weight),
        "seed": seed,
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", default=list(_SYSTEMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--episodes", type=int, default=20, help="episodes of each evaluation")
    options = parser.parse_args()
    for seed in options.seeds:
        for name in options.systems:
            shared = Shared()
            for weight in _WEIGHTS:
                row = measure(name, weight, seed, options.episodes, shared)
                print(row, flush=True)
                write_table("tasks", [row], by=("system", "weight", "seed"))
    draw(json.loads((_FIGURES.parent / "results" / "tasks.json").read_text("utf-8")))


if __name__ == "__main__":
    main()
