"""Actors for environments: a policy behind its filter, and an explorer around it."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from empowerment.agent.bundle import to_bundle
from empowerment.controller.bundle import Bundle
from empowerment.controller.numpy_engine import NumpyEngine
from empowerment.data import RandomActor, Spaces
from empowerment.model import DVBF
from empowerment.policy import Policy
from empowerment.worlds import Bounded

_BLOCK = 256
"""Number of actions for which noise is drawn at once."""

_BURST_SHARE = 0.5
"""Fraction of an explorer's episodes that have bursts of random actions."""

_BURST_PROBABILITY, _BURST_LENGTH = 0.03, 12
"""Probability that a burst begins at a step, and its maximal length."""


class PolicyActor:
    """Acts by a policy at the state that a filter estimates, in NumPy as the controller does.

    Without a model the observation is the state. Several agents each have a filter and a policy;
    they perceive one another through their observations alone.

    Args:
        policy: The policy.
        world: The world it was trained in.
        model: Model whose filter estimates the state; none where the state is observed.
        num_agents: Number of agents, whose observations and actions are concatenated.
        sample: Whether to sample actions rather than take their mean.

    Attributes:
        sample: Whether actions are sampled.
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
        bundle = to_bundle(policy=policy, world=world, model=model)
        self._load(bundle, num_agents, sample=sample)

    def _load(self, bundle: Bundle, num_agents: int, *, sample: bool) -> None:
        self._bundle, self._about, self.sample = bundle, bundle.description, sample
        self._engines = [NumpyEngine(bundle, sample=sample) for _ in range(num_agents)]
        self.reset(seed=0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy for a worker, before an episode: views of shared memory would come apart."""
        return partial(_restored, sample=self.sample), (self._bundle, len(self._engines))

    def reset(self, *, seed: int) -> None:
        """Begin an episode."""
        self._seed, self._time = seed, 0
        for engine in self._engines:
            engine.load(np.zeros(self._about.memory_size, np.float32))

    def __call__(self, observation: Float[np.ndarray, " observation"]) -> np.ndarray:
        """Return an admissible action; it is not finite if nothing that is was ever observed."""
        rows = np.asarray(observation, np.float32).reshape(len(self._engines), -1)
        if self.sample and self._time % _BLOCK == 0:
            self._noise = self._next_noise()
        actions = []
        with np.errstate(all="ignore"):
            for index, (engine, row) in enumerate(zip(self._engines, rows, strict=True)):
                if self.sample:
                    engine.noise = self._noise[self._time % _BLOCK, index]
                engine.observation = row
                is_used = engine.run(seen=bool(np.isfinite(row).all()))
                is_predicted = self._about.latent_size and engine.memory[0] > 0.5
                actions.append(engine.action + (0 if is_used or is_predicted else np.nan))
        self._time += 1
        return np.concatenate(actions)

    def override(self, action: np.ndarray) -> None:
        """Note for the filter that another action was taken than the latest one returned."""
        for engine, own in zip(self._engines, np.split(action, len(self._engines)), strict=True):
            engine.set_action(own)

    def _next_noise(self) -> Float[np.ndarray, "times agents size"]:
        size, is_discrete = self._about.encoded_size, bool(self._about.choices)
        times = np.arange(self._time, self._time + _BLOCK)
        return np.asarray(
            action_noise(self._seed, times, len(self._engines), size, is_discrete=is_discrete)
        )


def _restored(bundle: Bundle, num_agents: int, *, sample: bool) -> PolicyActor:
    actor = PolicyActor.__new__(PolicyActor)
    actor._load(bundle, num_agents, sample=sample)
    return actor


@partial(jax.jit, static_argnames=("num_agents", "size", "is_discrete"))
def action_noise(
    seed: ArrayLike, times: ArrayLike, num_agents: int, size: int, *, is_discrete: bool
) -> Float[Array, "times agents size"]:
    """Draw the noise of sampled actions at some times, which depends on seed and time alone."""
    draw = jax.random.gumbel if is_discrete else jax.random.normal

    def at(time: Array) -> Array:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), time), num_agents)
        return jax.vmap(lambda key: draw(key, (size,)))(keys)

    return jax.vmap(at)(jnp.asarray(times))


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
