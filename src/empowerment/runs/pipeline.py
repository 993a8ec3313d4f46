"""Training a run: collect data and learn a world if need be, then train an agent, in a folder."""

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from empowerment.agent import (
    Comparison,
    TrainedAgent,
    compare,
    to_bundle,
    train_stages,
)
from empowerment.controller import Bundle, write_bundle
from empowerment.data import (
    Collect,
    Episode,
    Trajectories,
    action_bounds,
    check,
    check_same_spaces,
    close_environment,
    collect,
    interval_of,
    make_environment,
    read_log,
    with_limits,
)
from empowerment.devices import check_devices, gathered, use_devices
from empowerment.environments import EnvFactory
from empowerment.landscapes import noise
from empowerment.model import check_rewards
from empowerment.optimise import Snapshot
from empowerment.policy import Task
from empowerment.processes import ALONE, Team
from empowerment.runs.derived import with_action_repeat, with_plan_length
from empowerment.runs.experiment import Experiment, from_json, to_json
from empowerment.runs.folder import Log, Run
from empowerment.runs.loading import (
    TrainedRun,
    build_world,
    data_path,
    environment_of,
    load_data,
    named_world,
    save_world,
)
from empowerment.runs.log_support import write_support
from empowerment.runs.models import train_model
from empowerment.runs.monitoring import add_monitor, describe_monitor
from empowerment.runs.rewards import learn_reward
from empowerment.runs.rounds import act, describe, write_rounds
from empowerment.runs.shared import decided, open_shared, write_shared
from empowerment.runs.stage import RunHooks
from empowerment.runs.tensorboard import check_event_files, event_files
from empowerment.systems import System, system_of
from empowerment.types import Key, Progress
from empowerment.worlds import Bounded


def train_run(
    experiment: Experiment,
    *,
    folder: Path,
    seed: int = 0,
    resume: bool = False,
    command: str | None = None,
    workers: int = 0,
    cluster: str | None = None,
    team: Team = ALONE,
    tensorboard: bool = False,
    progress: Progress = lambda doing, done, total: None,
    log: Log = lambda sentence: None,
) -> TrainedRun:
    """Train an agent in a folder; it can be interrupted at any moment.

    Killed and resumed, a run ends with the same bits as one that was never killed.

    Args:
        experiment: The settings.
        folder: Where everything is stored.
        seed: Random seed.
        resume: Whether to resume the run in the folder.
        command: Command line that started it, for the report.
        workers: Number of processes that act in the environment; with 0 it is this one. Data are
            the same for any number.
        cluster: Address of a Ray cluster whose cores they are; by default those of this machine.
        team: The processes that train it together; all but the first write no run folder.
        tensorboard: Whether to write the metrics to event files as well.
        progress: Receives progress.
        log: Receives sentences for the user.
    """
    experiment.check()
    check_devices(experiment.devices)
    check_event_files(wanted=tensorboard)
    gather: Collect = partial(collect, workers=workers, cluster=cluster, progress=progress)
    given = None
    if team.is_first and experiment.data is not None and not data_path(folder, 0).exists():
        given = _read_log(experiment, log)
        if experiment.learns_reward:
            check_rewards(given)
        if experiment.env is not None:
            check_same_spaces(given.spaces, experiment.env)
    world = None if experiment.is_learnt else named_world(experiment)
    planned = with_plan_length(experiment, world)
    experiment = decided(
        team,
        lambda: with_action_repeat(planned, folder=folder, seed=seed, log=log, collect=gather),
    )
    facts = {"command": command, "noise": None if world is None else noise(world.world)}
    settings = to_json(experiment, seed)

    def read(stored: dict[str, Any]) -> dict[str, Any]:
        return to_json(*from_json(stored, folder / "manifest.json"))

    def prepare() -> None:
        if given is not None:
            given.save(data_path(folder, 0))

    options: dict[str, Any] = {"log": log, "facts": facts, "read": read, "prepare": prepare}
    with open_shared(team, folder, settings, resume=resume, **options) as run:
        with event_files(run, wanted=tensorboard and team.is_first):
            if world is not None:
                keys = tuple(jax.random.split(jax.random.key(seed), 3))
                task = experiment.task(world.states.names, world.states.angles)
                agent, kept = _train(run, experiment, 0, world, task, progress, keys), 0
            else:
                agent, kept = _train_rounds(run, experiment, seed, gather, progress)
        trained = TrainedRun(experiment, seed, agent, experiment.env, kept)
        if not team.is_first:
            return trained
        bundle = _write_controller(experiment, agent, folder, number=kept, seed=seed)
        if agent.model is not None:
            log(describe_monitor(bundle))
        if not experiment.has_environment:
            log(write_support(experiment, agent, folder, seed))
        run.write_manifest(finished=True)
    return trained


