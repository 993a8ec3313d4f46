"""A trained policy in its environment, beside other actors: episodes, and figures of any system."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from empowerment.agent.acting import Track, tracker
from empowerment.agent.training import TrainedAgent
from empowerment.channel import empowerment_at
from empowerment.data import Actor, Episode, RandomActor, ZeroActor, run_episode, spaces_of
from empowerment.environments import action_repeat_of

ACTORS = ("policy", "sampled", "uniform")
"""Actors of an evaluation: the policy by its mean action, by samples, and random actions."""

ZERO = "zero"
"""The actor that does nothing, where it is worth comparing with."""

STEP_LIMIT = 2000
"""Number of actions after which an episode is truncated, where the environment sets no limit."""

_NUM_EVALUATED = 256
"""Number of states along the episodes at which the channel is evaluated."""


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
    actors: dict[str, Actor] = {
        "policy": agent.actor(),
        "sampled": agent.actor(sample=True),
        "uniform": RandomActor(spaces),
    }
    if with_zero:
        actors[ZERO] = ZeroActor(spaces)
    limit, repeat = step_limit(environment), action_repeat_of(environment)
    track = tracker(agent.model, agent.num_agents, choices=agent.world.actions.choices)
    evaluations = {}
    for done, (name, actor) in enumerate(actors.items()):
        paths, watched = [], []
        for index in range(episodes):
            values: list[float] = []

            def look(values: list[float] = values) -> None:
                if watch is not None:
                    values.append(watch(environment))

            paths.append(play(environment, actor, seed=seed + index, before_step=look))
            watched.append(np.array(values))
            count = done * episodes + index + 1
            progress(f"evaluating {name}", count, len(actors) * episodes)
        lengths = np.minimum([repeat * path.length for path in paths], limit)
        states = np.concatenate([states_of(track, path) for path in paths])
        chosen = np.random.default_rng(seed).integers(0, len(states), _NUM_EVALUATED)
        bounds = bounds_at(agent, states[chosen], seed)
        figures = {
            "empowerment_mean": float(bounds.mean()),
            "survived_fraction": float(np.mean([not path.terminated for path in paths])),
            "episode_length_mean": float(lengths.mean()),
            "episode_length_median": float(np.median(lengths)),
        }
        if agent.surrogate is not None:
            fitted = np.asarray(jax.vmap(agent.surrogate)(jnp.asarray(states[chosen], float)))
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


def step_limit(environment: gymnasium.Env) -> int:
    """Return the number of steps after which an episode is truncated, repeated actions counted."""
    own = environment.spec.max_episode_steps if environment.spec else None
    return own or STEP_LIMIT * action_repeat_of(environment)


def states_of(track: Track, path: Episode) -> Float[np.ndarray, "times state"]:
    """Estimate the states along an episode, of all agents."""
    estimates, states = [], None
    for action, observation in zip([None, *path.actions], path.observations, strict=True):
        states = track(states, action, observation)
        estimates.append(states)
    return np.concatenate(estimates)


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
    return np.asarray(
        empowerment_at(agent.channel, agent.world, given, keys, num_samples=num_samples)
    )
