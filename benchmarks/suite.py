"""One configuration, the defaults, on many environments: what each ends up doing, over seeds.

Runs stay in a folder, and are resumed from there. Rewards are counted for comparison alone: no run
knows of them.
"""

from typing import Any

import gymnasium
import numpy as np

from benchmarks.balance import SYSTEMS
from benchmarks.seeds import Trained, parser, sweeper
from empowerment.agent import play, step_limit
from empowerment.data import (
    Actor,
    Episode,
    RandomActor,
    Trajectories,
    ZeroActor,
    close_environment,
    make_environment,
    spaces_of,
)
from empowerment.runs import Experiment, load_run, read_manifest
from empowerment.runs.loading import data_path
from empowerment.systems import System, system_of

_REWARDED: dict[str, str] = {
    "CartPole-v1": "500",
    "benchmarks.cartpole:ContinuousCartPole-v0": "",
    "InvertedPendulum-v5": "",
    "Hopper-v5": "2410",
    "InvertedDoublePendulum-v5": "",
    "Walker2d-v5": "3479",
    "BipedalWalker-v3": "213",
    "Pendulum-v1": "-172",
    "LunarLander-v3": "242",
    "LunarLanderContinuous-v3": "271",
    "MountainCarContinuous-v0": "88",
    "Acrobot-v1": "-74",
    "Reacher-v5": "",
    "Ant-v5": "1327",
    "Humanoid-v5": "",
    **{f"benchmarks.balance:{name}": "" for name in SYSTEMS},
}
"""Environments, and the return that PPO reaches in them with the reward, in 20,000 to 5,000,000
steps (RL Baselines3 Zoo, benchmark.md; of earlier versions of most environments, one run each)."""

_FIGURES = "held_fraction", "standing_fraction"
"""Figures that some systems have."""


class _Returns(gymnasium.Wrapper):
    """Adds up the reward of each episode."""

    def reset(self, **options: Any):
        self.total = 0.0
        return self.env.reset(**options)

    def step(self, action: Any):
        found = self.env.step(action)
        self.total += float(found[1])
        return found


def row_of(name: str, trained: Trained, episodes: int) -> dict[str, object]:
    """Evaluate a run with the defaults: one row of the table."""
    row: dict[str, object] = {"environment": trained.case, "seed": trained.seed}
    if trained.why is not None:
        return row | _cells(outcome=f"stopped: {trained.why}".split(";")[0])
    run = load_run(trained.folder, env=name)
    folder, manifest = trained.folder, read_manifest(trained.folder)
    number, kept = manifest.get("num_rounds", 1), manifest.get("kept_round", 0)
    data = [Trajectories.load(data_path(folder, each)).num_transitions for each in range(number)]
    # All is told in steps of the environment; each action is repeated for so many.
    repeats = run.experiment.num_repeats
    environment = _Returns(make_environment(run.environment))
    actors: dict[str, Actor] = {
        "policy": run.agent.actor(),
        "random": RandomActor(spaces_of(environment, name)),
        "zero": ZeroActor(spaces_of(environment, name)),
    }
    system = system_of(name)
    played = {who: _play(environment, actor, episodes, system) for who, actor in actors.items()}
    (own, _, watched), limit = played["policy"], step_limit(environment)
    known = system.metrics(own, environment, watched)
    close_environment(environment)
    return row | _cells(
        survived=f"{np.mean([not each.terminated for each in own]):.2f}",
        steps=" / ".join(
            f"{repeats * np.mean([e.length for e in paths]):.0f}" for paths, _, _ in played.values()
        ),
        limit=repeats * limit,
        returns=" / ".join(f"{np.mean(returns):.0f}" for _, returns, _ in played.values()),
        rewarded=_REWARDED.get(name, ""),
        outcome=", ".join(f"{each} {known[each]:.2f}" for each in _FIGURES if each in known),
        rounds=f"{kept} of {number}",
        data=repeats * sum(data),
        minutes=f"{trained.core_seconds / 60:.0f}" if trained.core_seconds else "",
    )


def _play(
    environment: _Returns, actor: Actor, episodes: int, system: System
) -> tuple[list[Episode], list[float], list[np.ndarray]]:
    """Run episodes; return them, their returns, and what was watched before each action."""
    paths, returns, watched = [], [], []
    for seed in range(1000, 1000 + episodes):
        values: list[float] = []

        def look(values: list[float] = values) -> None:
            values.append(0.0 if system.watch is None else system.watch(environment))

        limit = step_limit(environment)
        paths.append(play(environment, actor, seed=seed, limit=limit, before_step=look))
        returns.append(environment.total)
        watched.append(np.array(values))
    return paths, returns, watched


def _cells(
    *,
    survived: str = "",
    steps: str = "",
    limit: int | str = "",
    returns: str = "",
    rewarded: str = "",
    outcome: str = "",
    rounds: str = "",
    data: int | str = "",
    minutes: str = "",
) -> dict[str, object]:
    return {
        "survived": survived,
        "steps: policy / random / zero": steps,
        "of": limit,
        "return: policy / random / zero": returns,
        "PPO with reward": rewarded,
        "outcome": outcome,
        "kept round": rounds,
        "environment steps": data,
        "minutes of CPU": minutes,
    }


def main() -> None:
    options = parser(__doc__, out="suite", seeds="0-2", episodes=20)
    options.add_argument("environments", nargs="*", default=list(_REWARDED))
    given = options.parse_args()
    seeds = sweeper(given)
    for name in given.environments:
        case = name.rpartition(":")[2]
        for run in seeds.train({case: Experiment(env=name)}, evaluate=False):
            row = row_of(name, run, given.episodes)
            print(row, flush=True)
            seeds.write("suite", [row], by=("environment", "seed"))


if __name__ == "__main__":
    main()
