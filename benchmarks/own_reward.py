"""Rewards of environments beside empowerment: returns by the weight of the reward.

    python -m benchmarks.own_reward Pendulum-v1 --weights 0 0.1 1 alone --seeds 0

The world is learnt once for each seed, from random actions; policies differ by the weight alone.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import jax

from benchmarks.shared import Shared
from benchmarks.tables import write_table
from empowerment.agent import train_stages, unfitted
from empowerment.policy import Task
from empowerment.runs import Experiment, TrainedRun, evaluate_agent, train_run
from empowerment.runs.folder import Run
from empowerment.runs.loading import load_data
from empowerment.runs.rewards import learn_reward, reward_facts
from empowerment.runs.stage import path_of
from empowerment.storage import load_tree


def measure(env: str, weights: list[str], seed: int, episodes: int, folder: Path) -> None:
    """Learn a world and its reward, and train and evaluate a policy for each weight."""
    experiment = Experiment(env=env, rounds=0)
    run = train_run(experiment, folder=folder, seed=seed, resume=folder.exists(), log=print)
    agent = run.agent
    assert agent.model is not None
    key = jax.random.fold_in(jax.random.key(seed), 0)
    reward = learn_reward(
        Run(folder, {}, {}, print),
        experiment,
        load_data(folder, 0, 1),
        agent.model,
        agent.world,
        number=0,
        seed=seed,
        progress=lambda doing, done, total: None,
        key=jax.random.fold_in(key, 1),
    )
    facts, (_, *keys) = reward_facts(folder, 0), jax.random.split(key, 4)
    fit = load_tree(unfitted(agent.world, run.experiment.agent), path_of(folder, "surrogate", 0))
    for weight in weights:
        weighed = replace(
            run.experiment, task_weight=weight if weight == "alone" else float(weight)
        )
        if weighed.learns_reward:
            shared = Shared({"channel": agent.channel, "surrogate": fit})
            task = Task(reward, weighed.weight)
            trained = train_stages(agent.world, weighed.agent, shared, *keys, task=task)
            trained = replace(trained, model=agent.model)
        else:
            trained = agent
        found = TrainedRun(weighed, seed, trained)
        figures = evaluate_agent(replace(found, env=env), episodes=episodes, seed=seed)
        row = {
            "environment": env,
            "weight": weight,
            "seed": seed,
            "return": f"{figures['return_mean']:.1f}",
            "random: return": f"{figures['uniform']['return_mean']:.1f}",
            "steps": f"{figures['episode_length_mean']:.0f}",
            "survived": f"{figures['survived_fraction']:.2f}",
            "empowerment": f"{figures['empowerment_mean']:.3f}",
            "random: empowerment": f"{figures['uniform']['empowerment_mean']:.3f}",
            "error of the reward / its spread": (
                f"{facts['reward_error']:.3g} / {facts['reward_spread']:.3g}"
            ),
        }
        write_table("own-reward", [row], by=("environment", "weight", "seed"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Rewards of environments beside empowerment.")
    parser.add_argument("environments", nargs="*", default=["Pendulum-v1"])
    parser.add_argument("--weights", nargs="+", default=["0", "0.1", "1", "alone"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--episodes", type=int, default=20, help="episodes of each evaluation")
    parser.add_argument("--runs", type=Path, help="folder of the runs, to go on with them")
    options = parser.parse_args()
    for seed in options.seeds:
        for env in options.environments:
            with tempfile.TemporaryDirectory() as scratch:
                folder = (options.runs or Path(scratch)) / f"{env}-{seed}"
                measure(env, options.weights, seed, options.episodes, folder)


if __name__ == "__main__":
    main()
