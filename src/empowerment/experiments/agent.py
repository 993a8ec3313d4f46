"""The pipeline of an agent: learn its world if need be, its channel, and its policy."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp

from empowerment.channel import AbstractChannel
from empowerment.data import Spaces
from empowerment.experiments.config import Experiment, ModelSettings, check
from empowerment.experiments.deployment import deploy
from empowerment.experiments.landscape import make_world, noise
from empowerment.experiments.learning import (
    check_log,
    gather,
    keys_of_round,
    load_data,
    make_learnt,
    named,
)
from empowerment.experiments.modelling import check_model_settings, read_model, train_model
from empowerment.experiments.pilot import Pilot
from empowerment.experiments.run import Run, Say, open_run, read_manifest
from empowerment.experiments.stages import (
    fit_bound,
    fresh_agent,
    fresh_channel,
    path_of,
    train_channel,
    train_policy,
    unfitted,
)
from empowerment.experiments.variational import Progress
from empowerment.model import DVBF
from empowerment.policy import Policy, Surrogate
from empowerment.storage import load_tree
from empowerment.types import Key
from empowerment.worlds import Bounded, Grid


@dataclass(frozen=True)
class Made:
    """What a run has made.

    Attributes:
        experiment: Its settings.
        seed: Of everything random.
        world: The world, with actions before the squash.
        channel: Source and planning.
        surrogate: A fit to their bound; none after joint training.
        policy: The policy.
        model: Whose filter finds the state; none where the world was not learnt.
    """

    experiment: Experiment
    seed: int
    world: Bounded
    channel: AbstractChannel
    surrogate: Surrogate | None
    policy: Policy
    model: DVBF | None = None

    def pilot(self, *, sample: bool = False) -> Pilot:
        """Give who acts by the policy, by its mean action or by draws."""
        agents = self.experiment.agents
        return Pilot(self.policy, self.world, self.model, agents=agents, sample=sample)


def train_agent(
    experiment: Experiment,
    *,
    folder: Path,
    seed: int = 0,
    resume: bool = False,
    progress: Progress = lambda doing, done, total: None,
    say: Say = lambda sentence: None,
) -> Made:
    """Train a channel and a policy, in a folder that can be interrupted at any moment.

    Killed and resumed, a run ends with the same bits as one that was never killed.

    Args:
        experiment: The settings.
        folder: Where everything is kept.
        seed: Of everything random.
        resume: Whether to go on with what is in the folder.
        progress: Called as training goes on.
        say: Tells the user what needs to be told.

    Returns:
        What was made.
    """
    check(experiment)
    check_model_settings(experiment.model)
    check_log(experiment)
    world = None if experiment.is_learnt else bounded_world(experiment)
    given = {**asdict(experiment), "seed": seed}
    if world is not None:
        given["noise"] = noise(world.world)
    with open_run(folder, given, resume=resume, say=say) as run:
        if world is not None:
            keys = tuple(jax.random.split(jax.random.key(seed), 3))
            made = _train(run, experiment, seed, world, None, 0, progress, keys)
        else:
            made = _train_rounds(run, experiment, seed, progress)
        deploy(experiment, policy=made.policy, world=made.world, model=made.model, folder=folder)
        run.write_manifest(finished=True)
    return made


def _train_rounds(run: Run, experiment: Experiment, seed: int, progress: Progress) -> Made:
    """Learn a world and act in it, and once more from what came of it, as often as is asked."""
    made, pilot = None, None
    for number in range(experiment.rounds + 1):
        model_key, *keys = keys_of_round(seed, number)
        parts = gather(run, experiment, number, pilot, progress, seed)
        before = None if made is None else made.model
        fitted = train_model(
            run,
            experiment.model,
            parts,
            seed=seed,
            progress=progress,
            key=model_key,
            name=named("model", number),
            start=before,
        )
        world = make_learnt(experiment, fitted.model, parts, seed=seed)
        made = _train(run, experiment, seed, world, fitted.model, number, progress, tuple(keys))
        pilot = made.pilot(sample=True)
    assert made is not None
    return made


def _train(
    run: Run,
    experiment: Experiment,
    seed: int,
    world: Bounded,
    model: DVBF | None,
    number: int,
    progress: Progress,
    keys: tuple[Key, ...],
) -> Made:
    """Train channel and policy in a world."""
    channel_key, surrogate_key, policy_key = keys
    channel = train_channel(run, experiment, world, number, progress, channel_key)
    surrogate = None
    if not experiment.joint:
        surrogate = fit_bound(run, experiment, world, number, channel, progress, surrogate_key)
    agent = train_policy(run, experiment, world, number, channel, surrogate, progress, policy_key)
    channel = channel if agent.channel is None else agent.channel
    return Made(experiment, seed, world, channel, surrogate, agent.policy, model)


def load_agent(folder: Path, *, rounds: int | None = None) -> Made:
    """Read what a finished run has made.

    Args:
        folder: The run folder.
        rounds: After how many rounds of its own data; after all of them if not given.

    Raises:
        ValueError: If it is not one, is not finished, or is damaged.
    """
    manifest = read_manifest(folder)
    if not manifest["finished"]:
        raise ValueError(
            f"Expected the run in {folder} to be finished; it was interrupted. Go on with it by "
            "empower train --resume."
        )
    settings = dict(manifest["settings"])
    if settings.get("kind") == "model":
        raise ValueError(
            f"Expected {folder} to have an agent; it has a model alone. Train one by empower train."
        )
    seed = settings.pop("seed")
    settings.pop("noise", None)
    experiment = Experiment(model=ModelSettings(**settings.pop("model")), **settings)
    if rounds is not None:
        if not 0 <= rounds <= experiment.rounds:
            raise ValueError(
                f"Expected a round from 0 to {experiment.rounds}, as the run in {folder} has; got "
                f"{rounds}."
            )
        experiment = replace(experiment, rounds=rounds)
    number, model = experiment.rounds if experiment.is_learnt else 0, None
    if experiment.is_learnt:
        model, _ = read_model(path_of(folder, "model", number))
        world = make_learnt(
            experiment, model, load_data(folder, number, experiment.agents), seed=seed
        )
        _, channel_key, _, policy_key = keys_of_round(seed, number)
    else:
        world = bounded_world(experiment)
        channel_key, _, policy_key = jax.random.split(jax.random.key(seed), 3)
    channel = fresh_channel(experiment, world, jax.random.split(channel_key)[0])
    agent = fresh_agent(experiment, world, channel, jnp.zeros(()), policy_key)
    agent = load_tree(agent, path_of(folder, "policy", number))
    if agent.channel is not None:
        return Made(experiment, seed, world, agent.channel, None, agent.policy, model)
    channel = load_tree(channel, path_of(folder, "channel", number))
    surrogate = load_tree(unfitted(experiment, world), path_of(folder, "surrogate", number))
    return Made(experiment, seed, world, channel, surrogate, agent.policy, model)


@dataclass(frozen=True)
class Acting:
    """Makes who acts by the policy of a finished run, drawing its actions; also in a worker.

    Attributes:
        folder: The run folder.
    """

    folder: Path

    def __call__(self, spaces: Spaces) -> Pilot:
        """Read the run, and refuse an environment of another kind."""
        made = load_agent(self.folder)
        agents, seen = made.experiment.agents, made.world.states.size
        if made.model is not None:
            seen = made.model.observations.offset.size
        wanted = agents * made.world.actions.size, agents * seen
        found = len(spaces.action_names), len(spaces.observation_names)
        if wanted != found:
            raise ValueError(
                f"Expected an environment with {wanted[1]} observed channels and {wanted[0]} "
                f"actions, as the run in {self.folder} was trained for; got {found[1]} and "
                f"{found[0]}."
            )
        return made.pilot(sample=True)


def bounded_world(experiment: Experiment) -> Bounded:
    """Make the world of an experiment by its name, with actions before the squash."""
    world = make_world(experiment.world, resolution=experiment.resolution)
    if not isinstance(world, Grid):
        return Bounded(world)
    raise ValueError(
        f"Expected a world with continuous states, to train a policy in; got {experiment.world}."
    )