def _train_rounds(
    run: Run, experiment: Experiment, seed: int, gather: Collect, progress: Progress
) -> tuple[TrainedAgent, int]:
    """Train round after round until it is enough; return the agent of the best, and its number."""
    agents: list[TrainedAgent] = []
    acted: list[tuple[Episode, ...]] = []
    comparisons: list[Comparison] = []
    for number in range(experiment.num_rounds):
        before = agents[-1] if agents else None
        agents.append(_train_round(run, experiment, number, before, gather, progress, seed))
        if number >= experiment.num_acted:
            break
        first = Trajectories.load(data_path(run.folder, 0))
        can_end = any(episode.terminated for episode in first.episodes)
        acted.append(act(run, experiment, number, agents[-1], gather, seed))
        progress(f"comparing what round {number} imagined with what happened", 0, 1)
        comparisons.append(compare(agents[-1], acted, can_end=can_end, seed=seed))
        run.log(describe(comparisons[-1]))
        write_rounds(run.folder, comparisons, is_last=False)  # For those who watch.
        if experiment.rounds == "auto" and comparisons[-1].is_settled:
            break
    kept = comparisons[-1].best if comparisons else 0
    run.facts |= {"kept_round": kept, "num_rounds": len(agents)}
    if comparisons:
        run.log(write_rounds(run.folder, comparisons))
    return agents[kept], kept


def _train_round(
    run: Run,
    experiment: Experiment,
    number: int,
    before: TrainedAgent | None,
    gather: Collect,
    progress: Progress,
    seed: int,
) -> TrainedAgent:
    """Learn a world from the data of all rounds so far, and train an agent in it."""
    key = jax.random.fold_in(jax.random.key(seed), number)
    model_key, *keys = jax.random.split(key, 4)
    if number == 0:
        _gather_first(run, experiment, gather, seed)
    parts = load_data(run.folder, number, experiment.agents)
    with use_devices(experiment.devices):
        model = train_model(
            run,
            experiment.model,
            parts,
            number=number,
            start=None if before is None else before.model,
            seed=seed,
            progress=progress,
            key=model_key,
        )
    model = gathered(model)
    world = build_world(experiment, model, parts, seed)
    save_world(world, run.folder, number)
    task = experiment.task(parts[0].spaces.observation_names)
    if experiment.learns_reward:
        reward = learn_reward(
            run,
            experiment,
            parts,
            model,
            world,
            number=number,
            seed=seed,
            progress=progress,
            key=jax.random.fold_in(key, 1),
        )
        task = Task(reward, experiment.weight)
    trained = _train(run, experiment, number, world, task, progress, tuple(keys))
    return replace(trained, model=model, num_agents=experiment.agents)


def _train(
    run: Run,
    experiment: Experiment,
    number: int,
    world: Bounded,
    task: Task | None,
    progress: Progress,
    keys: tuple[Key, ...],
) -> TrainedAgent:
    """Train channel, fit and policy as stages of a round."""
    system = _system(experiment)

    def latest(stage: str, at: Snapshot) -> str:
        words = system.describe(at.model.policy, world) if stage == "policy" else ""
        return f"{at.history[-1][1]['bound']:.3f} nats{words}"

    hooks = RunHooks(run, number, progress, latest)
    with use_devices(experiment.devices):
        trained = train_stages(world, experiment.agent, hooks, *keys, task=task)
    own = {each.name: gathered(getattr(trained, each.name)) for each in fields(trained)}
    return TrainedAgent(**own)


def _system(experiment: Experiment) -> System:
    return system_of(environment_of(experiment).id if experiment.has_environment else None)


def _read_log(experiment: Experiment, log: Log) -> Trajectories:
    """Read and check the log to learn from, with limits of its actions; nothing is written yet."""
    data = read_log(str(experiment.data), experiment.log)
    check(data)
    spaces = data.spaces
    if np.isfinite([spaces.action_low, spaces.action_high]).all():
        return data
    low, high = action_bounds(data)
    pairs = zip(spaces.action_names, low.tolist(), high.tolist(), strict=True)
    found = ", ".join(f"{name} from {least:.4g} to {most:.4g}" for name, least, most in pairs)
    log(f"Actions are limited to what the log has: {found}. Choose others by --limits.")
    return with_limits(data, (low, high))


def _gather_first(run: Run, experiment: Experiment, gather: Collect, seed: int) -> None:
    """Collect the data of the first round if they are missing."""
    path = data_path(run.folder, 0)

    def write() -> None:
        collected, report = gather(
            EnvFactory(experiment.data_env or str(experiment.env), experiment.num_repeats),
            steps=experiment.data_steps // experiment.num_repeats,
            seed=seed,
        )
        if report.failed:
            run.log(report.summary())
        collected.save(path)

    if not path.exists():
        write_shared(run, path, write)


def _write_controller(
    experiment: Experiment, agent: TrainedAgent, folder: Path, *, number: int, seed: int
) -> Bundle:
    """Write the controller bundle of a run, and return it."""
    environment = names = None
    if not experiment.has_environment:
        data = Trajectories.load(data_path(folder, 0))
        # What is recorded from a device later is of the same columns.
        names = data.spaces.observation_names if experiment.agents == 1 else None
        stated = data.about.get("interval")
        interval = stated if isinstance(stated, int | float) and stated > 0 else None
    else:
        factory = environment_of(experiment)
        made = make_environment(factory)
        interval = interval_of(made)
        close_environment(made)
        # The controller is of one agent: it cannot act alone in the environment of several.
        environment = factory.id if experiment.agents == 1 else None
    bundle = to_bundle(
        policy=agent.policy,
        world=agent.world,
        model=agent.model,
        bound=agent.surrogate,
        observation_names=names,
        environment=environment,
        interval=None if interval is None else float(f"{interval:.6g}"),  # It may be single.
        action_repeat=experiment.num_repeats,
    )
    if agent.model is not None:
        bundle = add_monitor(bundle, agent.model, experiment, folder, number=number, seed=seed)
    write_bundle(bundle, folder)
    return bundle
