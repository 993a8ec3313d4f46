"""Training a policy: ascend empowerment along its own rollouts."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PyTree

from empowerment.channel import AbstractChannel
from empowerment.channel.training import DivergedError, sample_states
from empowerment.policy.base import Bound, Critic, Policy
from empowerment.policy.objective import Outcome, cost, imagine, returns
from empowerment.types import Key, Scalar
from empowerment.worlds import AbstractWorld

_CLIP = 1.0
"""The largest norm of a gradient."""

_CHUNK = 128
"""Rollouts at once, at most."""

_TRACE = 0.95
"""How far a return looks ahead before it takes the critic's word."""

_SLOW = 0.02
"""The share of the critic that its slow copy takes over in an update."""


class Agent(eqx.Module):
    """What learns.

    Attributes:
        policy: Which action to take.
        channel: Source and planning; none if the bound is given.
        critic: What comes after the horizon; none if nothing counts there.
    """

    policy: Policy
    channel: AbstractChannel | None = None
    critic: Critic | None = None


class AgentState(eqx.Module):
    """What is carried from update to update.

    Attributes:
        agent: What learns, so far.
        slow_critic: Follows the critic slowly.
        optimiser: What the optimiser remembers.
        num_updates: How many updates were made.
        key: Of what is to come.
    """

    agent: Agent
    slow_critic: Critic | None
    optimiser: optax.OptState
    num_updates: Int[Array, ""]
    key: Key


class Info(eqx.Module):
    """What is only for looking at: means over the updates of a call.

    Attributes:
        cost: Of the policy, in nats per step.
        bound: At the states passed through, in nats.
        divergence: Of the policy from its prior.
        gradient_norm: Of the policy, before clipping.
        critic_error: The root mean square of what the critic is off by.
    """

    cost: Scalar
    bound: Scalar
    divergence: Scalar
    gradient_norm: Scalar
    critic_error: Scalar


@dataclass(frozen=True)
class Snapshot:
    """Where training stands: enough to go on from, to the same bits.

    Attributes:
        state: What is carried from update to update.
        history: After each call: updates made, and what there is to look at.
    """

    state: AgentState
    history: list[tuple[int, dict[str, float]]]


def init(agent: Agent, *, key: Key) -> AgentState:
    """Begin training.

    Args:
        agent: Untrained, or to train further.
        key: Consumed.

    Returns:
        The state before the first update.
    """
    memory = optax.scale_by_adam().init(eqx.filter(agent, eqx.is_inexact_array))
    return AgentState(agent, agent.critic, memory, jnp.array(0), key)


