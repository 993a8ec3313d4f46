"""The pipeline of an agent: train its channel, fit the bound, train its policy."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.channel import AbstractChannel, make_channel
from empowerment.channel import training as channel_training
from empowerment.experiments.config import Experiment, check
from empowerment.experiments.landscape import make_world, noise
from empowerment.experiments.run import Keeper, Run, Say, open_run, read_manifest
from empowerment.experiments.variational import Progress, training_settings
from empowerment.files import write_whole
from empowerment.policy import Agent, Critic, Policy, Surrogate, fit_surrogate
from empowerment.policy import training as policy_training
from empowerment.policy.surrogate import fresh_surrogate
from empowerment.storage import load_tree, read_about, save_tree
from empowerment.types import Key, Scalar
from empowerment.worlds import Bounded, Grid

_CHANNEL, _SURROGATE, _POLICY = "channel.safetensors", "surrogate.safetensors", "policy.safetensors"
_METRICS = "metrics.jsonl"


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
    """

    experiment: Experiment
    seed: int
    world: Bounded
    channel: AbstractChannel
    surrogate: Surrogate | None
    policy: Policy


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
    world = bounded_world(experiment)
    settings = {**asdict(experiment), "seed": seed, "noise": noise(world.world)}
    with open_run(folder, settings, resume=resume, say=say) as run:
        channel_key, surrogate_key, policy_key = jax.random.split(jax.random.key(seed), 3)
        channel = _train_channel(run, experiment, world, progress, channel_key)
        surrogate = None
        if not experiment.joint:
            surrogate = _fit(run, experiment, world, channel, progress, surrogate_key)
        agent = _train_policy(run, experiment, world, channel, surrogate, progress, policy_key)
        run.write_manifest(finished=True)
    channel = channel if agent.channel is None else agent.channel
    return Made(experiment, seed, world, channel, surrogate, agent.policy)


