"""Training a policy: ascend empowerment along its own rollouts."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.channel import AbstractChannel, sample_states
from empowerment.optimise import SILENT, Callback, Snapshot, TrainingState
from empowerment.policy.base import Bound, Critic, Policy
from empowerment.policy.objective import Outcome, cost, imagine, returns
from empowerment.types import Key, Scalar
from empowerment.worlds import AbstractWorld

_CLIP = 1.0
"""Maximal norm of the gradient of each part of an agent."""

_CHUNK = 128
"""Maximal number of rollouts in a micro-batch: more do not fit into the cache."""

_TRACE = 0.95
"""The trace parameter lambda of the returns that the critic is trained on."""

_TRACKING = 0.02
"""Rate at which the target critic follows the critic."""


class Agent(eqx.Module):
    """What Algorithm 1 trains.

    Attributes:
        policy: The policy.
        channel: Source and planning; none if the bound is given.
        critic: Value function of what follows the horizon; none if nothing counts there.
    """

    policy: Policy
    channel: AbstractChannel | None = None
    critic: Critic | None = None


class Info(eqx.Module):
    """Diagnostics: means over the updates of a call.

    Attributes:
        cost: Cost of the policy, in nats per step.
        bound: Bound at the states of the rollouts, in nats.
        divergence: Divergence of the policy from its prior, in nats.
        gradient_norm: Norm of the gradient of the policy before clipping.
        critic_error: Root mean square error of the critic.
    """

    cost: Scalar
    bound: Scalar
    divergence: Scalar
    gradient_norm: Scalar
    critic_error: Scalar


def _clip(gradient: Any, parameters: Any) -> Any:
    """Clip the norm of each part of the gradient by itself."""

    def clipped(part: Any) -> Any:
        norm = optax.tree.norm(part)
        return jax.tree.map(lambda leaf: leaf / jnp.maximum(1.0, norm / _CLIP), part)

    return Agent(clipped(gradient.policy), clipped(gradient.channel), clipped(gradient.critic))


_OPTIMISER = optax.chain(optax.stateless(_clip), optax.scale_by_adam())


def init(agent: Agent, *, key: Key) -> TrainingState:
    """Build the state before the first update of an untrained agent, or one to fine-tune."""
    return optimise.init(agent, _OPTIMISER, target=agent.critic, key=key)


@eqx.filter_jit
def step(
    state: TrainingState,
    world: AbstractWorld,
    bound: Bound | None = None,
    *,
    betas: Float[Array, " updates"],
    learning_rates: Float[Array, " updates"],
    num_starts: int,
    horizon: int,
    discount: float = 1.0,
) -> tuple[TrainingState, Info]:
    """Make many updates in one compiled call: Karl et al. (2018), Algorithm 1.

    Gradients of the policy go through the rollout into the bound. Those of the channel are
    taken at the states of the rollouts as they are: the channel does not move them.

    Args:
        state: Where training stands.
        world: A world whose actions live before the squash.
        bound: A trained channel, or a fit to one, that stays fixed; if none, the channel of the
            agent, which is trained too.
        betas: Weight of empowerment against the prior, for each update.
        learning_rates: One for each update.
        num_starts: Number of rollouts $M$: half from the initial distribution, half from the
            whole region.
        horizon: Number of actions $T$ in a rollout.
        discount: Discount per step, with a critic.

    Returns:
        The state afterwards, and diagnostics.
    """
    fewest = -(-num_starts // _CHUNK)
    num_chunks = next(n for n in range(fewest, num_starts + 1) if num_starts % n == 0)

    def loss(agent: Agent, target: Critic | None, beta: Scalar, key: Key):
        judge = agent.channel if bound is None else bound
        if judge is None:
            raise ValueError(
                "Expected a bound, or an agent with a channel of its own; got neither."
            )
        start_key, imagine_key = jax.random.split(key)
        starts = _starts(world, num_starts // num_chunks, key=start_key)
        outcomes = imagine(agent.policy, judge, world, starts, horizon=horizon, key=imagine_key)
        costs = jax.vmap(lambda o: cost(o, beta=beta, discount=discount, critic=target))(outcomes)
        error = jax.vmap(lambda o: _critic_error(agent.critic, target, o, beta, discount))(outcomes)
        # The bound at the start depends on the channel alone: that trains it in the whole region.
        total = costs.mean() - outcomes.bounds[:, 0].mean() / horizon + error.mean()
        means = costs.mean(), error.mean(), outcomes.bounds.mean(), outcomes.divergences.mean()
        return total, means

    def diagnose(means: tuple[Scalar, ...], gradient: Agent) -> Info:
        cost, error, mean_bound, divergence = means
        norm = optax.tree.norm(gradient.policy)
        return Info(cost, mean_bound, divergence, norm, jnp.sqrt(error))

    def track(target: Critic | None, agent: Agent) -> Critic | None:
        return jax.tree.map(
            lambda slow, fast: slow + _TRACKING * (fast - slow), target, agent.critic
        )

    return optimise.updates(
        loss,
        state,
        betas,
        learning_rates=learning_rates,
        optimiser=_OPTIMISER,
        diagnose=diagnose,
        micro_batches=num_chunks,
        track=track,
    )


def train_policy(
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
    callback: Callback = SILENT,
    key: Key,
) -> Snapshot:
    """Train a policy, by itself or together with its channel.

    The learning rate is constant in the first half of all updates, then decays to zero.

    Args:
        agent: An untrained agent, or one to fine-tune.
        world: A world whose actions live before the squash.
        bound: A trained channel, or a fit to one, that stays fixed; if none, the channel of the
            agent, which is trained too.
        betas: Weight of empowerment against the prior, for each update; their number is a
            multiple of `updates_per_call`.
        num_starts: Number of rollouts $M$ in an update.
        horizon: Number of actions $T$ in a rollout.
        learning_rate: Learning rate of Adam before it decays.
        discount: Discount per step, with a critic.
        updates_per_call: Updates between two diagnostics.
        callback: Observer.
        key: Consumed.

    Returns:
        The final snapshot; `model` is the trained agent.

    Raises:
        DivergedError: If any diagnostic is not finite.
    """
    total = len(betas)
    if total % updates_per_call:
        raise ValueError(
            f"Expected the number of updates to be a multiple of {updates_per_call}; got {total}."
        )

    def advance(at: Snapshot) -> Snapshot:
        first = len(at.history) * updates_per_call
        last = first + updates_per_call
        state, info = step(
            at.state,
            world,
            bound,
            betas=jnp.asarray(betas[first:last], float),
            learning_rates=optimise.half_cosine(learning_rate, jnp.arange(first, last) / total),
            num_starts=num_starts,
            horizon=horizon,
            discount=discount,
        )
        history = [*at.history, (last, optimise.to_floats(info))]
        return Snapshot(state, history, total, "the budget is spent" if last == total else "")

    return optimise.train(advance, Snapshot(init(agent, key=key), [], total), callback)


def _starts(world: AbstractWorld, count: int, *, key: Key) -> Float[Array, "starts state"]:
    """Sample start states: half from the initial distribution, half from the whole region."""
    region_key, initial_key = jax.random.split(key)
    keys = jax.random.split(initial_key, count)
    initial = jax.vmap(lambda key: world.initial().sample(key=key))(keys)
    return sample_states(world, initial, count, key=region_key)


def _critic_error(
    critic: Critic | None, target: Critic | None, outcome: Outcome, beta: Scalar, discount: float
) -> Scalar:
    """Compute the mean square error of the critic; its gradient moves the critic alone."""
    if critic is None or target is None:
        return jnp.zeros(())
    outcome = jax.lax.stop_gradient(outcome)
    wanted = returns(outcome, beta=beta, discount=discount, trace=_TRACE, critic=target)
    values = jax.vmap(critic)(outcome.states[:-1])
    return jnp.mean((values - jax.lax.stop_gradient(wanted)) ** 2)
