"""What a policy does in the real environment, beside one that acts at random."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.channel import AbstractChannel, empowerment
from empowerment.data import Actor, Uniform, make_environment, spaces_of
from empowerment.environments import DIRECTION, ENVIRONMENTS, Held
from empowerment.experiments.agent import Made, Progress
from empowerment.experiments.config import Experiment
from empowerment.experiments.held import UPRIGHT
from empowerment.experiments.pilot import Pilot, Track, tracker
from empowerment.types import State
from empowerment.worlds import Bounded

_INTERVAL, _HELD_SECONDS = 0.05, 5.0
_HANGING_NOISE = 0.01
"""The scale of what the start is off by, in angle and velocity, when hanging at rest."""

_TOUCH = 1e-4
"""How close to a wall a ball touches it."""

_NUM_JUDGED = 256
"""States along the way at which the channel is asked for the empowerment."""

_LONGEST = 2000
"""Steps after which an episode is cut, where the environment itself sets no limit."""

_PENDULUMS = (ENVIRONMENTS["pendulum"], DIRECTION, "Pendulum-v1")
SET_BY_STATE = (ENVIRONMENTS["pendulum"], DIRECTION)
"""Pendulums that can be set to hang."""


@dataclass(frozen=True)
class Path:
    """One episode.

    Attributes:
        observations: One more than actions.
        actions: What was done.
        terminated: Whether it came to an end of its own.
    """

    observations: Float[np.ndarray, "times observation"]
    actions: Float[np.ndarray, "steps action"]
    terminated: bool


def environment_of(experiment: Experiment) -> Held:
    """Give the environment that an experiment is of."""
    if not experiment.is_learnt:
        return Held(ENVIRONMENTS[experiment.world])
    if experiment.env is None:
        raise ValueError(
            "Expected a run of an environment, to act in it; this one learnt from a log alone. "
            "Name the environment when training: empower train --data FILE --env ID."
        )
    return Held(experiment.env, experiment.action_repeat)


def evaluate_agent(
    made: Made,
    *,
    episodes: int = 100,
    seed: int = 0,
    progress: Progress = lambda doing, done, total: None,
) -> dict[str, Any]:
    """Run a policy by its mean action in the real environment, through its filter if it has one.

    Args:
        made: What a run has made.
        episodes: How many, from starts as the environment draws them; for the pendulum any
            angle, with a velocity in +-1. As many again from hanging at rest.
        seed: Of the starts and of everything random.
        progress: Called as episodes are done.

    Returns:
        The figures of the policy, those of a uniformly random one under `uniform`, and how
        they were made. A policy survives an episode that is never terminated.
    """
    if episodes < 1:
        raise ValueError(f"Expected at least one episode; got {episodes}.")
    maker = environment_of(made.experiment)
    environment = make_environment(maker)
    pilot = Pilot(made.policy, made.world, made.model)
    acting: dict[str, Actor] = {
        "policy": pilot,
        "uniform": Uniform(spaces_of(environment, maker.id)),
    }
    found: dict[str, Any] = {}
    for done, (who, actor) in enumerate(acting.items()):
        paths = []
        for episode in range(episodes):
            paths.append(run_episode(environment, actor, seed=seed + episode))
            progress(f"evaluating {who}", done * episodes + episode + 1, 2 * episodes)
        figures: dict[str, Any] = {"empowerment_mean": _empowerment(made, paths, seed)}
        lengths = np.array([len(path.actions) for path in paths]) * maker.count
        figures["survived_fraction"] = float(np.mean([not path.terminated for path in paths]))
        figures["episode_length_mean"] = float(lengths.mean())
        figures["episode_length_median"] = float(np.median(lengths))
        if maker.id in _PENDULUMS:
            figures["held_fraction"] = _held_fraction(paths)
            if who == "policy" and maker.id in SET_BY_STATE:
                figures |= _swing_up(environment, actor, episodes, seed)
        if maker.id == ENVIRONMENTS["ball"]:
            figures |= _off_the_walls(paths, environment)
        found[who] = figures
    environment.close()
    return {
        **found["policy"],
        "uniform": found["uniform"],
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
    look: Callable[[], None] = lambda: None,
) -> Path:
    """Run one episode to its end, with a look at every observation."""
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
        truncated = truncated or len(done) >= _LONGEST
    return Path(np.stack(seen), np.stack(done), bool(terminated))


def hanging_starts(count: int, seed: int) -> Float[np.ndarray, "starts 2"]:
    """Draw starts of the pendulum from hanging nearly at rest."""
    angle, velocity = np.random.default_rng(seed).normal(0, _HANGING_NOISE, (2, count))
    return np.stack([angle - math.pi * np.sign(angle), velocity], axis=1)  # Within half a turn.


def angle_of(
    observations: Float[np.ndarray, "times observation"],
) -> Float[np.ndarray, " times"]:
    """Give the angle of a pendulum, observed as it is or by cosine and sine."""
    if observations.shape[1] == 2:
        return observations[:, 0]
    return np.arctan2(observations[:, 1], observations[:, 0])


def _held_fraction(paths: list[Path]) -> float:
    """Give the share of episodes that end with the pendulum held upright."""
    last = round(_HELD_SECONDS / _INTERVAL)
    held = [np.all(np.abs(angle_of(path.observations[-last:])) <= UPRIGHT) for path in paths]
    return float(np.mean(held))


def _off_the_walls(paths: list[Path], environment: gymnasium.Env) -> dict[str, float]:
    """Give how often a ball touches a wall, and how far from the closest one it is."""
    space = environment.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    places = np.concatenate([path.observations for path in paths])
    distance = np.minimum(places - space.low, space.high - places).min(1)
    return {
        "wall_touch_fraction": float(np.mean(distance <= _TOUCH)),
        "mean_wall_distance": float(distance.mean()),
    }


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


def time_to_upright(observations: Float[np.ndarray, "times observation"]) -> float:
    """Give the seconds after which a pendulum stays upright; infinite if it never does."""
    away = np.flatnonzero(np.abs(angle_of(observations)) > UPRIGHT)
    if not away.size:
        return 0.0
    is_last = away[-1] == len(observations) - 1
    return math.inf if is_last else _INTERVAL * float(away[-1] + 1)


def states_of(track: Track, path: Path) -> Float[np.ndarray, "times state"]:
    """Give the states of an episode, as they are tracked."""
    states, state = [], None
    for action, observation in zip([None, *path.actions], path.observations, strict=True):
        state = track(state, action, observation)
        states.append(state)
    return np.stack(states)


def _empowerment(made: Made, paths: list[Path], seed: int) -> float:
    """Give the mean bound of the channel at some of the states passed through, in nats."""
    track = tracker(made.model)
    states = np.concatenate([states_of(track, path) for path in paths])
    chosen = np.random.default_rng(seed).integers(0, len(states), _NUM_JUDGED)
    return float(bounds_at(made, states[chosen], seed).mean())


def bounds_at(
    made: Made, states: Float[np.ndarray, "judged state"], seed: int
) -> Float[np.ndarray, " judged"]:
    """Give the bound of the channel at some states, in nats."""
    keys = jax.random.split(jax.random.key(seed), len(states))
    return np.asarray(_bounds(made.channel, made.world, jnp.asarray(states, float), keys))


@eqx.filter_jit
def _bounds(
    channel: AbstractChannel, world: Bounded, states: Float[Array, "judged state"], keys: Array
) -> Float[Array, " judged"]:
    def of_state(inputs: tuple[State, Array]) -> Array:
        state, key = inputs
        return empowerment(channel, world, state, key=key).value

    return jax.lax.map(of_state, (states, keys), batch_size=8)
