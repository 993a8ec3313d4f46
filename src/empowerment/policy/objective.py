"""The objective of a policy: cost of imagined rollouts and targets of the value function."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.policy.base import (
    Bound,
    Critic,
    Policy,
    Rollout,
    divergence_from_prior,
    rollout,
)
from empowerment.policy.task import Task
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded


class Outcome(eqx.Module):
    """Rollouts of a policy with bounds on empowerment, from one start state or many.

    Attributes:
        states: The visited states, start included: one more than actions.
        bounds: The bound at each of these states, in nats.
        divergences: The divergence of the policy from its prior, at each state but the last.
        actions: The actions, before the squash.
        with_task: What each action gains, where there is a task.
    """

    states: Float[Array, "*starts times state"]
    bounds: Float[Array, "*starts times"]
    divergences: Float[Array, "*starts steps"]
    actions: Float[Array, "*starts steps action"]
    with_task: Float[Array, "*starts steps"] | None = None

    @property
    def gains(self) -> Float[Array, "*starts steps"]:
        """What each action gains: the bound at its successor, if there is no task."""
        return self.bounds[..., 1:] if self.with_task is None else self.with_task

    @property
    def worth(self) -> Float[Array, "*starts _"]:
        """What the states are worth: their bounds, or what led to them where there is a task."""
        return self.bounds if self.with_task is None else self.with_task


def imagine(
    policy: Policy,
    bound: Bound,
    world: AbstractWorld,
    starts: Float[Array, "starts state"],
    *,
    horizon: int,
    adjoint_limit: float = math.inf,
    task: Task | None = None,
    key: Key,
) -> Outcome:
    """Sample imagined rollouts from many states and estimate the bound along them.

    The bounds of all states are estimated in one batch, which is faster than per rollout.

    Args:
        policy: The policy.
        bound: A channel, or a surrogate of one.
        world: A world whose actions live before the squash.
        starts: The start states.
        horizon: The number of actions.
        adjoint_limit: See `rollout`.
        task: What counts beside empowerment.
        key: Consumed.

    Returns:
        States, bounds, divergences and what was gained, for each start state.
    """
    rollout_key, bound_key = jax.random.split(key)
    count, size = starts.shape

    def path_from(start: State, key: Key) -> Rollout:
        return rollout(policy, world, start, horizon=horizon, adjoint_limit=adjoint_limit, key=key)

    paths = jax.vmap(path_from)(starts, jax.random.split(rollout_key, count))
    keys = jax.random.split(bound_key, count * (horizon + 1))
    bounds = jax.vmap(lambda state, key: bound.information(world, state, key=key))(
        paths.states.reshape(-1, size), keys
    )
    bounds = bounds.reshape(count, horizon + 1)
    gains = None
    if task is not None:
        rewards = jax.vmap(jax.vmap(lambda *step: _reward(task, world, *step)))(
            paths.states[:, :-1], paths.actions, paths.states[:, 1:]
        )
        gains = task.gain(bounds[:, 1:], rewards)
    return Outcome(paths.states, bounds, paths.divergences, paths.actions, gains)


def _reward(
    task: Task, world: AbstractWorld, before: State, action: Action, after: State
) -> Scalar:
    """Return the reward of an action before the squash that has led from a state to another."""
    action = world.squash(action) if isinstance(world, Bounded) else action
    return task.reward_at(world, before, action, after)


def cost(
    outcome: Outcome,
    *,
    beta: Scalar,
    discount: Scalar | float = 1.0,
    critic: Critic | None = None,
) -> Scalar:
    r"""Compute the cost of a rollout, to be minimised.

    $$\mathcal{C}(\pi) = -\frac{1}{T} \sum_t \Bigl[ \hat{\mathcal{E}}(z_t)
    - \tfrac{1}{\beta} \mathrm{KL}\bigl(\pi(u_t|z_t) \,\|\, \mathcal{N}(0, I)\bigr) \Bigr]$$

    Karl et al. (2018), Eq. 9 (eq:empowering_cost) and Algorithm 1, divided by $\beta T$.

    Deviation: Algorithm 1 prints the divergence with a plus and ascends; meant is to keep
    it small. With a critic the sum is discounted by $\gamma$, and the value of the final
    state, with weight $\gamma^T$, replaces what follows the horizon.

    Args:
        outcome: A rollout from one state.
        beta: The weight of empowerment against the prior.
        discount: $\gamma$ per step; used with a critic only.
        critic: The value function of what follows the horizon.

    Returns:
        The cost, in nats per step.
    """
    gains = outcome.gains - outcome.divergences / beta
    if critic is None:
        return -jnp.mean(gains)
    horizon = gains.size
    weights = (1 - discount) * discount ** jnp.arange(horizon, dtype=gains.dtype)
    return -(weights @ gains) - discount**horizon * critic(outcome.states[-1])


_ALL = 32
"""Most discrete actions that are all compared; of more, as many as `_SOME` are sampled."""

_SOME = 16


def choice_cost(
    policy: Policy,
    bound: Bound,
    world: AbstractWorld,
    state: State,
    *,
    beta: Scalar,
    discount: Scalar | float,
    critic: Critic,
    task: Task | None = None,
    key: Key,
) -> Scalar:
    r"""Compute the cost of a policy of discrete actions at a state, to be minimised.

    $$-\sum_u \pi(u|z) \bigl[(1 - \gamma) \hat{\mathcal{E}}(z'_u) + \gamma V(z'_u)\bigr]
    + \frac{1 - \gamma}{\beta} \mathrm{KL}\bigl(\pi(u|z) \,\|\, \mathcal{U}\bigr)$$

    No gradient goes through a discrete action. Instead, the successor of each is valued, and
    probability moves to the best: an exact sum where there are not too many actions. Elsewhere
    actions are sampled, and the value of each counts relative to the mean of the others.

    Args:
        policy: A policy of discrete actions.
        bound: A channel, or a surrogate of one.
        world: A world whose actions live before the squash.
        state: The state $z$.
        beta: The weight of empowerment against the prior.
        discount: $\gamma$ per step.
        critic: The value function.
        task: What counts beside empowerment.
        key: Consumed.
    """
    noise_key, bound_key, action_key = jax.random.split(key, 3)
    choice, actions = policy(state), world.actions
    # The same noise for all actions: they are compared with each other.
    noise = jax.random.normal(noise_key, state.shape, state.dtype)

    def value(action: Action) -> Scalar:
        transition = world.transition(state, action)
        successor = transition.mean + transition.scale * noise
        gain = bound.information(world, successor, key=bound_key)
        if task is not None:
            gain = task.gain(gain, _reward(task, world, state, action, successor))
        return (1 - discount) * gain + discount * critic(successor)

    if actions.num_choices <= _ALL:
        compared = actions.all_choices()
        log_probs = jax.vmap(choice.log_prob)(compared)
        expected = jnp.exp(log_probs) @ jax.lax.stop_gradient(jax.vmap(value)(compared))
    else:
        keys = jax.random.split(action_key, _SOME)
        compared = jax.lax.stop_gradient(jax.vmap(lambda key: choice.sample(key=key))(keys))
        values = jax.lax.stop_gradient(jax.vmap(value)(compared))
        advantages = (values - values.mean()) * _SOME / (_SOME - 1)
        expected = jnp.mean(jax.vmap(choice.log_prob)(compared) * advantages)
    return (1 - discount) / beta * divergence_from_prior(choice) - expected


def surprises(
    outcome: Outcome, wanted: Float[Array, " steps"], *, discount: Scalar | float, critic: Critic
) -> Float[Array, " steps"]:
    r"""Compute by how much a rollout went better after each action than the critic foresaw.

    $\delta_t = \gamma [G_{t+1} - V(z_{t+1})]$, with the return $G$ of the rollout; none after the
    last action, where there is only the critic.

    One step makes little difference between discrete actions, the less the shorter it is, and a
    critic is not that exact. With $-\delta_t \log \pi(u_t|z_t)$ beside `choice_cost`, actions that
    were taken gain or lose what the critic missed: the gradient is that of the returns, and the
    critic only makes it vary less.

    Args:
        outcome: A rollout from one state.
        wanted: Its `returns`.
        discount: $\gamma$.
        critic: The value function of `choice_cost`.
    """
    foreseen = jax.vmap(critic)(outcome.states[1:-1])
    return jnp.append(discount * (wanted[1:] - foreseen), 0.0)


def returns(
    outcome: Outcome, *, beta: Scalar, discount: Scalar | float, trace: float, critic: Critic
) -> Float[Array, " steps"]:
    r"""Compute $\lambda$-returns, the targets of the critic, at each state but the last.

    $G_t = (1 - \gamma) r_{t+1} + \gamma [(1 - \lambda) V(z_{t+1}) + \lambda G_{t+1}]$,
    normalised to a mean rather than a sum.

    Args:
        outcome: A rollout from one state.
        beta: The weight of empowerment against the prior.
        discount: $\gamma$.
        trace: $\lambda$.
        critic: The target network.
    """
    gains = outcome.gains - outcome.divergences / beta
    values = jax.vmap(critic)(outcome.states[1:])

    def back(later: Scalar, inputs: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        gain, value = inputs
        now = (1 - discount) * gain + discount * ((1 - trace) * value + trace * later)
        return now, now

    return jax.lax.scan(back, values[-1], (gains, values), reverse=True)[1]
