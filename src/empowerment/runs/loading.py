"""Reading finished runs: the world, the agent, and actors for workers."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import equinox as eqx
import jax
import jax.numpy as jnp

from empowerment.agent import (
    AgentSettings,
    PolicyActor,
    TrainedAgent,
    unfitted,
    untrained_agent,
    untrained_surrogate,
)
from empowerment.channel import AbstractChannel, channel_like
from empowerment.data import Spaces, Trajectories, check_named, join, split_agents
from empowerment.environments import ENVIRONMENTS, EnvFactory
from empowerment.landscapes import make_world
from empowerment.model import DVBF, Latent, LearntWorld, learnt_world
from empowerment.policy import Task
from empowerment.runs.experiment import Experiment, from_json
from empowerment.runs.folder import read_manifest
from empowerment.runs.models import read_model
from empowerment.runs.rewards import load_reward
from empowerment.runs.stage import named, path_of
from empowerment.storage import is_saved, load_arrays, load_tree, read_about, save_tree
from empowerment.worlds import Bounded, Box, Grid


@dataclass(frozen=True)
class TrainedRun:
    """A finished run.

    Attributes:
        experiment: Its settings.
        seed: Its random seed.
        agent: The trained agent.
        env: Id of the environment as the caller named it, if so: a module of its own is imported
            only then, and not because a file says so.
        number: The round that the agent is of.
    """

    experiment: Experiment
    seed: int
    agent: TrainedAgent
    env: str | None = None
    number: int = 0

    @property
    def environment(self) -> EnvFactory:
        """Makes the environment of the run.

        Raises:
            ValueError: If it is in a module that the caller did not name, or there is none.
        """
        factory = environment_of(self.experiment)
        check_named(factory.id, self.env)
        return factory


def environment_of(experiment: Experiment) -> EnvFactory:
    """Return what makes the environment of an experiment."""
    if not experiment.is_learnt:
        return EnvFactory(ENVIRONMENTS[str(experiment.world)])
    if experiment.env is None:
        raise ValueError(
            "Expected a run of an environment, to act in it; this one learnt from a log alone. "
            "Name the environment when training: empower train --data FILE --env ID."
        )
    return EnvFactory(experiment.env, experiment.num_repeats)


def load_agent(folder: Path, *, rounds: int | None = None) -> TrainedAgent:
    """Read the agent of a finished run; see `load_run`."""
    return load_run(folder, rounds=rounds).agent


def load_run(folder: Path, *, rounds: int | None = None, env: str | None = None) -> TrainedRun:
    """Read a finished run.

    Args:
        folder: The run folder.
        rounds: Number of the round to read, from 0; the one that is kept by default.
        env: Id of its environment, to allow the import of the module in `module:ID`.

    Raises:
        ValueError: If it is not one, is not finished, is damaged, or has another environment.
    """
    manifest = read_manifest(folder)
    if not manifest["finished"]:
        raise ValueError(
            f"Expected the run in {folder} to be finished; it was interrupted. Resume it with "
            "empower train --resume."
        )
    settings = manifest["settings"]
    if settings.get("kind") == "model":
        raise ValueError(
            f"Expected {folder} to have an agent; it has a model alone. Train one by empower train."
        )
    experiment, seed = from_json(settings, folder / "manifest.json")
    if env is not None and env != environment_of(experiment).id:
        raise ValueError(
            f"Expected the environment of the run in {folder}, {environment_of(experiment).id}; "
            f"got {env}."
        )
    # Earlier versions made a fixed number of rounds, and kept the last.
    fixed = 0 if experiment.rounds == "auto" else experiment.rounds
    number, last = manifest.get("kept_round", fixed), manifest.get("num_rounds", fixed + 1) - 1
    if rounds is not None:
        if not 0 <= rounds <= last:
            raise ValueError(
                f"Expected a round from 0 to {last}, as the run in {folder} has; got {rounds}."
            )
        number = rounds
    model, task = None, None
    if experiment.is_learnt:
        model = read_model(path_of(folder, "model", number))
        world = load_world(experiment, model, folder, number, seed)
        if experiment.goal is not None:
            (first,) = load_data(folder, 0, experiment.agents)
            task = experiment.task(first.spaces.observation_names)
        elif experiment.learns_reward:
            task = Task(load_reward(experiment, world, folder, number), experiment.weight)
    else:
        world = named_world(experiment)
        task = experiment.task(world.states.names, world.states.angles)
    agent = _load_stages(world, experiment.agent, folder, number)
    agent = replace(agent, model=model, num_agents=experiment.agents, task=task)
    return TrainedRun(experiment, seed, agent, env, number)


def _load_stages(
    world: Bounded, settings: AgentSettings, folder: Path, number: int
) -> TrainedAgent:
    """Read channel, fit and policy."""
    path = path_of(folder, "channel", number)
    sizes = {"family": settings.family, "width": settings.width, "depth": settings.depth}
    like = channel_like(world, load_arrays(path), steps=settings.num_steps, **sizes)
    channel: AbstractChannel = load_tree(like, path)
    fresh = eqx.filter_eval_shape(
        untrained_agent, world, settings, channel, jnp.zeros(()), key=jax.random.key(0)
    )
    like = None if settings.joint else eqx.filter_eval_shape(untrained_surrogate, world, settings)
    path = path_of(folder, "policy", number)
    if like is not None and not any(name.startswith(".surrogate") for name in load_arrays(path)):
        # Earlier versions did not refine it along with the policy.
        agent, surrogate = load_tree(fresh, path), path_of(folder, "surrogate", number)
        return TrainedAgent(world, channel, load_tree(like, surrogate), agent.policy)
    agent = load_tree(replace(fresh, surrogate=like), path)
    fitted = path_of(folder, "surrogate", number)
    if settings.joint and is_saved(fitted):  # Earlier versions did not fit one.
        like = eqx.filter_eval_shape(unfitted, world, settings)
        agent = replace(agent, surrogate=load_tree(like, fitted).surrogate)
    return TrainedAgent(world, agent.channel or channel, agent.surrogate, agent.policy)


def named_world(experiment: Experiment) -> Bounded:
    """Build the named world of an experiment, with actions before the squash."""
    world = make_world(str(experiment.world), resolution=experiment.resolution)
    if not isinstance(world, Grid):
        return Bounded(world)
    raise ValueError(
        f"Expected a world with continuous states, to train a policy in; got {experiment.world}."
    )


def build_world(
    experiment: Experiment, model: DVBF, parts: tuple[Trajectories, ...], seed: int
) -> Bounded:
    """Build the world of a model from the data, with actions before the squash."""
    length, resolution = experiment.model.window, experiment.resolution
    model = _noiseless(experiment, model)
    world = learnt_world(model, join(*parts), length=length, resolution=resolution, seed=seed)
    return _bounded(experiment, world)


class _Axes(TypedDict):
    """The description of a stored world: names of the axes, and choices of discrete actions."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    choices: NotRequired[tuple[int, ...]]


