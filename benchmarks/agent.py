"""Train and evaluate a preset over many seeds, and write its table of docs/results.md."""

import argparse
import dataclasses
import hashlib
import itertools
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import empowerment as emp
from benchmarks.tables import Table, write_table
from empowerment.experiments import PRESETS, Experiment
from empowerment.experiments.agent import Made, train_agent
from empowerment.experiments.evaluation import evaluate_agent

_HORIZONS = (10, 20, 40)


def measure(experiment: Experiment, seeds: range, episodes: int) -> Table:
    """Train with each seed and evaluate with starts of the same seed."""
    rows: Table = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            made = train_agent(experiment, folder=Path(folder) / "run", seed=seed)
            seconds = time.perf_counter() - start
        found = evaluate_agent(made, episodes=episodes, seed=seed)
        rows.append(
            {
                "n": experiment.steps,
                "seed": seed,
                "training": f"{seconds:.0f} s",
                **_standing(found),
                "empowerment": f"{found['empowerment_mean']:.3f}",
                "uniform: held": f"{found['uniform']['held_fraction']:.2f}",
                "uniform: empowerment": f"{found['uniform']['empowerment_mean']:.3f}",
            }
        )
        print(rows[-1], flush=True)
    return rows


def measure_on_one_channel(
    experiment: Experiment, seeds: range, episodes: int
) -> tuple[Table, Table]:
    """Train more policies on a channel: without a critic, and for other horizons."""
    critics: Table = []
    horizons: Table = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            made = train_agent(experiment, folder=Path(folder) / "run", seed=seed)
        without = _another_policy(made, horizon=experiment.horizon, critic=False)
        for critic, agent in {"yes": made, "no": without}.items():
            found = evaluate_agent(agent, episodes=episodes, seed=seed)
            critics.append({"critic": critic, "seed": seed, **_standing(found)})
            print(critics[-1], flush=True)
        if seed == seeds[0]:
            horizons = measure_horizons(made, episodes)
    return critics, horizons


def measure_horizons(made: Made, episodes: int) -> Table:
    """Train policies for other horizons on the channel of a run, with a critic and without."""
    rows: Table = []
    for critic, horizon in itertools.product((True, False), _HORIZONS):
        before = _digest(made)[:12]
        other = _another_policy(made, horizon=horizon, critic=critic)
        found = evaluate_agent(other, episodes=episodes, seed=made.seed)
        digests = {"channel before": before, "channel after": _digest(made)[:12]}
        chosen = {"T": horizon, "critic": "yes" if critic else "no"}
        rows.append({**chosen, **_standing(found), **digests})
        print(rows[-1], flush=True)
    return rows


def _another_policy(made: Made, *, horizon: int, critic: bool) -> Made:
    """Train a fresh policy on the bound of a run, which is left as it is."""
    world, bound, settings = made.world, made.surrogate, made.experiment
    assert bound is not None
    keys = jax.random.split(jax.random.fold_in(jax.random.key(made.seed), horizon), 3)
    agent = emp.Agent(
        emp.Policy(world.states, world.actions.size, key=keys[0]),
        critic=emp.Critic(world.states, bound.mean, key=keys[1]) if critic else None,
    )
    trained = emp.train_policy(
        agent,
        world,
        bound,
        betas=np.full(settings.policy_updates, settings.last_beta),
        num_starts=settings.num_starts,
        horizon=horizon,
        learning_rate=settings.learning_rate,
        discount=settings.discount,
        key=keys[2],
    )
    return dataclasses.replace(made, policy=trained.state.agent.policy)


def _standing(found: dict) -> dict[str, object]:
    upright = found["time_to_upright_median_s"]
    return {
        "held": f"{found['held_fraction']:.2f}",
        "time to upright": "never" if upright is None else f"{upright:.2f} s",
    }


def _digest(made: Made) -> str:
    """Give the SHA-256 of all numbers in the channel and in the fit to its bound."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves((made.channel, made.surrogate)):
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("--seeds", type=int, default=20, help="how many, from 0")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--steps", type=int, nargs="*", help="the preset's if not given")
    parser.add_argument(
        "--variants",
        action="store_true",
        help="on one channel: with and without a critic, and other horizons",
    )
    chosen = parser.parse_args()
    preset, seeds = PRESETS[chosen.preset], range(chosen.seeds)
    if chosen.variants:
        critics, horizons = measure_on_one_channel(preset, seeds, chosen.episodes)
        write_table("agent-critic", critics)
        write_table("agent-horizons", horizons)
        return
    rows, name = [], f"agent-{chosen.preset}"
    if chosen.steps:
        name = f"{name}-steps"
    for steps in chosen.steps or [preset.steps]:
        rows += measure(dataclasses.replace(preset, steps=steps), seeds, chosen.episodes)
    write_table(name, rows)


if __name__ == "__main__":
    main()
