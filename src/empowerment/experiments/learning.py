"""From an environment or a log to a world that was learnt."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from empowerment.data import (
    RandomActor,
    Trajectories,
    check,
    collect,
    join,
    make_environment,
    spaces_of,
    split_agents,
)
from empowerment.environments import EnvFactory
from empowerment.experiments.config import Experiment
from empowerment.experiments.pilot import Explorer, Pilot
from empowerment.experiments.run import Run
from empowerment.experiments.variational import Progress
from empowerment.model import DVBF, Latent, learnt_world
from empowerment.types import Key
from empowerment.worlds import Bounded


def named(stage: str, number: int) -> str:
    """Give the name of a stage in a round; the first round goes without a number."""
    return f"{stage}-{number}" if number else stage


def gather(
    run: Run,
    experiment: Experiment,
    number: int,
    pilot: Pilot | None,
    progress: Progress,
    seed: int,
) -> tuple[Trajectories, ...]:
    """Collect the data of a round, or load it if it is there, and give that of all rounds."""
    path = _data_path(run.folder, number)
    if not path.exists():
        if number == 0 and experiment.data is not None:
            given = Trajectories.load(Path(experiment.data))
            check(given)
            given.save(path)
        elif experiment.env is not None:
            steps = experiment.round_steps if pilot else experiment.data_steps
            own = experiment.env if pilot else experiment.data_env or experiment.env
            found, report = collect(
                EnvFactory(own, experiment.action_repeat),
                steps=steps,
                seed=seed + number,
                policy=RandomActor if pilot is None else lambda spaces: Explorer(pilot, spaces),
                progress=progress,
            )
            if report.failed:
                run.say(report.summary())
            found.save(path)
    return load_data(run.folder, number, experiment.agents)


def load_data(folder: Path, number: int, agents: int) -> tuple[Trajectories, ...]:
    """Read the data of all rounds up to one, each agent by itself."""
    paths = (_data_path(folder, each) for each in range(number + 1))
    return tuple(split_agents(Trajectories.load(path), agents) for path in paths)


def check_log(experiment: Experiment) -> None:
    """Refuse a log of another system than the environment, before anything is done."""
    if experiment.data is None or experiment.env is None:
        return
    log = Trajectories.load(Path(experiment.data)).spaces
    environment = make_environment(experiment.env)
    own = spaces_of(environment, experiment.env)
    environment.close()
    sizes = [
        f"{len(each.observation_names)} observed channels and {len(each.action_names)} actions"
        for each in (own, log)
    ]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"Expected the log {experiment.data} to be of {experiment.env}, with {sizes[0]}; got "
            f"{sizes[1]}."
        )


def _data_path(folder: Path, number: int) -> Path:
    return folder / f"{named('data', number)}.npz"


def make_learnt(
    experiment: Experiment, model: DVBF, parts: tuple[Trajectories, ...], *, seed: int
) -> Bounded:
    """Make the world of a model, with actions before the squash."""
    if not experiment.process_noise:
        model = eqx.tree_at(lambda m: m.noise_factor, model, jnp.zeros_like(model.noise_factor))
    world = learnt_world(
        model,
        join(*parts),
        length=experiment.model.window,
        resolution=experiment.resolution,
        seed=seed,
    )
    return Bounded(Latent(world) if experiment.perceive == "latent" else world)


def keys_of_round(seed: int, number: int) -> tuple[Key, Key, Key, Key]:
    """Give the keys of model, channel, fit and policy in a round."""
    key = jax.random.fold_in(jax.random.key(seed), number)
    model_key, channel_key, surrogate_key, policy_key = jax.random.split(key, 4)
    return model_key, channel_key, surrogate_key, policy_key
