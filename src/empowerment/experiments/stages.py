"""The stages of an agent: train its channel, fit the bound, train its policy."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.channel import AbstractChannel, make_channel
from empowerment.channel import training as channel_training
from empowerment.experiments.config import Experiment
from empowerment.experiments.held import held_in_words
from empowerment.experiments.learning import named
from empowerment.experiments.run import Keeper, Run
from empowerment.experiments.variational import Progress, training_settings
from empowerment.files import write_atomic
from empowerment.policy import Agent, Critic, Policy, Surrogate, fit_surrogate
from empowerment.policy import training as policy_training
from empowerment.policy.surrogate import fresh_surrogate
from empowerment.storage import load_tree, read_about, save_tree
from empowerment.types import Key, Scalar
from empowerment.worlds import Bounded

_METRICS = "metrics.jsonl"


def path_of(folder: Path, stage: str, number: int) -> Path:
    """Give the file of what a stage has made in a round."""
    return folder / f"{named(stage, number)}.safetensors"


def train_channel(
    run: Run, experiment: Experiment, world: Bounded, number: int, progress: Progress, key: Key
) -> AbstractChannel:
    """Train source and planning, or load them if they are done."""
    make_key, train_key = jax.random.split(key)
    channel = fresh_channel(experiment, world, make_key)
    stage, path = named("channel", number), path_of(run.folder, "channel", number)
    if path.with_suffix(".json").exists():
        return load_tree(channel, path)
    stored = run.load_checkpoint(stage, channel_training.init(channel, key=train_key))
    resume = None
    if stored is not None:
        resume = channel_training.Snapshot(stored[0], _pairs(stored[1]), stored[1]["total"])
    keeper = Keeper(run, stage)

    def look(at: channel_training.Snapshot) -> None:
        made, bound = at.history[-1]
        keeper.keep(len(at.history), made, at.state, {"history": at.history, "total": at.total})
        progress(f"{stage}, {bound:.3f} nats", made, at.total)

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
    run.end_stage(stage, -1)
    return trained.channel


def fit_bound(
    run: Run,
    experiment: Experiment,
    world: Bounded,
    number: int,
    channel: AbstractChannel,
    progress: Progress,
    key: Key,
) -> Surrogate:
    """Fit a network to the bound, or load it if it is done."""
    path = path_of(run.folder, "surrogate", number)
    if path.with_suffix(".json").exists():
        return load_tree(unfitted(experiment, world), path)
    progress("fitting the bound", 0, 1)
    surrogate = fit_surrogate(
        channel,
        world,
        num_states=experiment.bound_states,
        width=experiment.width,
        depth=experiment.depth,
        key=key,
    )
    save_tree(surrogate, path, about={"error": float(surrogate.error)})
    return surrogate


def train_policy(
    run: Run,
    experiment: Experiment,
    world: Bounded,
    number: int,
    channel: AbstractChannel,
    surrogate: Surrogate | None,
    progress: Progress,
    key: Key,
) -> Agent:
    """Train the policy, with its channel if the training is joint."""
    make_key, train_key = jax.random.split(key)
    typical = jnp.zeros(()) if surrogate is None else surrogate.mean
    agent = fresh_agent(experiment, world, channel, typical, make_key)
    stage, path = named("policy", number), path_of(run.folder, "policy", number)
    if path.with_suffix(".json").exists():
        return load_tree(agent, path)
    stored = run.load_checkpoint(stage, policy_training.init(agent, key=train_key))
    resume = None
    if stored is not None:
        resume = policy_training.Snapshot(stored[0], _pairs(stored[1]))
    keeper = Keeper(run, stage)
    total = experiment.policy_updates

    def look(at: policy_training.Snapshot) -> None:
        made, seen = at.history[-1]
        keeper.keep(len(at.history), made, at.state, {"history": at.history})
        held = held_in_words(at.state.agent.policy, world)
        progress(f"{stage}, {seen['bound']:.3f} nats{held}", made, total)

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
    run.save_checkpoint(stage, total, trained.state, {"history": trained.history})
    run.end_stage(stage, total)
    _write_metrics(run.folder, number, trained.history)
    save_tree(trained.state.agent, path, about={"history": trained.history})
    return trained.state.agent


def fresh_channel(experiment: Experiment, world: Bounded, key: Key) -> AbstractChannel:
    """Make source and planning; their sizes depend on the key too."""
    return make_channel(
        world,
        family=experiment.family,
        steps=experiment.steps,
        width=experiment.width,
        depth=experiment.depth,
        key=key,
    )


def fresh_agent(
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


def unfitted(experiment: Experiment, world: Bounded) -> Surrogate:
    """Make a fit to nothing yet, to be loaded into."""
    sizes = {"width": experiment.width, "depth": experiment.depth}
    zero = jnp.zeros(())
    return fresh_surrogate(world.states, zero, zero, **sizes, key=jax.random.key(0))


def _pairs(about: dict[str, Any]) -> list:
    """Read a history as it was before JSON."""
    return [(made, seen) for made, seen in about["history"]]


def _write_metrics(folder: Path, number: int, history: list) -> None:
    """Add one line of figures for each call of a round."""
    lines = []
    if path_of(folder, "model", number).exists():
        found = read_about(path_of(folder, "model", number))["history"]
        lines += [{"stage": "model", "update": made, **seen} for made, seen in found]
    found = read_about(path_of(folder, "channel", number))["history"]
    lines += [{"stage": "channel", "update": made, "bound": bound} for made, bound in found]
    lines += [{"stage": "policy", "update": made, **seen} for made, seen in history]
    text = "".join(json.dumps({**line, "round": number}) + "\n" for line in lines)
    before = (folder / _METRICS).read_text() if number else ""
    kept = [line for line in before.splitlines() if json.loads(line)["round"] < number]
    write_atomic(folder / _METRICS, ("".join(f"{line}\n" for line in kept) + text).encode())
