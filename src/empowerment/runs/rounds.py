"""Rounds of a run: episodes of the policy, what was imagined of them, and which round is kept."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from empowerment.agent import Comparison, Explorer, PolicyActor, TrainedAgent
from empowerment.data import Actor, Collect, Episode, Spaces, Trajectories, join
from empowerment.environments import EnvFactory
from empowerment.files import write_atomic
from empowerment.report import ROUNDS
from empowerment.runs.experiment import Experiment
from empowerment.runs.folder import Run
from empowerment.runs.loading import data_path
from empowerment.runs.shared import write_shared

_BY_MEAN = "episodes_by_mean_action"
"""Where the metadata of a round's data have the number of its first episodes, by the mean action.
The others sample and explore."""

_SEEDS = 1 << 20
"""Offset of the seeds of episodes by the mean action from those of the others."""


def act(
    run: Run,
    experiment: Experiment,
    number: int,
    agent: TrainedAgent,
    collect: Collect,
    seed: int,
) -> tuple[Episode, ...]:
    """Let the policy of a round collect the data of the next; return its mean action's episodes.

    They are collected only if they are missing.
    """
    path = data_path(run.folder, number + 1)
    if not path.exists():
        arguments = run, experiment, number, agent, collect, seed
        write_shared(run, path, lambda: _collect(*arguments).save(path))
    stored = Trajectories.load(path)
    count = stored.about.get(_BY_MEAN)
    if not isinstance(count, int) or not 0 < count <= len(stored.episodes):
        raise ValueError(
            f"Expected {path} to say which of its episodes are by the mean action; it does not, "
            "as in earlier versions. Train in a new folder."
        )
    return stored.episodes[:count]


def _collect(
    run: Run,
    experiment: Experiment,
    number: int,
    agent: TrainedAgent,
    collect: Collect,
    seed: int,
) -> Trajectories:
    """Collect episodes by the mean action, and as many steps by an explorer."""
    total = experiment.round_steps // experiment.num_repeats
    half = total // 2
    parts = []
    for policy, steps, offset in (
        (_MeanActions(agent.actor()), half, _SEEDS),
        (_Exploration(agent.actor(sample=True)), total - half, 0),
    ):
        data, report = collect(
            EnvFactory(str(experiment.env), experiment.num_repeats),
            steps=steps,
            seed=seed + number + 1 + offset,
            policy=policy,
        )
        if report.failed:
            run.log(report.summary())
        parts.append(data)
    joined = join(*parts)
    return replace(joined, about={**joined.about, _BY_MEAN: len(parts[0].episodes)})


@dataclass(frozen=True)
class _MeanActions:
    """Makes the actor that a controller is; workers can be sent it."""

    actor: PolicyActor

    def __call__(self, spaces: Spaces) -> Actor:
        return self.actor

    def __str__(self) -> str:
        return "mean actions"


@dataclass(frozen=True)
class _Exploration:
    """Makes an actor that samples and explores; workers can be sent it."""

    actor: PolicyActor

    def __call__(self, spaces: Spaces) -> Actor:
        return Explorer(self.actor, spaces)

    def __str__(self) -> str:
        return "exploration"


def describe(found: Comparison) -> str:
    """Describe in a sentence what the last round imagined and what happened."""
    number, real = len(found.real) - 1, found.real[-1]
    return (
        f"Round {number}: imagined {found.imagined.empowerment:.2f} nats and "
        f"{found.imagined.length:.0f} of {found.longest} steps; really "
        f"{real.empowerment:.2f} nats and {real.length:.0f} steps."
        + ("" if real.gain is None else _describe_gain(found))
    )


def _describe_gain(found: Comparison) -> str:
    return f" With the task: imagined {found.imagined.gain:.2f}, really {found.real[-1].gain:.2f}."


def write_rounds(folder: Path, comparisons: Sequence[Comparison], *, is_last: bool = True) -> str:
    """Store all comparisons of a run so far; return a sentence about which is kept, and why."""
    last = comparisons[-1]
    why = "steps are spent"
    if last.is_settled:
        rest = "no episode ends" if last.survives else "nothing improves"
        why = f"what is imagined happens, and {rest}"
    about = {
        "kept": last.best,
        "stopped": why if is_last else None,
        "rounds": [{**asdict(each), "agrees": each.agrees} for each in comparisons],
    }
    write_atomic(folder / ROUNDS, (json.dumps(about, indent=2) + "\n").encode())
    return (
        f"Round {last.best} of 0 to {len(comparisons) - 1} is kept: its real episodes were best "
        f"({last.real[last.best].worth:.2f} nats). Stopped since {why}."
    )
