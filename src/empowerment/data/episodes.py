"""The episode loop, and actors for it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from jaxtyping import Float32

from empowerment.data.environments import Maker, make_environment, to_space
from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Episode

_HEARTBEAT_SECONDS = 0.2


@runtime_checkable
class Actor(Protocol):
    """A policy with a state of its own, reset at the start of every episode."""

    def reset(self, *, seed: int) -> None:
        """Start an episode; all of its randomness comes from the seed."""
        ...

    def __call__(self, observation: Float32[np.ndarray, " observation"]) -> Any:
        """Return the action for an observation; it is clipped to its bounds."""
        ...


class RandomActor:
    """Actor with uniformly random actions.

    Args:
        spaces: Bounds of the actions.
    """

    def __init__(self, spaces: Spaces):
        self._spaces = spaces
        self._random = np.random.default_rng(0)

    def reset(self, *, seed: int) -> None:
        """Seed the actions of an episode."""
        self._random = np.random.default_rng(seed)

    def __call__(
        self, observation: Float32[np.ndarray, " observation"]
    ) -> Float32[np.ndarray, " action"]:
        """Sample an action."""
        del observation
        return self.ahead(1)[0]

    def ahead(self, count: int) -> Float32[np.ndarray, "steps action"]:
        """Sample the next actions at once."""
        return self._spaces.sample_actions(count, self._random)


class ZeroActor:
    """Actor whose action is zero, or the admissible one closest to it; the first discrete one.

    Args:
        spaces: Bounds of the actions.
    """

    def __init__(self, spaces: Spaces):
        self._action = np.clip(
            np.zeros_like(spaces.action_low), spaces.action_low, spaces.action_high
        )

    def reset(self, *, seed: int) -> None:
        """Start an episode."""

    def __call__(
        self, observation: Float32[np.ndarray, " observation"]
    ) -> Float32[np.ndarray, " action"]:
        """Return the constant action."""
        del observation
        return self._action

    def ahead(self, count: int) -> Float32[np.ndarray, "steps action"]:
        """Repeat the constant action."""
        return np.tile(self._action, (count, 1))


@dataclass(frozen=True)
class Job:
    """Description of a collection, sufficient to run any of its episodes.

    Attributes:
        environment: The environment, by id, factory or spec.
        policy: Builds the actor from the spaces.
        spaces: Those of the environment.
        seed: Random seed of the collection.
        limit: The number of steps after which an episode is truncated.
    """

    environment: Maker
    policy: Callable[[Spaces], Actor]
    spaces: Spaces
    seed: int
    limit: int

    def make(self) -> tuple[gymnasium.Env, Actor]:
        """Make the environment and the actor."""
        return make_environment(self.environment), self.policy(self.spaces)

    def run(
        self,
        environment: gymnasium.Env,
        actor: Actor,
        *,
        index: int,
        heartbeat: Callable[[int], None],
    ) -> Episode:
        """Run episode `index`, whose seeds depend on its index and the seed of the job alone."""
        entropy = np.random.SeedSequence((self.seed, index)).generate_state(2)
        seed, actor_seed = (entropy >> 1).tolist()  # some environments accept 31 bits only
        return run_episode(
            environment,
            actor,
            self.spaces,
            seed=seed,
            actor_seed=actor_seed,
            limit=self.limit,
            heartbeat=heartbeat,
        )


def run_episode(
    environment: gymnasium.Env,
    actor: Actor,
    spaces: Spaces,
    *,
    seed: int,
    actor_seed: int,
    limit: int,
    options: dict[str, Any] | None = None,
    before_step: Callable[[], None] | None = None,
    heartbeat: Callable[[int], None] | None = None,
) -> Episode:
    """Run one episode until it terminates or is truncated.

    Args:
        environment: The environment.
        actor: Chooses the actions.
        spaces: Those of the environment; actions are clipped to their bounds.
        seed: Random seed of the environment.
        actor_seed: Random seed of the actor.
        limit: The number of steps after which the episode is truncated.
        options: Passed to `reset` of the environment.
        before_step: Called before every action.
        heartbeat: Called with the number of steps so far, a few times per second.

    Returns:
        The episode.

    Raises:
        ValueError: If an observation has the wrong shape, or an action is not finite.
    """
    observation, _ = environment.reset(seed=seed, options=options)
    actor.reset(seed=actor_seed)
    observations, actions, rewards = [_checked_observation(observation, spaces)], [], []
    terminated = truncated = False
    last = time.monotonic()
    while not (terminated or truncated):
        if before_step is not None:
            before_step()
        action = _clipped_action(actor(observations[-1]), spaces)
        observation, reward, terminated, truncated, _ = environment.step(
            to_space(action, environment.action_space)
        )
        observations.append(_checked_observation(observation, spaces))
        actions.append(action)
        rewards.append(_number(reward))
        truncated = truncated or (not terminated and len(actions) >= limit)
        if heartbeat is not None and time.monotonic() - last > _HEARTBEAT_SECONDS:
            heartbeat(len(actions))
            last = time.monotonic()
    return Episode(
        np.stack(observations),
        np.stack(actions),
        bool(terminated),
        bool(truncated),
        np.array(rewards),
    )


def _number(reward: Any) -> float:
    """Return a reward as a number; what is none is missing, since nothing need depend on it."""
    try:
        array = np.asarray(reward, float)
    except (TypeError, ValueError):
        return np.nan
    return float(array.ravel()[0]) if array.size == 1 else np.nan


def _checked_observation(observation: Any, spaces: Spaces) -> np.ndarray:
    """Copy an observation, since environments may reuse their arrays."""
    with np.errstate(over="ignore"):
        array = np.array(observation, np.float32)
    if array.shape != spaces.observation_low.shape:
        raise ValueError(
            f"Expected an observation to have the shape {spaces.observation_low.shape} of its "
            f"space; got {array.shape}."
        )
    return array


def _clipped_action(action: Any, spaces: Spaces) -> np.ndarray:
    array = np.asarray(action, np.float32)
    if array.shape != spaces.action_low.shape or not np.isfinite(array).all():
        raise ValueError(
            f"Expected the policy to give {len(spaces.action_low)} finite numbers; got {action!r}."
        )
    if spaces.action_choices:
        array = np.rint(array)
    return np.clip(array, spaces.action_low, spaces.action_high)
