"""A trained policy in its environment, beside other actors: episodes, and figures of any system."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.agent.acting import PolicyActor
from empowerment.agent.simulation import can_simulate, simulate
from empowerment.agent.training import TrainedAgent
from empowerment.channel import AbstractChannel, empowerment_at
from empowerment.data import Actor, Episode, RandomActor, ZeroActor, run_episode, spaces_of
from empowerment.environments import action_repeat_of
from empowerment.model import DVBF, Filter
from empowerment.policy import Surrogate
from empowerment.types import Observation, State
from empowerment.worlds import Bounded

ACTORS = ("policy", "sampled", "uniform")
"""Actors of an evaluation: the policy by its mean action, by samples, and random actions."""

ZERO = "zero"
"""The actor that does nothing, where it is worth comparing with."""

STEP_LIMIT = 2000
"""Number of actions after which an episode is truncated, where the environment sets no limit."""

_NUM_EVALUATED = 256
"""Number of states along the episodes at which the channel is evaluated."""

_MOST_AT_ONCE = 256
"""Number of episodes that are simulated at once."""

_SHORTEST = 63
"""Number of steps to which shorter episodes are padded to be filtered, less one."""


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one actor.

    Attributes:
        episodes: The episodes.
        watched: For each episode, what was watched before each action; empty if nothing was.
        figures: Mean empowerment, survival, length, and the error of the surrogate along them.
    """

    episodes: tuple[Episode, ...]
    watched: tuple[Float[np.ndarray, " steps"], ...]
    figures: dict[str, Any]