def load_agent(folder: Path) -> Made:
    """Read what a finished run has made.

    Args:
        folder: The run folder.

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
    seed = settings.pop("seed")
    settings.pop("noise")
    experiment = Experiment(**settings)
    world = bounded_world(experiment)
    channel_key, _, policy_key = jax.random.split(jax.random.key(seed), 3)
    channel = _fresh_channel(experiment, world, jax.random.split(channel_key)[0])
    agent = _fresh_agent(experiment, world, channel, jnp.zeros(()), policy_key)
    agent = load_tree(agent, folder / _POLICY)
    if agent.channel is not None:
        return Made(experiment, seed, world, agent.channel, None, agent.policy)
    channel = load_tree(channel, folder / _CHANNEL)
    surrogate = load_tree(_fresh_surrogate(experiment, world), folder / _SURROGATE)
    return Made(experiment, seed, world, channel, surrogate, agent.policy)


def bounded_world(experiment: Experiment) -> Bounded:
    """Make the world of an experiment, with actions before the squash."""
    world = make_world(experiment.world, resolution=experiment.resolution)
    if not isinstance(world, Grid):
        return Bounded(world)
    raise ValueError(
        f"Expected a world with continuous states, to train a policy in; got {experiment.world}."
    )


def _train_channel(
    run: Run, experiment: Experiment, world: Bounded, progress: Progress, key: Key
) -> AbstractChannel:
    """Train source and planning, or load them if they are done."""
    make_key, train_key = jax.random.split(key)
    channel = _fresh_channel(experiment, world, make_key)
    path = run.folder / _CHANNEL
    if path.with_suffix(".json").exists():
        return load_tree(channel, path)
    stored = run.load_checkpoint("channel", channel_training.init(channel, key=train_key))
    resume = None
    if stored is not None:
        resume = channel_training.Snapshot(stored[0], _pairs(stored[1]), stored[1]["total"])
    keeper = Keeper(run, "channel")

    def look(at: channel_training.Snapshot) -> None:
        made, bound = at.history[-1]
        keeper.keep(len(at.history), made, at.state, {"history": at.history, "total": at.total})
        progress(f"channel, {bound:.3f} nats", made, at.total)

    with keeper:
        trained = channel_training.train(
            channel,
            world,
            num_updates=experiment.channel_updates,
            **training_settings(channel),
            progress=look,
            resume=resume,
            key=train_key,
        )
    about = {"stopped": trained.stopped, "history": trained.history}
    save_tree(trained.channel, path, about=about)
    run.end_stage("channel", -1)
    return trained.channel


def _fit(
    run: Run,
    experiment: Experiment,
    world: Bounded,
    channel: AbstractChannel,
    progress: Progress,
    key: Key,
) -> Surrogate:
    """Fit a network to the bound, or load it if it is done."""
    path = run.folder / _SURROGATE
    if path.with_suffix(".json").exists():
        return load_tree(_fresh_surrogate(experiment, world), path)
    progress("fitting the bound", 0, 1)
    surrogate = fit_surrogate(
        channel, world, width=experiment.width, depth=experiment.depth, key=key
    )
    save_tree(surrogate, path, about={"error": float(surrogate.error)})
    return surrogate


def _train_policy(
    run: Run,
    experiment: Experiment,
    world: Bounded,
    channel: AbstractChannel,
    surrogate: Surrogate | None,
    progress: Progress,
    key: Key,
) -> Agent:
    """Train the policy, with its channel if the training is joint."""
    make_key, train_key = jax.random.split(key)
    typical = jnp.zeros(()) if surrogate is None else surrogate.mean
    agent = _fresh_agent(experiment, world, channel, typical, make_key)
    path = run.folder / _POLICY
    if path.with_suffix(".json").exists():
        return load_tree(agent, path)
    stored = run.load_checkpoint("policy", policy_training.init(agent, key=train_key))
    resume = None
    if stored is not None:
        resume = policy_training.Snapshot(stored[0], _pairs(stored[1]))
    keeper = Keeper(run, "policy")
    total = experiment.policy_updates

    def look(at: policy_training.Snapshot) -> None:
        made, seen = at.history[-1]
        keeper.keep(len(at.history), made, at.state, {"history": at.history})
        progress(f"policy, {seen['bound']:.3f} nats", made, total)

    rising = np.clip(np.arange(total) / experiment.rise, 0, 1)
    betas = experiment.first_beta + (experiment.last_beta - experiment.first_beta) * rising
    with keeper:
        trained = policy_training.train(
            agent,
            world,
            surrogate,
            betas=betas,
            num_starts=experiment.num_starts,
            horizon=experiment.horizon,
            learning_rate=experiment.learning_rate,
            discount=experiment.discount,
            progress=look,
            resume=resume,
            key=train_key,
        )
    run.save_checkpoint("policy", total, trained.state, {"history": trained.history})
    run.end_stage("policy", total)
    _write_metrics(run.folder, trained.history)
    save_tree(trained.state.agent, path, about={"history": trained.history})
    return trained.state.agent


def _fresh_channel(experiment: Experiment, world: Bounded, key: Key) -> AbstractChannel:
    """Make source and planning; their sizes depend on the key too."""
    return make_channel(
        world,
        family=experiment.family,
        steps=experiment.steps,
        width=experiment.width,
        depth=experiment.depth,
        key=key,
    )


def _fresh_agent(
    experiment: Experiment, world: Bounded, channel: AbstractChannel, typical: Scalar, key: Key
) -> Agent:
    """Make a policy, with a critic if there is to be one, and the channel if it learns on."""
    policy_key, critic_key = jax.random.split(key)
    sizes = {"width": experiment.width, "depth": experiment.depth}
    return Agent(
        Policy(world.states, world.actions.size, **sizes, key=policy_key),
        channel if experiment.joint else None,
        Critic(world.states, typical, **sizes, key=critic_key) if experiment.critic else None,
    )


def _fresh_surrogate(experiment: Experiment, world: Bounded) -> Surrogate:
    """Make a fit to nothing yet, to be loaded into."""
    sizes = {"width": experiment.width, "depth": experiment.depth}
    zero = jnp.zeros(())
    return fresh_surrogate(world.states, zero, zero, **sizes, key=jax.random.key(0))


def _pairs(about: dict[str, Any]) -> list:
    """Read a history as it was before JSON."""
    return [(made, seen) for made, seen in about["history"]]


def _write_metrics(folder: Path, history: list) -> None:
    """Write one line of figures for each call of the whole run."""
    channel = read_about(folder / _CHANNEL)["history"]
    lines = [{"stage": "channel", "update": made, "bound": bound} for made, bound in channel]
    lines += [{"stage": "policy", "update": made, **seen} for made, seen in history]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    write_whole(folder / _METRICS, text.encode())