_WORLD = {"visited_states": 2, "initial_states": 2, "resolution": 1, "states": 2, "actions": 2}
"""Arrays of a stored world, and how many axes they have; the last two are low and high."""


def save_world(world: Bounded, folder: Path, number: int) -> None:
    """Write what a learnt world has beside its model: its states, resolution and limits."""
    inner = world.world.world if isinstance(world.world, Latent) else world.world
    assert isinstance(inner, LearntWorld)
    arrays = {
        "visited_states": inner.visited_states,
        "initial_states": inner.initial_states,
        "resolution": inner.resolution,
        "states": jnp.stack([inner.states.low, inner.states.high]),
        "actions": jnp.stack([inner.actions.low, inner.actions.high]),
    }
    about: dict[str, Any] = {"states": inner.states.names, "actions": inner.actions.names}
    if inner.actions.choices:
        about["choices"] = inner.actions.choices
    save_tree(arrays, path_of(folder, "world", number), about=about)


def load_world(
    experiment: Experiment, model: DVBF, folder: Path, number: int, seed: int
) -> Bounded:
    """Read the world of a model; in runs of version 1 it is built from the data."""
    path = path_of(folder, "world", number)
    if not path.exists():
        return build_world(experiment, model, load_data(folder, number, experiment.agents), seed)
    about: _Axes = read_about(path, _Axes)
    arrays = {name[2:-2]: jnp.asarray(each) for name, each in load_arrays(path).items()}
    if {name: each.ndim for name, each in arrays.items()} != _WORLD or any(
        arrays[name].shape != (2, len(about[name])) for name in ("states", "actions")
    ):
        raise ValueError(f"Expected {path} to be a learnt world; it has other arrays.")

    world = LearntWorld(
        _noiseless(experiment, model),
        arrays["visited_states"],
        arrays["initial_states"],
        arrays["resolution"],
        Box(arrays["states"][0], arrays["states"][1], about["states"]),
        Box(
            arrays["actions"][0],
            arrays["actions"][1],
            about["actions"],
            choices=about.get("choices", ()),
        ),
    )
    return _bounded(experiment, world)


def _noiseless(experiment: Experiment, model: DVBF) -> DVBF:
    if experiment.process_noise:
        return model
    return eqx.tree_at(lambda m: m.noise_factor, model, jnp.zeros_like(model.noise_factor))


def _bounded(experiment: Experiment, world: LearntWorld) -> Bounded:
    return Bounded(Latent(world) if experiment.perceive == "latent" else world)


def data_path(folder: Path, number: int) -> Path:
    """Return the file of the data of a round."""
    return folder / f"{named('data', number)}.npz"


def load_data(folder: Path, number: int, agents: int) -> tuple[Trajectories, ...]:
    """Read the data of all rounds up to one, each agent by itself."""
    paths = (data_path(folder, each) for each in range(number + 1))
    return tuple(split_agents(Trajectories.load(path), agents) for path in paths)


@dataclass(frozen=True)
class RunActor:
    """Makes actors that sample from the policy of a finished run, also in workers.

    Attributes:
        folder: The run folder.
    """

    folder: Path

    def __call__(self, spaces: Spaces) -> PolicyActor:
        """Read the run; refuse an environment with other spaces."""
        agent = load_agent(self.folder)
        agent.check_spaces(spaces)
        return agent.actor(sample=True)