def evaluate_policy(
    agent: TrainedAgent,
    environment: gymnasium.Env,
    *,
    episodes: int,
    seed: int,
    watch: Callable[[gymnasium.Env], float] | None = None,
    with_zero: bool = False,
    progress: Callable[[str, int, int], None] = lambda doing, done, total: None,
) -> dict[str, Evaluation]:
    """Run a policy in its environment through its filter, and other actors beside it.

    Args:
        agent: The agent.
        environment: The environment.
        episodes: Number of episodes of each actor, from start states that it samples.
        seed: Random seed.
        watch: Reads a quantity that is not observed, before every action.
        with_zero: Whether to evaluate an actor that does nothing, too.
        progress: Receives progress.

    Returns:
        The evaluation of each actor. A policy survives an episode that is never terminated.
    """
    spaces = spaces_of(environment, str(environment.spec.id if environment.spec else environment))
    actors: dict[str, PolicyActor | RandomActor | ZeroActor] = {
        "policy": agent.actor(),
        "sampled": agent.actor(sample=True),
        "uniform": RandomActor(spaces),
    }
    if with_zero:
        actors[ZERO] = ZeroActor(spaces)
    limit, repeat = step_limit(environment), action_repeat_of(environment)
    values: list[float] = []

    def look() -> None:
        if watch is not None:
            values.append(watch(environment))

    evaluations, total = {}, len(actors) * episodes
    for done, (name, actor) in enumerate(actors.items()):
        paths, watched = [], []
        seeds = range(seed, seed + episodes)
        before_step = None if watch is None else look
        for path in play_many(agent, environment, actor, seeds=seeds, before_step=before_step):
            paths.append(path)
            watched.append(np.array(values))
            values.clear()
            progress(f"evaluating {name}", done * episodes + len(paths), total)
        lengths = np.minimum([repeat * path.length for path in paths], limit)
        states = states_of(agent, paths)
        chosen = np.random.default_rng(seed).integers(0, len(states), _NUM_EVALUATED)
        bounds = bounds_at(agent, states[chosen], seed)
        figures: dict[str, Any] = {
            "empowerment_mean": float(bounds.mean()),
            "survived_fraction": float(np.mean([not path.terminated for path in paths])),
            "episode_length_mean": float(lengths.mean()),
            "episode_length_median": float(np.median(lengths)),
        }
        if agent.task is not None and agent.task.goes_on:
            rewards = [task_rewards(agent, path) for path in paths]
            figures["task_reward_mean"] = float(np.concatenate(rewards).mean())
        returns = [path.rewards.sum(dtype=float) for path in paths if path.rewards is not None]
        if returns:
            figures["return_mean"] = float(np.mean(returns))
        if agent.surrogate is not None:
            fitted = np.asarray(_fitted_at(agent.surrogate, jnp.asarray(states[chosen], float)))
            off = fitted - bounds
            best = np.argsort(-fitted)[: _NUM_EVALUATED // 10]
            figures["surrogate_visited_error"] = float(np.sqrt(np.mean(off**2)))
            figures["surrogate_best_error"] = float(np.sqrt(np.mean(off[best] ** 2)))
        evaluations[name] = Evaluation(tuple(paths), tuple(watched), figures)
    return evaluations


def play(
    environment: gymnasium.Env,
    actor: Actor,
    *,
    seed: int,
    state: np.ndarray | None = None,
    before_step: Callable[[], None] | None = None,
    limit: int = STEP_LIMIT,
) -> Episode:
    """Run one episode; environment and actor have the same seed."""
    return run_episode(
        environment,
        actor,
        spaces_of(environment, "the environment"),
        seed=seed,
        actor_seed=seed,
        limit=limit,
        options=None if state is None else {"state": state},
        before_step=before_step,
    )


def play_many(
    agent: TrainedAgent,
    environment: gymnasium.Env,
    actor: PolicyActor | RandomActor | ZeroActor,
    *,
    seeds: Sequence[int],
    starts: Float[np.ndarray, "episodes state"] | None = None,
    before_step: Callable[[], None] | None = None,
) -> Iterator[Episode]:
    """Run episodes one after the other, or many at once in the environment of a known world.

    Args:
        agent: The agent that is evaluated.
        environment: The environment.
        actor: The agent's, or one whose actions depend on no observation.
        seeds: Random seed of each episode.
        starts: Start states, if the environment does not sample them.
        before_step: Called before every action.
    """
    if before_step is None and can_simulate(agent, environment):
        steps = min(step_limit(environment), STEP_LIMIT)
        for first in range(0, len(seeds), _MOST_AT_ONCE):
            part = slice(first, first + _MOST_AT_ONCE)
            given = None if starts is None else starts[part]
            yield from simulate(
                agent, environment, actor, seeds=seeds[part], starts=given, steps=steps
            )
        return
    for index, seed in enumerate(seeds):
        state = None if starts is None else starts[index]
        yield play(environment, actor, seed=seed, state=state, before_step=before_step)


def step_limit(environment: gymnasium.Env) -> int:
    """Return the number of steps after which an episode is truncated, repeated actions counted."""
    own = environment.spec.max_episode_steps if environment.spec else None
    return own or STEP_LIMIT * action_repeat_of(environment)


def states_of(agent: TrainedAgent, paths: Sequence[Episode]) -> Float[np.ndarray, "times state"]:
    """Estimate the states along episodes, of all agents: as their filters do while they act."""
    count, model = agent.num_agents, agent.model
    if model is None:
        return np.concatenate(
            [each.observations.reshape(-1, agent.world.states.size) for each in paths]
        )
    # Of few lengths, so that few programs are compiled.
    length = 1 << max(max(each.length for each in paths) - 1, _SHORTEST).bit_length()
    shape = len(paths), length, count, -1
    actions = [_repeated(_encoded(each.actions, agent), length) for each in paths]
    observations = [_repeated(each.observations[1:], length) for each in paths]
    states = _filtered(
        model,
        np.stack([each.observations[0] for each in paths]).reshape(len(paths), count, -1),
        np.stack(actions).reshape(shape),
        np.stack(observations).reshape(shape),
    )
    return np.concatenate(
        [
            each[: path.length + 1].reshape(-1, model.latent_size)
            for each, path in zip(np.asarray(states), paths, strict=True)
        ]
    )


def task_rewards(agent: TrainedAgent, path: Episode) -> Float[np.ndarray, " rewards"]:
    """Return the rewards of the task of an agent along an episode, of all agents."""
    assert agent.task is not None
    count = agent.num_agents
    observations = path.observations.reshape(path.length + 1, count, -1)
    actions = _encoded(path.actions, agent).reshape(path.length, count, -1)
    own = [
        agent.task.reward_along(observations[:, at], actions[:, at], path.rewards)
        for at in range(count)
    ]
    return np.stack(own, axis=1).ravel()


def _encoded(actions: Float[np.ndarray, "steps action"], agent: TrainedAgent) -> np.ndarray:
    """Encode actions as the model takes them, of all agents."""
    choices = agent.num_agents * agent.world.actions.choices
    if not choices:
        return actions
    indices = actions.astype(int).T
    parts = [np.eye(size, dtype=np.float32)[at] for size, at in zip(choices, indices, strict=True)]
    return np.concatenate(parts, axis=1)


def _repeated(rows: np.ndarray, length: int) -> np.ndarray:
    """Repeat the last row."""
    return np.concatenate([rows, np.repeat(rows[-1:], length - len(rows), axis=0)])


@eqx.filter_jit
def _filtered(
    model: DVBF,
    first: Float[Array | np.ndarray, "episodes agents observation"],
    actions: Float[Array | np.ndarray, "episodes steps agents action"],
    observations: Float[Array | np.ndarray, "episodes steps agents observation"],
) -> Float[Array, "episodes times agents state"]:
    """Estimate the states of all episodes, step by step."""
    own = Filter(model)

    def begin(seen: Observation) -> State:
        return own.init(jnp.repeat(seen[None], model.num_initial, axis=0))

    def go_on(states: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        states = jax.vmap(jax.vmap(own.update))(states, *inputs)
        return states, states

    start = jax.vmap(jax.vmap(begin))(jnp.asarray(first))
    inputs = jnp.swapaxes(actions, 0, 1), jnp.swapaxes(observations, 0, 1)
    rest = jax.lax.scan(go_on, start, inputs)[1]
    return jnp.swapaxes(jnp.concatenate([start[None], rest]), 0, 1)


def bounds_at(
    agent: TrainedAgent,
    states: Float[np.ndarray, "states state"],
    seed: int,
    *,
    num_samples: int = 256,
) -> Float[np.ndarray, " states"]:
    """Estimate the bound of the channel of an agent at some states, in nats."""
    keys = jax.random.split(jax.random.key(seed), len(states))
    given = jnp.asarray(states, float)
    return np.asarray(_bounds(agent.channel, agent.world, given, keys, num_samples))


# Optimised less, it is compiled four times as fast, and evaluated as fast.
@eqx.filter_jit(compiler_options={"xla_backend_optimization_level": 1})  # pyright: ignore[reportCallIssue] (passed to jax.jit)
def _bounds(
    channel: AbstractChannel,
    world: Bounded,
    states: Float[Array, "states state"],
    keys: Array,
    num_samples: int,
) -> Float[Array, " states"]:
    return empowerment_at(channel, world, states, keys, num_samples=num_samples)


@eqx.filter_jit
def _fitted_at(surrogate: Surrogate, states: Float[Array, "states state"]) -> Array:
    return jax.vmap(surrogate)(states)
