"""A trained policy in the real environment, behind its filter."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from empowerment.data import Spaces, Uniform
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

    Without a model the observation is the state.

    Args:
        policy: The policy.
        world: The world it was trained in.
        model: Whose filter finds the state; none where it is observed.
        sample: Whether to draw actions, rather than take their mean.
    """

    def __init__(
        self, policy: Policy, world: Bounded, model: DVBF | None = None, *, sample: bool = False
    ):
        # The weights are constants of the compiled functions: passing them costs more than
        # what they do.
        def act(state: State, key: Key) -> Action:
            choice = policy(state)
            return world.squash(choice.sample(key=key) if sample else choice.mean)

        self._act = jax.jit(act)
        self._track = tracker(model)
        self._key = jax.random.key(0)
        self._action: np.ndarray | None = None
        self.states: list[np.ndarray] = []

    def reset(self, *, seed: int) -> None:
        """Begin an episode.

        Args:
            seed: Of its actions, where they are drawn.
        """
        self._key = jax.random.key(seed)
        self._action = None
        self.states = []

    def __call__(self, observation: Float[np.ndarray, " observation"]) -> np.ndarray:
        """Give an allowed action upon an observation."""
        before = self.states[-1] if self.states else None
        state = self._track(before, self._action, observation)
        key = jax.random.fold_in(self._key, len(self.states))
        self.states.append(state)
        self._action = np.asarray(self._act(state, key))
        return self._action

    def did(self, action: np.ndarray) -> None:
        """Note that another action was taken than the one that was given."""
        self._action = action


Track = Callable[[np.ndarray | None, np.ndarray | None, np.ndarray], np.ndarray]
"""Gives the state from the one before, the action since, and what is observed now."""


def tracker(model: DVBF | None) -> Track:
    """Give what finds the state: a filter, or the observation itself where there is no model."""
    if model is None:
        return lambda state, action, observation: np.asarray(observation)
    own = Filter(model)

    def begin(observation: Observation) -> State:
        return own.init(jnp.repeat(observation[None], model.num_first, axis=0))

    init = jax.jit(begin)
    update = jax.jit(lambda state, action, observation: own.update(state, action, observation))

    def track(
        state: np.ndarray | None, action: np.ndarray | None, observation: np.ndarray
    ) -> np.ndarray:
        if state is None or action is None:
            return np.asarray(init(observation))
        return np.asarray(update(state, action, observation))

    return track


class Explorer:
    """Acts by drawing from a policy, with bursts of random actions in half of the episodes.

    Args:
        pilot: Draws from the policy.
        spaces: What actions may be.
    """

    def __init__(self, pilot: Pilot, spaces: Spaces):
        self._pilot = pilot
        self._uniform = Uniform(spaces)
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
