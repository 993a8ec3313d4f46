"""What a policy does in the real environment, beside one that acts at random."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.channel import AbstractChannel, empowerment
from empowerment.data import (
    Actor,
    Episode,
    RandomActor,
    Trajectories,
    ZeroActor,
    make_environment,
    spaces_of,
)
from empowerment.environments import ENVIRONMENTS, EnvFactory
from empowerment.experiments.agent import Made, Progress
from empowerment.experiments.config import Experiment
from empowerment.experiments.measures import (
    IDLE,
    LONGEST,
    MEASURES,
    SET_BY_STATE,
    WATCHES,
    hanging_starts,
    limit_of,
    time_to_upright,
)
from empowerment.experiments.pilot import Track, tracker
from empowerment.types import State
from empowerment.worlds import Bounded

WHO = ("policy", "sampled", "uniform")
"""Who acts in an evaluation: the policy by its mean action, by draws, and one at random."""

ZERO = "zero"
"""Who does nothing, where that is worth a look."""

_NUM_JUDGED = 256
"""States along the way at which the channel is asked for the empowerment."""


def _look_away() -> None:
    """Look at nothing."""


def environment_of(experiment: Experiment) -> EnvFactory:
    """Give the environment that an experiment is of."""
    if not experiment.is_learnt:
        return EnvFactory(ENVIRONMENTS[experiment.world])
    if experiment.env is None:
        raise ValueError(
            "Expected a run of an environment, to act in it; this one learnt from a log alone. "
            "Name the environment when training: empower train --data FILE --env ID."
        )
    return EnvFactory(experiment.env, experiment.action_repeat)


def evaluate_agent(
    made: Made,
    *,
    episodes: int = 100,
    seed: int = 0,
    progress: Progress = lambda doing, done, total: None,
    keep: Callable[[str, Trajectories], None] = lambda who, trajectories: None,
) -> dict[str, Any]:
    """Run a policy by its mean action in the real environment, through its filter if it has one.

    Args:
        made: What a run has made.
        episodes: How many, from starts as the environment draws them; for the pendulum any
            angle, with a velocity in +-1. As many again from hanging at rest.
        seed: Of the starts and of everything random.
        progress: Called as episodes are done.
        keep: Given who acted (policy, sampled or uniform), and what came of it.

    Returns:
        The figures of the policy, those of its actions drawn rather than taken by their mean
        under `sampled`, those of a uniformly random one under `uniform`, of one that does nothing
        under `zero` where that is worth a look, and how they were made. A policy survives an
        episode that is never terminated.
    """
    if episodes < 1:
        raise ValueError(f"Expected at least one episode; got {episodes}.")
    maker = environment_of(made.experiment)
    environment = make_environment(maker)
    spaces = spaces_of(environment, maker.id)
    acting: dict[str, Actor] = {
        "policy": made.pilot(),
        "sampled": made.pilot(sample=True),
        "uniform": RandomActor(spaces),
    }
    if maker.id in IDLE:
        acting[ZERO] = ZeroActor(spaces)
    longest = limit_of(environment)
    watch = WATCHES.get(maker.id)
    track = tracker(made.model, made.experiment.agents)
    found: dict[str, Any] = {}
    for done, (who, actor) in enumerate(acting.items()):
        paths, watched = [], []
        for episode in range(episodes):
            seen: list[float] = []
            look = (lambda seen=seen: seen.append(watch(environment))) if watch else _look_away
            paths.append(run_episode(environment, actor, seed=seed + episode, look=look))
            watched.append(np.array(seen))
            at, total = done * episodes + episode + 1, len(acting) * episodes
            progress(f"evaluating {who}", at, total)
        figures: dict[str, Any] = {"empowerment_mean": _empowerment(made, track, paths, seed)}
        lengths = np.minimum([maker.count * path.length for path in paths], longest)
        figures["survived_fraction"] = float(np.mean([not path.terminated for path in paths]))
        figures["episode_length_mean"] = float(lengths.mean())
        figures["episode_length_median"] = float(np.median(lengths))
        if maker.id in MEASURES:
            figures |= MEASURES[maker.id](paths, environment, watched)
        if who == "policy" and maker.id in SET_BY_STATE:
            figures |= _swing_up(environment, actor, episodes, seed)
        found[who] = figures
        keep(who, Trajectories(tuple(paths), spaces, {"environment": maker.id, "seed": seed}))
    environment.close()
    return {
        **found.pop("policy"),
        **found,
        "episodes": episodes,
        "seed": seed,
        "environment": maker.id,
    }


def run_episode(
    environment: gymnasium.Env,
    actor: Actor,
    *,
    seed: int,
    start: np.ndarray | None = None,
    look: Callable[[], None] = _look_away,
    longest: int = LONGEST,
) -> Episode:
    """Run one episode to its end, with a look before every action."""
    options = None if start is None else {"state": start}
    observation, _ = environment.reset(seed=seed, options=options)
    actor.reset(seed=seed)
    seen, done = [observation], []
    terminated = truncated = False
    space = environment.action_space
    assert isinstance(space, gymnasium.spaces.Box)
    while not (terminated or truncated):
        look()
        action = np.clip(np.asarray(actor(observation), space.dtype), space.low, space.high)
        observation, _, terminated, truncated, _ = environment.step(action)
        seen.append(observation)
        done.append(action)
        truncated = truncated or len(done) >= longest
    return Episode(np.stack(seen), np.stack(done), bool(terminated), bool(truncated))


def _swing_up(
    environment: gymnasium.Env, actor: Actor, episodes: int, seed: int
) -> dict[str, float | None]:
    """Give the time from hanging until the pendulum is upright for good."""
    times = [
        time_to_upright(run_episode(environment, actor, seed=seed, start=start).observations)
        for start in hanging_starts(episodes, seed)
    ]
    median = float(np.median(times))
    return {"time_to_upright_median_s": median if math.isfinite(median) else None}


def states_of(track: Track, path: Episode) -> Float[np.ndarray, "times state"]:
    """Give the states in an episode, of all agents, as they are tracked."""
    found, states = [], None
    for action, observation in zip([None, *path.actions], path.observations, strict=True):
        states = track(states, action, observation)
        found.append(states)
    return np.concatenate(found)


def _empowerment(made: Made, track: Track, paths: list[Episode], seed: int) -> float:
    """Give the mean bound of the channel at some of the states passed through, in nats."""
    states = np.concatenate([states_of(track, path) for path in paths])
    chosen = np.random.default_rng(seed).integers(0, len(states), _NUM_JUDGED)
    return float(bounds_at(made, states[chosen], seed).mean())


def bounds_at(
    made: Made, states: Float[np.ndarray, "judged state"], seed: int, *, num_samples: int = 256
) -> Float[np.ndarray, " judged"]:
    """Give the bound of the channel at some states, in nats, each from so many draws."""
    keys = jax.random.split(jax.random.key(seed), len(states))
    given = jnp.asarray(states, float)
    return np.asarray(_bounds(made.channel, made.world, given, keys, num_samples))


@eqx.filter_jit
def _bounds(
    channel: AbstractChannel,
    world: Bounded,
    states: Float[Array, "judged state"],
    keys: Array,
    num_samples: int,
) -> Float[Array, " judged"]:
    def of_state(inputs: tuple[State, Array]) -> Array:
        state, key = inputs
        return empowerment(channel, world, state, num_samples=num_samples, key=key).value

    return jax.lax.map(of_state, (states, keys), batch_size=8)