@eqx.filter_jit
def step(
    state: AgentState,
    world: AbstractWorld,
    bound: Bound | None = None,
    *,
    betas: Float[Array, " updates"],
    learning_rates: Float[Array, " updates"],
    num_starts: int,
    horizon: int,
    discount: float = 1.0,
) -> tuple[AgentState, Info]:
    """Make many updates in one compiled call: Karl et al. (2018), Algorithm 1.

    Gradients of the policy go through the rollout into the bound. Those of the channel are
    taken at the states passed through as they are: the channel does not move them.

    Args:
        state: Where training stands.
        world: A world whose actions live before the squash.
        bound: A trained channel, or a fit to one, to be left as it is; the agent's own channel
            if none, which learns too.
        betas: The weight of empowerment against the prior, for each update.
        learning_rates: One for each update.
        num_starts: The number of rollouts $M$: half from where the world begins, half from all
            over the region.
        horizon: The number of actions $T$ in a rollout.
        discount: Of what comes later, per step, with a critic.

    Returns:
        Where training stands afterwards, and what to look at.
    """
    parameters, rest = eqx.partition(state.agent, eqx.is_inexact_array)
    slow_parameters, slow_rest = eqx.partition(state.slow_critic, eqx.is_inexact_array)
    key, batch_key = jax.random.split(state.key)

    fewest = -(-num_starts // _CHUNK)
    num_chunks = next(n for n in range(fewest, num_starts + 1) if num_starts % n == 0)

    def loss(parameters: Agent, slow: Critic | None, beta: Scalar, key: Key):
        agent: Agent = eqx.combine(parameters, rest)
        judge = agent.channel if bound is None else bound
        if judge is None:
            raise ValueError(
                "Expected a bound, or an agent with a channel of its own; got neither."
            )
        start_key, follow_key = jax.random.split(key)
        starts = _starts(world, num_starts // num_chunks, key=start_key)
        outcomes = imagine(agent.policy, judge, world, starts, horizon=horizon, key=follow_key)
        paid = jax.vmap(lambda o: cost(o, beta=beta, discount=discount, critic=slow))(outcomes)
        error = jax.vmap(lambda o: _critic_error(agent.critic, slow, o, beta, discount))(outcomes)
        # Only the channel moves the bound at the start: that is how it learns everywhere.
        total = paid.mean() - outcomes.bounds[:, 0].mean() / horizon + error.mean()
        seen = paid.mean(), error.mean(), outcomes.bounds.mean(), outcomes.divergences.mean()
        return total, seen

    def gradient_of(parameters: Agent, slow: Critic | None, beta: Scalar, key: Key):
        """Average over chunks of rollouts: all at once would not fit into the cache."""
        of_chunk = jax.grad(loss, has_aux=True)

        def add(total, key: Key):
            return jax.tree.map(jnp.add, total, of_chunk(parameters, slow, beta, key)), None

        first, *others = jax.random.split(key, num_chunks)
        total = of_chunk(parameters, slow, beta, first)
        if others:
            total, _ = jax.lax.scan(add, total, jnp.stack(others))
        return jax.tree.map(lambda leaf: leaf / num_chunks, total)

    def update(carry, inputs):
        parameters, memory, slow_parameters = carry
        beta, learning_rate, key = inputs
        slow = eqx.combine(slow_parameters, slow_rest)
        gradient, seen = gradient_of(parameters, slow, beta, key)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts in whole numbers.
            changes, memory = optax.scale_by_adam().update(_clip(gradient), memory)
        changes = jax.tree.map(lambda change: -learning_rate * change, changes)
        parameters = eqx.apply_updates(parameters, changes)
        slow_parameters = jax.tree.map(
            lambda slow, fast: slow + _SLOW * (fast - slow), slow_parameters, parameters.critic
        )
        paid, error, mean_bound, divergence = seen
        norm = optax.tree.norm(gradient.policy)
        info = Info(paid, mean_bound, divergence, norm, jnp.sqrt(error))
        return (parameters, memory, slow_parameters), info

    keys = jax.random.split(batch_key, learning_rates.size)
    (parameters, memory, slow_parameters), info = jax.lax.scan(
        update, (parameters, state.optimiser, slow_parameters), (betas, learning_rates, keys)
    )
    after = AgentState(
        agent=eqx.combine(parameters, rest),
        slow_critic=eqx.combine(slow_parameters, slow_rest),
        optimiser=memory,
        num_updates=state.num_updates + learning_rates.size,
        key=key,
    )
    return after, jax.tree.map(jnp.mean, info)


def train(
    agent: Agent,
    world: AbstractWorld,
    bound: Bound | None = None,
    *,
    betas: Float[Array | np.ndarray, " updates"],
    num_starts: int = 64,
    horizon: int = 32,
    learning_rate: float = 3e-3,
    discount: float = 0.99,
    updates_per_call: int = 100,
    progress: Callable[[Snapshot], None] = lambda snapshot: None,
    resume: Snapshot | None = None,
    key: Key,
) -> Snapshot:
    """Train a policy, by itself or together with its channel.

    The learning rate stays for the first half of all updates, then falls to zero.

    Args:
        agent: Untrained, or to train further.
        world: A world whose actions live before the squash.
        bound: A trained channel, or a fit to one, to be left as it is; the agent's own channel
            if none, which learns too.
        betas: The weight of empowerment against the prior, for each update; they are in whole
            calls.
        num_starts: The number of rollouts $M$ in an update.
        horizon: The number of actions $T$ in a rollout.
        learning_rate: Of Adam, before it falls.
        discount: Of what comes later, per step, with a critic.
        updates_per_call: Updates between two looks at the policy.
        progress: Called after each call with where training stands.
        resume: Where to go on from; the rest must be as it was before.
        key: Consumed.

    Returns:
        Where training stands in the end.

    Raises:
        DivergedError: If anything is not finite.
    """
    total = len(betas)
    if total % updates_per_call:
        raise ValueError(
            f"Expected the number of updates to be a multiple of {updates_per_call}; got {total}."
        )
    at = resume or Snapshot(init(agent, key=key), [])
    for first in range(len(at.history) * updates_per_call, total, updates_per_call):
        places = jnp.arange(first, first + updates_per_call) / total
        rates = learning_rate * 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(2 * places - 1, 0, 1)))
        state, info = step(
            at.state,
            world,
            bound,
            betas=jnp.asarray(betas[first : first + updates_per_call], float),
            learning_rates=rates,
            num_starts=num_starts,
            horizon=horizon,
            discount=discount,
        )
        seen = {name: float(value) for name, value in vars(info).items()}
        made = first + updates_per_call
        if not all(map(math.isfinite, seen.values())):
            last = at.history[-1] if at.history else (0, {})
            raise DivergedError(
                f"Expected training to stay finite; got {seen} by update {made}. The last finite "
                f"figures were {last[1]} at update {last[0]}. Try a lower learning rate."
            )
        at = Snapshot(state, [*at.history, (made, seen)])
        progress(at)
    return at


def _starts(world: AbstractWorld, count: int, *, key: Key) -> Float[Array, "starts state"]:
    """Draw states to start from: where the world begins, and as many from everywhere."""
    region_key, initial_key = jax.random.split(key)
    keys = jax.random.split(initial_key, count)
    initial = jax.vmap(lambda key: world.initial().sample(key=key))(keys)
    return sample_states(world, initial, count, key=region_key)


def _critic_error(
    critic: Critic | None, slow: Critic | None, outcome: Outcome, beta: Scalar, discount: float
) -> Scalar:
    """Give the mean square of what the critic is off by; it moves nothing but the critic."""
    if critic is None or slow is None:
        return jnp.zeros(())
    outcome = jax.lax.stop_gradient(outcome)
    wanted = returns(outcome, beta=beta, discount=discount, trace=_TRACE, critic=slow)
    found = jax.vmap(critic)(outcome.states[:-1])
    return jnp.mean((found - jax.lax.stop_gradient(wanted)) ** 2)


def _clip(gradient: Agent) -> PyTree:
    """Limit the norm of each part of the gradient by itself."""

    def clipped(part):
        norm = optax.tree.norm(part)
        return jax.tree.map(lambda leaf: leaf / jnp.maximum(1.0, norm / _CLIP), part)

    return Agent(clipped(gradient.policy), clipped(gradient.channel), clipped(gradient.critic))
