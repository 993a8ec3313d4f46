"""Train and evaluate a preset over many seeds, and write its table of docs/results.md."""

import argparse
import hashlib
import itertools
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from benchmarks.tables import Table, write_table
from empowerment.agent import untrained_agent
from empowerment.policy import train_policy
from empowerment.runs import PRESETS, Experiment, TrainedRun, evaluate_agent, train_run

_HORIZONS = (10, 20, 40)


def measure(experiment: Experiment, seeds: range, episodes: int) -> Table:
    """Train with each seed, and evaluate with start states of the same seed."""
    rows: Table = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            run = train_run(experiment, folder=Path(folder) / "run", seed=seed)
            seconds = time.perf_counter() - start
        figures = evaluate_agent(run, episodes=episodes, seed=seed)
        rows.append(
            {
                "n": experiment.agent.steps,
                "seed": seed,
                "training": f"{seconds:.0f} s",
                **_standing(figures),
                "empowerment": f"{figures['empowerment_mean']:.3f}",
                "uniform: held": f"{figures['uniform']['held_fraction']:.2f}",
                "uniform: empowerment": f"{figures['uniform']['empowerment_mean']:.3f}",
            }
        )
        print(rows[-1], flush=True)
    return rows


def measure_on_one_channel(
    experiment: Experiment, seeds: range, episodes: int
) -> tuple[Table, Table]:
    """Train further policies on one channel: without a critic, and with other horizons."""
    critics: Table = []
    horizons: Table = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            run = train_run(experiment, folder=Path(folder) / "run", seed=seed)
        without = _another_policy(run, horizon=experiment.agent.horizon, critic=False)
        for critic, each in {"yes": run, "no": without}.items():
            figures = evaluate_agent(each, episodes=episodes, seed=seed)
            critics.append({"critic": critic, "seed": seed, **_standing(figures)})
            print(critics[-1], flush=True)
        if seed == seeds[0]:
            horizons = measure_horizons(run, episodes)
    return critics, horizons


def measure_horizons(run: TrainedRun, episodes: int) -> Table:
    """Train policies with other horizons on the channel of a run, with and without a critic."""
    rows: Table = []
    for critic, horizon in itertools.product((True, False), _HORIZONS):
        before = _digest(run)[:12]
        other = _another_policy(run, horizon=horizon, critic=critic)
        figures = evaluate_agent(other, episodes=episodes, seed=run.seed)
        digests = {"channel before": before, "channel after": _digest(run)[:12]}
        setting = {"T": horizon, "critic": "yes" if critic else "no"}
        rows.append({**setting, **_standing(figures), **digests})
        print(rows[-1], flush=True)
    return rows


def _another_policy(run: TrainedRun, *, horizon: int, critic: bool) -> TrainedRun:
    """Train a fresh policy on the surrogate of a run; channel and surrogate stay as they are."""
    agent, settings = run.agent, replace(run.experiment.agent, critic=critic)
    assert agent.surrogate is not None, "Expected a run that was not trained jointly."
    key = jax.random.fold_in(jax.random.key(run.seed), horizon)
    train_key = jax.random.split(key, 3)[2]  # `untrained_agent` uses the others.
    trained = train_policy(
        untrained_agent(agent.world, settings, agent.channel, agent.surrogate.mean, key=key),
        agent.world,
        agent.surrogate,
        betas=np.full(settings.policy_updates, settings.last_beta),
        num_starts=settings.num_starts,
        horizon=horizon,
        learning_rate=settings.learning_rate,
        discount=settings.discount,
        key=train_key,
    )
    return replace(run, agent=replace(agent, policy=trained.model.policy))


def _standing(figures: dict) -> dict[str, object]:
    upright = figures["time_to_upright_median_s"]
    return {
        "held": f"{figures['held_fraction']:.2f}",
        "time to upright": "never" if upright is None else f"{upright:.2f} s",
    }


def _digest(run: TrainedRun) -> str:
    """Compute the SHA-256 of all parameters of the channel and the surrogate."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves((run.agent.channel, run.agent.surrogate)):
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, from 0")
    parser.add_argument("--episodes", type=int, default=100, help="episodes of each evaluation")
    parser.add_argument("--steps", type=int, nargs="*", help="plan lengths; default: the preset's")
    parser.add_argument(
        "--variants",
        action="store_true",
        help="train further policies on one channel: without a critic, and with other horizons",
    )
    options = parser.parse_args()
    experiment, seeds = PRESETS[options.preset].experiment, range(options.seeds)
    if options.variants:
        critics, horizons = measure_on_one_channel(experiment, seeds, options.episodes)
        write_table("agent-critic", critics)
        write_table("agent-horizons", horizons)
        return
    rows, name = [], f"agent-{options.preset}"
    if options.steps:
        name = f"{name}-steps"
    for steps in options.steps or [experiment.agent.steps]:
        rows += measure(experiment.with_agent(steps=steps), seeds, options.episodes)
    write_table(name, rows)


if __name__ == "__main__":
    main()
