"""Settings that follow from the world or the environment, by rules."""

from dataclasses import replace
from pathlib import Path

from empowerment.agent import with_steps
from empowerment.data import Collect, repeat_of
from empowerment.environments import EnvFactory
from empowerment.runs.experiment import Experiment, from_json
from empowerment.runs.folder import MANIFEST, Log, read_manifest
from empowerment.worlds import Bounded

_SHARE = 10
"""One step in this many of the first data shows how fast an environment is."""


def with_plan_length(experiment: Experiment, world: Bounded | None) -> Experiment:
    """Choose the number of steps of a plan, if it is auto and the world is known."""
    if world is None:
        return experiment
    return replace(experiment, agent=with_steps(experiment.agent, world))


def with_action_repeat(
    experiment: Experiment, *, folder: Path, seed: int, log: Log, collect: Collect
) -> Experiment:
    """Choose for how many steps an action is repeated, if it is auto.

    A run that was begun keeps what was chosen. A log has its own pace.
    """
    if experiment.action_repeat != "auto":
        return experiment
    if experiment.env is None or experiment.data is not None:
        return replace(experiment, action_repeat=1)
    if (folder / MANIFEST).exists():
        stored, _ = from_json(read_manifest(folder)["settings"], folder / MANIFEST)
        return replace(experiment, action_repeat=stored.action_repeat)
    data, _ = collect(
        EnvFactory(experiment.data_env or experiment.env),
        steps=max(1, experiment.data_steps // _SHARE),
        seed=seed,
    )
    count = repeat_of(data)
    if count > 1:
        log(f"Observations change slowly: each action is repeated for {count} steps.")
    return replace(experiment, action_repeat=count)
