"""Train and evaluate a preset over many seeds, and write its table of docs/results.md."""

import hashlib
import itertools
from dataclasses import replace

import jax
import numpy as np

from benchmarks.seeds import Sweeper, Trained, finished, parser, sweeper
from benchmarks.tables import Table
from empowerment.agent import untrained_agent
from empowerment.policy import train_policy
from empowerment.runs import PRESETS, TrainedRun, evaluate_agent, load_run

_HORIZONS = (10, 20, 40)


def measure(sweeper: Sweeper, preset: str, lengths: list[int]) -> Table:
    """Train with plans of some lengths, and evaluate with start states of the same seed."""
    rows: Table = []
    for run in _trained(sweeper, preset, lengths):
        figures = run.figures
        rows.append(
            {
                "n": load_run(run.folder).experiment.agent.steps,
                "seed": run.seed,
                "training": f"{run.seconds} s",
                **_standing(figures),
                "empowerment": f"{figures['empowerment_mean']:.3f}",
                "uniform: held": f"{figures['uniform']['held_fraction']:.2f}",
                "uniform: empowerment": f"{figures['uniform']['empowerment_mean']:.3f}",
            }
        )
    return rows


def _trained(sweeper: Sweeper, preset: str, lengths: list[int]) -> list[Trained]:
    """Train a preset, with plans of its own length or of others."""
    experiment = PRESETS[preset].experiment
    cases = {f"{preset}/steps={steps}": experiment.with_agent(steps=steps) for steps in lengths}
    return finished(sweeper.train(cases or {preset: experiment}))


def measure_on_one_channel(sweeper: Sweeper, preset: str) -> tuple[Table, Table]:
    """Train further policies on one channel: without a critic, and with other horizons."""
    critics: Table = []
    horizons: Table = []
    for each in _trained(sweeper, preset, []):
        run = load_run(each.folder)
        without = _another_policy(run, horizon=run.experiment.agent.horizon, critic=False)
        other = evaluate_agent(without, episodes=sweeper.episodes, seed=run.seed)
        for critic, figures in {"yes": each.figures, "no": other}.items():
            critics.append({"critic": critic, "seed": run.seed, **_standing(figures)})
            print(critics[-1], flush=True)
        if not horizons:
            horizons = measure_horizons(run, sweeper.episodes)
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
    options = parser(__doc__, out="agent", seeds="0-19", episodes=100)
    options.add_argument("preset", choices=PRESETS)
    options.add_argument("--steps", type=int, nargs="*", default=[], help="other plan lengths")
    options.add_argument(
        "--variants",
        action="store_true",
        help="train further policies on one channel: without a critic, and with other horizons",
    )
    given = options.parse_args()
    seeds = sweeper(given)
    if given.variants:
        critics, horizons = measure_on_one_channel(seeds, given.preset)
        seeds.write("agent-critic", critics)
        seeds.write("agent-horizons", horizons)
        return
    name = f"agent-{given.preset}-steps" if given.steps else f"agent-{given.preset}"
    seeds.write(name, measure(seeds, given.preset, given.steps))


if __name__ == "__main__":
    main()
