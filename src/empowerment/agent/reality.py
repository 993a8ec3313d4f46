"""What an agent imagined against what really happened, and which round of training to keep."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.agent.evaluation import bounds_at, states_of, task_rewards
from empowerment.agent.training import TrainedAgent
from empowerment.data import Episode
from empowerment.policy import Policy, Task, counted
from empowerment.types import Key, Scalar, State
from empowerment.worlds import Bounded

_NUM_STATES = 256
"""States at which the bound is evaluated, of the episodes of each round and of what is imagined."""

_NUM_IMAGINED = 64
"""Imagined episodes."""

_LONGEST = 1024
"""Maximal number of actions of an imagined episode."""

_AGREE = 0.2
"""Share of the spread of the bound within which imagination agrees with reality."""

_BETTER = 0.05
"""Share of the spread of the bound from which a round is better than another."""


@dataclass(frozen=True)
class Outcome:
    """What becomes of a policy, imagined or real.

    Attributes:
        empowerment: Mean bound over all steps of an episode, none after its end, in nats.
        length: Mean number of steps before the end.
        gain: Mean of what is gained, with a task; what is left after an end stays as it is.
    """

    empowerment: float
    length: float
    gain: float | None = None

    @property
    def worth(self) -> float:
        """What a policy ascends: gain with a task, empowerment without."""
        return self.empowerment if self.gain is None else self.gain


@dataclass(frozen=True)
class Comparison:
    """Rounds of training, judged by the model and the channel of the last of them.

    Attributes:
        imagined: What the last round imagines.
        real: What really happened after each round.
        longest: Number of steps of the longest episode of all.
        spread: Standard deviation of the worth of the states of the data, in nats.
        survives: Whether no real episode of the last round ended, though random ones do, and there
            is nothing else to improve.
    """

    imagined: Outcome
    real: tuple[Outcome, ...]
    longest: int
    spread: float
    survives: bool

    @property
    def best(self) -> int:
        """The round whose real episodes were worth most; the first of equals."""
        return int(np.argmax([each.worth for each in self.real]))

    @property
    def agrees(self) -> bool:
        """Whether what the last round imagined is what happened."""
        off = self.imagined.worth - self.real[-1].worth
        return abs(off) <= _AGREE * self.spread

    @property
    def improves(self) -> bool:
        """Whether the last round is better than all before it."""
        before = [each.worth for each in self.real[:-1]]
        return not before or self.real[-1].worth > max(before) + _BETTER * self.spread

    @property
    def falls_behind(self) -> bool:
        """Whether the last round imagines less than was reached before: its training failed."""
        return self.imagined.worth < self.real[self.best].worth - _AGREE * self.spread

    @property
    def is_settled(self) -> bool:
        """Whether further rounds are of no use: imagination agrees, and nothing can be improved."""
        return self.agrees and (self.survives or not (self.improves or self.falls_behind))


def compare(
    agent: TrainedAgent, rounds: Sequence[Sequence[Episode]], *, can_end: bool, seed: int
) -> Comparison:
    """Compare what an agent imagines with the real episodes of its policy, and of those before.

    All rounds are judged by the same channel, that of the last: bounds of different models are
    not comparable.

    Args:
        agent: The agent of the last round.
        rounds: Episodes by the mean action of the policy of each round; of several agents, joint
            ones.
        can_end: Whether episodes of random actions end.
        seed: Random seed.
    """
    agent = replace(agent, task=counted(agent.task))
    longest = max(path.length for paths in rounds for path in paths)
    filtered = [_filtered(agent, paths) for paths in rounds]
    real = [
        _real(agent, paths, states, longest, seed)
        for paths, states in zip(rounds, filtered, strict=True)
    ]
    ends = [
        states[-agent.num_agents :]
        for paths, of_round in zip(rounds, filtered, strict=True)
        for path, states in zip(paths, of_round, strict=True)
        if path.terminated
    ]
    sample = jax.vmap(lambda key: agent.world.state_distribution().sample(key=key))
    anywhere = np.asarray(sample(jax.random.split(jax.random.key(seed), _NUM_STATES)))
    spread = float(_worth(agent, anywhere, seed).std())
    dead = None
    if ends:
        dead = float(bounds_at(agent, _some(np.concatenate(ends), seed), seed).mean())
    alive = real[-1].empowerment * longest / real[-1].length
    imagined = _imagined(agent, longest, alive, dead, seed)
    survives = can_end and not any(path.terminated for path in rounds[-1]) and agent.task is None
    return Comparison(imagined, tuple(real), longest, spread, survives)


def _filtered(agent: TrainedAgent, paths: Sequence[Episode]) -> list[Float[np.ndarray, "_ state"]]:
    """Estimate the states along each episode, of all agents."""
    counts = [agent.num_agents * (path.length + 1) for path in paths]
    return np.split(states_of(agent, paths), np.cumsum(counts)[:-1])


def _real(
    agent: TrainedAgent,
    paths: Sequence[Episode],
    states: Sequence[Float[np.ndarray, "_ state"]],
    longest: int,
    seed: int,
) -> Outcome:
    """Judge real episodes; those that were cut count as far as they go."""
    alive = np.concatenate([each[: -agent.num_agents] for each in states])
    steps = sum(path.length for path in paths)
    share = steps / sum(longest if path.terminated else path.length for path in paths)
    bounds = bounds_at(agent, _some(alive, seed), seed)
    mean = float(bounds.mean()) * share
    if agent.task is None:
        return Outcome(mean, longest * share)
    paid = [task_rewards(agent, path) for path in paths]
    # Where an episode has ended, everything stays as it is, or nothing is earned any more.
    lasts = agent.task.goes_on
    rest = [
        lasts * (longest - path.length) * path.terminated * rewards[-agent.num_agents :].mean()
        for path, rewards in zip(paths, paid, strict=True)
    ]
    total = sum(rewards.sum() / agent.num_agents for rewards in paid) + sum(rest)
    return Outcome(mean, longest * share, _gain(agent.task, mean, float(total) / steps * share))


def _imagined(
    agent: TrainedAgent, longest: int, alive: float, dead: float | None, seed: int
) -> Outcome:
    """Judge imagined episodes: over where the bound is nearer to that of real ends than alive."""
    imagined = imagine(agent.policy, agent.world, agent.task, key=jax.random.key(seed))
    states, rewards = map(np.asarray, imagined)
    states = states[:longest].reshape(-1, states.shape[-1])
    bounds = bounds_at(agent, _some(states, seed), seed)
    lasts = np.ones(len(bounds), bool)
    if dead is not None and dead < alive:
        lasts = bounds > 0.5 * (dead + alive)
    mean = float(np.mean(bounds * lasts))
    gain = None
    if agent.task is not None:
        gain = _gain(agent.task, mean, float(rewards[:longest].mean()))
    return Outcome(mean, float(longest * lasts.mean()), gain)


def _gain(task: Task, bound: float, reward: float) -> float:
    """Return what is gained for a mean bound and a mean reward."""
    return float(task.gain(np.array([bound]), np.array([reward]))[0])


def _worth(
    agent: TrainedAgent, states: Float[np.ndarray, "states state"], seed: int
) -> Float[np.ndarray, " states"]:
    """Return what states are worth: the bound there, and the reward of doing nothing there."""
    bounds = bounds_at(agent, states, seed)
    if agent.task is None:
        return bounds
    rewards = _rewards(agent.task, agent.world, states)
    return agent.task.gain(bounds, np.asarray(rewards))


@eqx.filter_jit
def _rewards(
    task: Task, world: Bounded, states: Float[Array | np.ndarray, "states state"]
) -> Float[Array, " states"]:
    action = world.squash(jnp.zeros(world.actions.size))
    return jax.vmap(lambda z: task.reward_at(world, z, action, z))(jnp.asarray(states, float))


def _some(states: Float[np.ndarray, "states state"], seed: int) -> Float[np.ndarray, "some state"]:
    """Choose as many states at random as are judged."""
    return states[np.random.default_rng(seed).integers(0, len(states), _NUM_STATES)]


@eqx.filter_jit
def imagine(
    policy: Policy, world: Bounded, task: Task | None = None, *, key: Key
) -> tuple[Float[Array, "times episodes state"], Float[Array, "times episodes"]]:
    """Imagine episodes by the mean action, from the initial states of the world; with rewards."""
    start_key, path_key = jax.random.split(key)

    def step(states: Float[Array, "episodes state"], key: Key):
        def one(state: State, key: Key) -> tuple[State, Scalar]:
            action = policy(state).mean
            after = world.transition(state, action).sample(key=key)
            paid = jnp.zeros(())
            if task is not None:
                paid = task.reward_at(world, state, world.squash(action), after)
            return after, paid

        after, paid = jax.vmap(one)(states, jax.random.split(key, _NUM_IMAGINED))
        return after, (states, paid)

    start_keys = jax.random.split(start_key, _NUM_IMAGINED)
    starts = jax.vmap(lambda key: world.initial().sample(key=key))(start_keys)
    return jax.lax.scan(step, starts, jax.random.split(path_key, _LONGEST))[1]
