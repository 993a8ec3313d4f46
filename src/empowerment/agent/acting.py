"""Actors for environments: a policy behind its filter, and an explorer around it."""

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
"""Fraction of an explorer's episodes that have bursts of random actions."""

_BURST_PROBABILITY, _BURST_LENGTH = 0.03, 12
"""Probability that a burst begins at a step, and its maximal length."""


class PolicyActor:
    """Acts by a policy at the state that a filter estimates.

    Without a model the observation is the state. Several agents each have a filter and a policy;
    they perceive one another through their observations alone.

    Args:
        policy: The policy.
        world: The world it was trained in.
        model: Model whose filter estimates the state; none where the state is observed.
        num_agents: Number of agents, whose observations and actions are concatenated.
        sample: Whether to sample actions rather than take their mean.
    """

    def __init__(
        self,
        policy: Policy,
        world: Bounded,
        model: DVBF | None = None,
        *,
        num_agents: int = 1,
        sample: bool = False,
    ):
        # Weights are constants of the compiled functions: passing them costs more than using them.
        def act(state: State, key: Key) -> Action:
            choice = policy(state)
            return world.squash(choice.sample(key=key) if sample else choice.mean)

        def act_all(states: Float[Array, "agents state"], key: Key, time: Array) -> Array:
            keys = jax.random.split(jax.random.fold_in(key, time), num_agents)
            actions = jax.vmap(act)(states, keys)
            if not world.actions.choices:
                return actions.ravel()
            chosen = [part.argmax(axis=1) for part in world.actions.split(actions)]
            return jnp.stack(chosen, axis=1).astype(actions.dtype).ravel()

        self._act = jax.jit(act_all)
        self._track = tracker(model, num_agents, choices=world.actions.choices)
        self._key = jax.random.key(0)
        self._time = 0
        self._states: np.ndarray | None = None
        self._action: np.ndarray | None = None

    def reset(self, *, seed: int) -> None:
        """Begin an episode."""
        self._key = jax.random.key(seed)
        self._time = 0
        self._states = self._action = None

    def __call__(self, observation: Float[np.ndarray, " observation"]) -> np.ndarray:
        """Return an admissible action."""
        self._states = self._track(self._states, self._action, observation)
        self._action = np.asarray(self._act(self._states, self._key, self._time))
        self._time += 1
        return self._action

    def override(self, action: np.ndarray) -> None:
        """Note for the filter that another action was taken than the latest one returned."""
        self._action = action


Track = Callable[[np.ndarray | None, np.ndarray | None, np.ndarray], np.ndarray]
"""Maps the previous states of all agents, the action since, and the observation to the states."""


def tracker(model: DVBF | None, num_agents: int = 1, *, choices: tuple[int, ...] = ()) -> Track:
    """Build the state estimator of all agents: filters, or the observations without a model.

    Args:
        model: The model, if there is one.
        num_agents: Number of agents, whose observations and actions are concatenated.
        choices: Of discrete actions, the number of choices of each action of an agent.
    """
    if model is None:
        return lambda states, action, observation: np.asarray(observation).reshape(num_agents, -1)
    own = Filter(model)

    def begin(observation: Observation) -> State:
        return own.init(jnp.repeat(observation[None], model.num_initial, axis=0))

    def go_on(states: Array, action: Array, seen: Array) -> Array:
        own_actions = action.reshape(num_agents, -1)
        if choices:
            numbers = own_actions.astype(int)
            parts = [jax.nn.one_hot(numbers[:, i], n) for i, n in enumerate(choices)]
            own_actions = jnp.concatenate(parts, axis=1)
        return jax.vmap(own.update)(states, own_actions, seen.reshape(num_agents, -1))

    init = jax.jit(lambda seen: jax.vmap(begin)(seen.reshape(num_agents, -1)))
    update = jax.jit(go_on)

    def track(
        states: np.ndarray | None, action: np.ndarray | None, observation: np.ndarray
    ) -> np.ndarray:
        if states is None or action is None:
            return np.asarray(init(observation))
        return np.asarray(update(states, action, observation))

    return track


class Explorer:
    """Samples from a policy, with bursts of random actions in half of the episodes.

    Args:
        actor: Samples from the policy.
        spaces: Spaces of the environment.
    """

    def __init__(self, actor: PolicyActor, spaces: Spaces):
        self._actor = actor
        self._uniform = RandomActor(spaces)
        self._random = np.random.default_rng(0)
        self._has_bursts = False
        self._left = 0

    def reset(self, *, seed: int) -> None:
        """Begin an episode."""
        self._random = np.random.default_rng(seed)
        self._actor.reset(seed=seed)
        self._uniform.reset(seed=seed + 1)
        self._has_bursts = self._random.random() < _BURST_SHARE
        self._left = 0

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Return an admissible action."""
        action = self._actor(observation)
        if self._left == 0 and self._has_bursts and self._random.random() < _BURST_PROBABILITY:
            self._left = int(self._random.integers(1, _BURST_LENGTH + 1))
        if self._left == 0:
            return action
        self._left -= 1
        action = self._uniform(observation)
        self._actor.override(action)
        return action
