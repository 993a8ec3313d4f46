"""The reward that data record, learnt in the states of a model: one more head of its world."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.data import Trajectories, windows
from empowerment.model.dvbf import DVBF
from empowerment.model.filter import filter_windows
from empowerment.model.scaling import Scaling
from empowerment.networks import Network, network
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import Box

_BATCH = 256
_LEARNING_RATE = 3e-3

_NUM_UPDATES = 4000
"""Updates of both networks."""

_MOST_STEPS = 32768
"""Largest number of steps that are learnt from, and of those that are judged by."""

_SETTLING = 0.25
"""Fraction of a window after which the filter is taken to have converged; where an episode ends
within it, after half of what was recorded at most."""


_LEAST_SCALE = 1e-3
"""Added to the scale of rewards, as a share of their unit: they may all be the same."""


class LearntReward(eqx.Module):
    r"""What an action is paid, in units of what a typical one is paid.

    $$\hat{r}(z, u, z') = p(\text{goes on} | z)\, r(z', u) / s$$

    The state that an action leads to says what it is paid, and the one before whether anything
    is: past the end of an episode nothing is earned.

    Attributes:
        paid: Returns the reward $r$, relative to `mean` and in units of `scale`.
        goes_on: Returns the log-odds that an episode has not ended yet.
        states: Region of the states of the data; outside it, the nearest state in it counts.
        actions: Scaling of admissible actions.
        mean: Mean of the rewards of the data.
        scale: Their standard deviation.
        unit: $s$, what counts as one.
        can_end: One if an episode of the data ends, else zero.
    """

    paid: Network
    goes_on: Network
    states: Box
    actions: Scaling
    mean: Scalar
    scale: Scalar
    unit: Scalar
    can_end: Scalar

    def __call__(self, before: State, action: Action, after: State) -> Scalar:
        """Return the reward of an admissible action that has led from a state to another."""
        return self.alive(before) * self.reward(action, after) / self.unit

    def reward(self, action: Action, after: State) -> Scalar:
        """Return the reward of an action before any end, in the units of the data."""
        inputs = jnp.concatenate([self._features(after), self.actions.scaled(action)])
        return self.mean + self.scale * self.paid(inputs)[0]

    def alive(self, state: State) -> Scalar:
        """Return the probability that no episode has ended at a state."""
        odds = self.goes_on(self._features(state))[0]
        return jnp.where(self.can_end > 0, jax.nn.sigmoid(odds), 1.0)

    def _features(self, state: State) -> Float[Array, " features"]:
        return self.states.features(jnp.clip(state, self.states.low, self.states.high))


class Steps(eqx.Module):
    """Steps of data as a model sees them.

    Attributes:
        before: Filtered states.
        actions: Admissible actions that were taken there.
        after: Filtered states to which they led.
        rewards: What they were paid, in the units of the data.
        alive: One where the episode had not ended before the action, else zero.
    """

    before: Float[Array, "steps state"]
    actions: Float[Array, "steps action"]
    after: Float[Array, "steps state"]
    rewards: Float[Array, " steps"]
    alive: Float[Array, " steps"]


def check_rewards(trajectories: Trajectories) -> None:
    """Raise a `ValueError` if data have no rewards that can be learnt."""
    if not trajectories.has_rewards:
        raise ValueError(
            "Expected data with rewards, to learn the reward that a task weight without a goal is "
            "the weight of; these have none. Name a goal, or leave the weight out."
        )
    for index, episode in enumerate(trajectories.episodes):
        if episode.rewards is not None and not np.isfinite(episode.rewards).all():
            raise ValueError(
                f"Expected rewards to be finite, to be learnt; episode {index} has some that are "
                "not. Name a goal, or leave the task weight out."
            )


def typical_reward(trajectories: Trajectories) -> float:
    """Return the root mean square reward of an action; one if nothing is paid at all.

    It is the unit of rewards: at a weight of one, an action that is paid as one of the data
    typically is counts as much as a nat. Unlike a standard deviation, it is of use where every
    action is paid the same for as long as an episode goes on.
    """
    typical = float(np.sqrt(np.mean(trajectories.rewards.astype(float) ** 2)))
    return typical or 1.0


def filtered_steps(model: DVBF, trajectories: Trajectories, *, length: int, seed: int) -> Steps:
    """Filter windows of data with rewards, and return the steps in them.

    Args:
        model: A trained model.
        trajectories: The data.
        length: Observations in a window.
        seed: Random seed of the choice of windows, and of actions past an end.
    """
    cut = windows(trajectories, length, seed=seed)
    assert cut.rewards is not None
    settled = min(max(round(_SETTLING * length), model.num_initial - 1), length - 2)
    count = min(len(cut.starts), -(-_MOST_STEPS // (length - 1 - settled)))
    chosen = np.random.default_rng(seed).choice(cut.starts, count, replace=False)
    rows = chosen[:, None] + np.arange(length)
    actions = cut.actions[rows[:, :-1]]
    filtered = np.asarray(
        filter_windows(
            model, jnp.asarray(cut.observations[rows], float), jnp.asarray(actions, float)
        )
    )
    recorded = cut.recorded[rows]
    first = np.minimum(settled, recorded.sum(axis=1, keepdims=True) // 2)
    kept = np.arange(length - 1)[None] >= first
    # What follows the last recorded observation is past the end.
    alive, rewards = recorded[:, 1:], cut.rewards[rows[:, :-1]]
    return Steps(
        *(
            jnp.asarray(each[kept], float)
            for each in (filtered[:, :-1], actions, filtered[:, 1:], rewards, alive)
        )
    )


def unfitted_reward(states: Box, action_size: int, *, width: int, depth: int) -> LearntReward:
    """Build an untrained reward, for its shapes."""
    keys = jax.random.split(jax.random.key(0))
    one, per_action = jnp.ones(()), jnp.ones(action_size)
    return LearntReward(
        *_networks(states, action_size, width, depth, keys=(keys[0], keys[1])),
        states,
        Scaling(0 * per_action, per_action),
        0 * one,
        one,
        one,
        one,
    )


def _networks(
    states: Box, action_size: int, width: int, depth: int, *, keys: tuple[Key, Key]
) -> tuple[Network, Network]:
    """Build untrained networks: of what is paid, and of whether an episode goes on."""
    size = states.feature_size
    return (
        network(size + action_size, 1, width=width, depth=depth, key=keys[0]),
        network(size, 1, width=width, depth=depth, key=keys[1]),
    )


def fit_reward(
    train: Steps,
    held_out: Steps,
    states: Box,
    actions: Scaling,
    *,
    unit: float,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> tuple[LearntReward, dict[str, Any]]:
    """Fit the reward of steps, and judge it by others.

    Args:
        train: Steps to learn from.
        held_out: Steps to judge by.
        states: Region of the states.
        actions: Scaling of admissible actions.
        unit: What counts as one, in the units of the data.
        width: Width of a hidden layer.
        depth: Number of hidden layers.
        key: Consumed.

    Returns:
        The reward, and facts about it in the units of the data: its root mean square error at
        steps to which it was not fitted (`error`), the standard deviation of their rewards
        (`spread`), the mean reward that it sees past an end, where there is none (`after_end`;
        null if no episode ends there), and the `unit`.
    """
    paid_key, end_key, fit_key = jax.random.split(key, 3)
    on = train.alive > 0
    unfitted = LearntReward(
        *_networks(states, train.actions.shape[1], width, depth, keys=(paid_key, end_key)),
        states,
        actions,
        train.rewards[on].mean(),
        train.rewards[on].std() + _LEAST_SCALE * unit,
        jnp.asarray(unit, float),
        jnp.any(~on).astype(float),
    )
    fitted = _fit(unfitted, train, _NUM_UPDATES, fit_key)
    predicted = np.asarray(_predict(fitted, held_out)) * unit
    rewards, alive = np.asarray(held_out.rewards), np.asarray(held_out.alive) > 0
    facts = {
        "error": float(np.sqrt(np.mean((predicted - rewards)[alive] ** 2))),
        "spread": float(rewards[alive].std()),
        "after_end": None if alive.all() else float(predicted[~alive].mean()),
        "unit": unit,
    }
    return fitted, facts


@eqx.filter_jit
def _predict(reward: LearntReward, steps: Steps) -> Float[Array, " steps"]:
    return jax.vmap(reward)(steps.before, steps.actions, steps.after)


@eqx.filter_jit
def _fit(reward: LearntReward, steps: Steps, num_updates: int, key: Key) -> LearntReward:
    """Minimise the mean square error before an end, and the log-loss of whether there was one."""

    def loss(
        networks: tuple[Network, Network], target: None, inputs: None, key: Key
    ) -> tuple[Scalar, None]:
        at = jax.random.randint(key, (_BATCH,), 0, steps.rewards.size)
        made = eqx.tree_at(lambda m: (m.paid, m.goes_on), reward, networks)
        paid = jax.vmap(made.reward)(steps.actions[at], steps.after[at])
        off = (paid - steps.rewards[at]) / made.scale
        odds = jax.vmap(lambda z: made.goes_on(made._features(z))[0])(steps.before[at])
        judged = optax.sigmoid_binary_cross_entropy(odds, steps.alive[at])
        return jnp.mean(steps.alive[at] * off**2 + made.can_end * judged), None

    networks = reward.paid, reward.goes_on
    optimiser = optax.scale_by_adam()
    memory = optimiser.init(eqx.filter(networks, eqx.is_inexact_array))
    rates = optimise.full_cosine(_LEARNING_RATE, num_updates)
    keys = jax.random.split(key, num_updates)
    (fitted, *_), _ = optimise.descend(
        loss, (networks, memory, None), (None, rates, keys), optimiser=optimiser
    )
    return eqx.tree_at(lambda m: (m.paid, m.goes_on), reward, fitted)
