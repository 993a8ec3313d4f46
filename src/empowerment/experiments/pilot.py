"""A trained policy in the real environment, behind its filter."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.data import RandomActor, Spaces
from empowerment.model import DVBF, Filter
from empowerment.policy import Policy
from empowerment.types import Action, Key, Observation, State
from empowerment.worlds import Bounded

_BURST_SHARE = 0.5
"""Of the episodes of an explorer, how many have bursts of random actions."""

_BURST_CHANCE, _BURST_LENGTH = 0.03, 12
"""That a burst begins at a step, and how long it is at most."""


class Pilot:
    """Acts by a policy on the state that a filter keeps track of.

    Without a model the observation is the state. Several agents each have a filter and a policy,
    and know nothing of one another but what they observe.

    Args:
        policy: The policy.
        world: The world it was trained in.
        model: Whose filter finds the state; none where it is observed.
        agents: How many there are, whose observations and actions come one after the other.
        sample: Whether to draw actions, rather than take their mean.
    """

    def __init__(
        self,
        policy: Policy,
        world: Bounded,
        model: DVBF | None = None,
        *,
        agents: int = 1,
        sample: bool = False,
    ):
        # The weights are constants of the compiled functions: passing them costs more than
        # what they do.
        def act(state: State, key: Key) -> Action:
            choice = policy(state)
            return world.squash(choice.sample(key=key) if sample else choice.mean)

        def act_all(states: Float[Array, "agents state"], key: Key, time: Array) -> Array:
            keys = jax.random.split(jax.random.fold_in(key, time), agents)
            return jax.vmap(act)(states, keys).ravel()

        self._act = jax.jit(act_all)
        self._track = tracker(model, agents)
        self._key = jax.random.key(0)
        self._time = 0
        self._states: np.ndarray | None = None
        self._action: np.ndarray | None = None

    def reset(self, *, seed: int) -> None:
        """Begin an episode.

        Args:
            seed: Of its actions, where they are drawn.
        """
        self._key = jax.random.key(seed)
        self._time = 0
        self._states = self._action = None

    def __call__(self, observation: Float[np.ndarray, " observation"]) -> np.ndarray:
        """Give an allowed action upon an observation."""
        self._states = self._track(self._states, self._action, observation)
        self._action = np.asarray(self._act(self._states, self._key, self._time))
        self._time += 1
        return self._action

    def did(self, action: np.ndarray) -> None:
        """Note that another action was taken than the one that was given."""
        self._action = action


Track = Callable[[np.ndarray | None, np.ndarray | None, np.ndarray], np.ndarray]
"""Gives the states of all agents from those before, the action since, and what is observed."""


def tracker(model: DVBF | None, agents: int = 1) -> Track:
    """Give what finds the states: filters, or the observations themselves without a model."""
    if model is None:
        return lambda states, action, observation: np.asarray(observation).reshape(agents, -1)
    own = Filter(model)

    def begin(observation: Observation) -> State:
        return own.init(jnp.repeat(observation[None], model.num_initial, axis=0))

    init = jax.jit(lambda seen: jax.vmap(begin)(seen.reshape(agents, -1)))
    update = jax.jit(
        lambda states, action, seen: jax.vmap(own.update)(
            states, action.reshape(agents, -1), seen.reshape(agents, -1)
        )
    )

    def track(
        states: np.ndarray | None, action: np.ndarray | None, observation: np.ndarray
    ) -> np.ndarray:
        if states is None or action is None:
            return np.asarray(init(observation))
        return np.asarray(update(states, action, observation))

    return track


class Explorer:
    """Acts by drawing from a policy, with bursts of random actions in half of the episodes.

    Args:
        pilot: Draws from the policy.
        spaces: What actions may be.
    """

    def __init__(self, pilot: Pilot, spaces: Spaces):
        self._pilot = pilot
        self._uniform = RandomActor(spaces)
        self._random = np.random.default_rng(0)
        self._bursts = False
        self._left = 0

    def reset(self, *, seed: int) -> None:
        """Begin an episode.

        Args:
            seed: Of everything random in it.
        """
        self._random = np.random.default_rng(seed)
        self._pilot.reset(seed=seed)
        self._uniform.reset(seed=seed + 1)
        self._bursts = self._random.random() < _BURST_SHARE
        self._left = 0

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Give an allowed action upon an observation."""
        action = self._pilot(observation)
        if self._left == 0 and self._bursts and self._random.random() < _BURST_CHANCE:
            self._left = int(self._random.integers(1, _BURST_LENGTH + 1))
        if self._left == 0:
            return action
        self._left -= 1
        action = self._uniform(observation)
        self._pilot.did(action)
        return action
