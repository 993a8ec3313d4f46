"""One episode: who acts, from which seed, and until when."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from jaxtyping import Float32

from empowerment.data.environments import Maker, make_environment
from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Episode

_BEAT_SECONDS = 0.2
"""Between two signs of life."""


@runtime_checkable
class Actor(Protocol):
    """What acts in an environment. It is made once, and told where an episode begins."""

    def reset(self, *, seed: int) -> None:
        """Forget the episode before; all that is random in the next one comes from the seed."""
        ...

    def __call__(self, observation: Float32[np.ndarray, " observation"]) -> Any:
        """Give the action to take upon an observation; beyond the limits it is clipped."""
        ...


class RandomActor:
    """Act at random, evenly within the limits of the actions.

    Args:
        spaces: What observations and actions may be.
    """

    def __init__(self, spaces: Spaces):
        self._low, self._high = spaces.action_low, spaces.action_high
        self._random = np.random.default_rng(0)

    def reset(self, *, seed: int) -> None:
        """Begin an episode.

        Args:
            seed: Of its actions.
        """
        self._random = np.random.default_rng(seed)

    def __call__(
        self, observation: Float32[np.ndarray, " observation"]
    ) -> Float32[np.ndarray, " action"]:
        """Draw an action, whatever is observed."""
        del observation
        return self._random.uniform(self._low, self._high).astype(np.float32)


class ZeroActor:
    """Do nothing: zero, or what is allowed that is closest to it.

    Args:
        spaces: What observations and actions may be.
    """

    def __init__(self, spaces: Spaces):
        self._action = np.clip(
            np.zeros_like(spaces.action_low), spaces.action_low, spaces.action_high
        )

    def reset(self, *, seed: int) -> None:
        """Begin an episode; there is nothing random in it."""

    def __call__(
        self, observation: Float32[np.ndarray, " observation"]
    ) -> Float32[np.ndarray, " action"]:
        """Give the same action, whatever is observed."""
        del observation
        return self._action


@dataclass(frozen=True)
class Job:
    """All that is needed to run any of the episodes of a collection.

    Attributes:
        environment: What makes the environment.
        policy: What makes the actor.
        spaces: Of the environment.
        seed: With the number of an episode, its seed.
        limit: How long an episode may be.
    """

    environment: Maker
    policy: Callable[[Spaces], Actor]
    spaces: Spaces
    seed: int
    limit: int

    def make(self) -> tuple[gymnasium.Env, Actor]:
        """Make the environment and who acts in it."""
        return make_environment(self.environment), self.policy(self.spaces)


def run_episode(
    job: Job,
    environment: gymnasium.Env,
    actor: Actor,
    *,
    index: int,
    beat: Callable[[int], None] = lambda steps: None,
) -> Episode:
    """Run one episode from its own seed, so that it is the same whoever runs it, and when.

    Args:
        job: What the episode is of.
        environment: As `job.make` has made it.
        actor: As `job.make` has made it.
        index: The number of the episode.
        beat: Told now and then how many steps are done.

    Returns:
        The episode.
    """
    entropy = np.random.SeedSequence((job.seed, index)).generate_state(2)
    start, draws = (entropy >> 1).tolist()  # some environments take no more than 31 bits
    observation, _ = environment.reset(seed=start)
    actor.reset(seed=draws)
    observations, actions = [_observed(observation, job.spaces)], []
    terminated = truncated = False
    last = time.monotonic()
    while not (terminated or truncated):
        action = _allowed(actor(observations[-1]), job.spaces)
        observation, _, terminated, truncated, _ = environment.step(
            _as_wanted(action, environment.action_space)
        )
        observations.append(_observed(observation, job.spaces))
        actions.append(action)
        truncated = truncated or (not terminated and len(actions) >= job.limit)
        if time.monotonic() - last > _BEAT_SECONDS:
            beat(len(actions))
            last = time.monotonic()
    return Episode(np.stack(observations), np.stack(actions), bool(terminated), bool(truncated))


def _observed(observation: Any, spaces: Spaces) -> np.ndarray:
    """Read what an environment gave; its own arrays may change later."""
    with np.errstate(over="ignore"):
        seen = np.array(observation, np.float32)
    if seen.shape != spaces.observation_low.shape:
        raise ValueError(
            f"Expected an observation to have the shape {spaces.observation_low.shape} of its "
            f"space; got {seen.shape}."
        )
    return seen


def _allowed(action: Any, spaces: Spaces) -> np.ndarray:
    """Clip what the actor gave to the limits."""
    wanted = np.asarray(action, np.float32)
    if wanted.shape != spaces.action_low.shape or not np.isfinite(wanted).all():
        raise ValueError(
            f"Expected the policy to give {len(spaces.action_low)} finite numbers; got {action!r}."
        )
    return np.clip(wanted, spaces.action_low, spaces.action_high)


def _as_wanted(action: np.ndarray, space: gymnasium.Space) -> np.ndarray:
    """Give the action in the type of the space; its limits in double precision may be closer."""
    assert isinstance(space, gymnasium.spaces.Box)
    return np.clip(action.astype(space.dtype), space.low, space.high)
