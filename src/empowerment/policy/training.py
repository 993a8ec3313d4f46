"""Training a policy: ascend empowerment along its own rollouts."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.channel import AbstractChannel, sample_states
from empowerment.devices import shard
from empowerment.optimise import TrainingState
from empowerment.policy.base import Bound, Critic, Policy
from empowerment.policy.objective import Outcome, choice_cost, cost, imagine, returns, surprises
from empowerment.policy.starts import OWN, first_starts, next_starts
from empowerment.policy.surrogate import Surrogate
from empowerment.policy.task import Task
from empowerment.types import Key, Scalar
from empowerment.worlds import AbstractWorld

_CLIP = 1.0
"""Maximal norm of the gradient of each part of an agent."""

CHUNK = 128
"""Maximal number of rollouts in a micro-batch: more do not fit into the cache."""

_TRACE = 0.99
"""The trace parameter lambda of the returns that the critic is trained on."""

_TRACKING = 0.1
"""Rate at which the target critic follows the critic."""

_ADJOINT = 10.0
"""Most that goes back through a state of a rollout, in ranges of the returns per unit of state. A
world may be so unstable somewhere that without it few rollouts would rule the gradient."""

_SPREAD = 0.01
"""Rate at which the scale of returns follows them."""


class Agent(eqx.Module):
    """What Algorithm 1 trains.

    Attributes:
        policy: The policy.
        channel: Source and planning; none if the bound is given.
        critic: Value function of what follows the horizon; none if nothing counts there.
        surrogate: Fit to the bound, as refined along with the policy; none while it is trained.
    """

    policy: Policy
    channel: AbstractChannel | None = None
    critic: Critic | None = None
    surrogate: Surrogate | None = None


class Followers(eqx.Module):
    """What follows an agent while it is trained.

    Attributes:
        critic: Target network of the critic.
        ends: Where the latest rollouts ended; none if every rollout starts anew.
        spread: Range of the returns, from the 5th to the 95th percentile; at least one nat.
    """

    critic: Critic | None
    ends: Float[Array, "starts state"] | None
    spread: Scalar


class Info(eqx.Module):
    """Diagnostics: means over the updates of a call.

    Attributes:
        cost: Cost of the policy, in nats per step.
        bound: Bound at the states of the rollouts, in nats.
        episode_gain: What is gained in those that are episodes from the initial distribution: the
            bound, and what a task adds, in nats.
        divergence: Divergence of the policy from its prior, in nats.
        gradient_norm: Norm of the gradient of the policy before clipping.
        clipped: Fraction of updates whose gradient was clipped.
        critic_error: Root mean square error of the critic.
        spread: Range of the returns, from the 5th to the 95th percentile, in nats per step.
    """

    cost: Scalar
    bound: Scalar
    episode_gain: Scalar
    divergence: Scalar
    gradient_norm: Scalar
    clipped: Scalar
    critic_error: Scalar
    spread: Scalar


def _clip(gradient: Any, parameters: Any) -> Any:
    """Clip the norm of each part of the gradient by itself."""

    def clipped(part: Any) -> Any:
        norm = optax.tree.norm(part)
        return jax.tree.map(lambda leaf: leaf / jnp.maximum(1.0, norm / _CLIP), part)

    return Agent(clipped(gradient.policy), clipped(gradient.channel), clipped(gradient.critic))


_OPTIMISER = optax.chain(optax.stateless(_clip), optax.scale_by_adam())


def init(agent: Agent, world: AbstractWorld, *, num_starts: int, key: Key) -> TrainingState:
    """Build the state before the first update of an untrained agent, or one to fine-tune."""
    ends = None
    if agent.critic is not None:
        ends = first_starts(world, num_starts, key=jax.random.fold_in(key, 0))
    followers = Followers(agent.critic, ends, jnp.ones(()))
    return optimise.init(agent, _OPTIMISER, target=followers, key=key)


@eqx.filter_jit
def step(
    state: TrainingState,
    world: AbstractWorld,
    bound: Bound | None = None,
    best: Float[Array, "candidates state"] | None = None,
    *,
    betas: Float[Array, " updates"],
    discounts: Float[Array, " updates"],
    shares: Float[Array, " updates"],
    learning_rates: Float[Array, " updates"],
    num_starts: int,
    horizon: int,
    task: Task | None = None,
) -> tuple[TrainingState, Info]:
    """Make many updates in one compiled call: Karl et al. (2018), Algorithm 1.

    Gradients of the policy go through the rollout into the bound. Those of the channel are
    taken at the states of the rollouts as they are: the channel does not move them.

    Args:
        state: Where training stands.
        world: A world whose actions live before the squash.
        bound: A trained channel, or a fit to one, that stays fixed; if none, the channel of the
            agent, which is trained too.
        best: Ranked states to start from, the best first; used with a critic.
        betas: Weight of empowerment against the prior, for each update.
        discounts: Discount per step, for each update; used with a critic.
        shares: Share of ranked states among the starts, for each update.
        learning_rates: One for each update.
        num_starts: Number of rollouts $M$.
        horizon: Number of actions $T$ in a rollout.
        task: What counts beside empowerment.

    Returns:
        The state afterwards, and diagnostics.
    """
    fewest = 1 if best is not None else -(-num_starts // CHUNK)
    num_chunks = next(n for n in range(fewest, num_starts + 1) if num_starts % n == 0)

    def loss(agent: Agent, followers: Followers, inputs: tuple[Scalar, Scalar, Scalar], key: Key):
        beta, discount, share = inputs
        judge = agent.channel if bound is None else bound
        if judge is None:
            raise ValueError(
                "Expected a bound, or an agent with a channel of its own; got neither."
            )
        target = followers.critic
        # A range of less than a nat in a sum, which is 1 - discount in a mean, is not scaled up.
        spread = jnp.maximum(followers.spread, 1 - discount)
        start_key, imagine_key = jax.random.split(key)
        choice_key = jax.random.fold_in(key, 1)
        if followers.ends is None or best is None:
            starts = any_starts(world, num_starts // num_chunks, key=start_key)
        else:
            starts = next_starts(world, followers.ends, best, share, key=start_key)
        outcomes = imagine(
            agent.policy,
            judge,
            world,
            shard(starts),
            horizon=horizon,
            adjoint_limit=_ADJOINT / len(starts),
            task=task,
            key=imagine_key,
        )
        beta = beta / spread
        costs = jax.vmap(lambda o: cost(o, beta=beta, discount=discount, critic=target))(outcomes)
        wanted = jax.vmap(lambda o: _wanted(target, o, beta, discount))(outcomes)
        error = jax.vmap(lambda *pair: _critic_error(agent.critic, *pair))(outcomes, wanted)
        ascended = costs.mean()
        if world.actions.choices and target is not None:
            visited = jax.lax.stop_gradient(outcomes.states[:, :-1]).reshape(-1, starts.shape[1])
            of_state = partial(
                choice_cost,
                agent.policy,
                judge,
                world,
                beta=beta,
                discount=discount,
                critic=target,
                task=task,
            )
            ascended = jax.vmap(lambda z, key: of_state(z, key=key))(
                visited, jax.random.split(choice_key, len(visited))
            ).mean()
            after = jax.vmap(lambda *each: surprises(*each, discount=discount, critic=target))(
                outcomes, wanted
            )
            taken = outcomes.actions.reshape(len(visited), -1)
            log_probs = jax.vmap(lambda z, action: agent.policy(z).log_prob(action))(visited, taken)
            ascended -= jnp.mean(log_probs * jax.lax.stop_gradient(after - after.mean()).ravel())
        # The bound at the start depends on the channel alone: that trains it in the whole region.
        total = ascended - outcomes.bounds[:, 0].mean() / horizon + error.mean()
        of_episodes = outcomes.worth
        if followers.ends is not None and best is not None:
            of_episodes = of_episodes[::OWN]
        means = (
            costs.mean(),
            error.mean(),
            outcomes.bounds.mean(),
            of_episodes.mean(),
            outcomes.divergences.mean(),
        )
        low, high = jnp.percentile(wanted, jnp.array([5.0, 95.0]))
        return total / spread, (means, outcomes.states[:, -1], high - low)

    def diagnose(seen: tuple[Any, Array, Scalar], gradient: Agent) -> Info:
        (cost, error, mean, of_episodes, divergence), _, spread = seen
        norm = optax.tree.norm(gradient.policy)
        clipped = (norm > _CLIP).astype(norm.dtype)
        return Info(cost, mean, of_episodes, divergence, norm, clipped, jnp.sqrt(error), spread)

    def track(followers: Followers, agent: Agent, seen: tuple[Any, Array, Scalar]) -> Followers:
        _, ends, spread = seen
        critic = jax.tree.map(
            lambda slow, fast: slow + _TRACKING * (fast - slow), followers.critic, agent.critic
        )
        moved = followers.spread + _SPREAD * (spread - followers.spread)
        if followers.ends is None:
            return Followers(critic, None, jnp.ones(()))
        return Followers(critic, ends, moved)

    return optimise.updates(
        loss,
        state,
        (betas, discounts, shares),
        learning_rates=learning_rates,
        optimiser=_OPTIMISER,
        diagnose=diagnose,
        micro_batches=num_chunks,
        track=track,
    )


def any_starts(world: AbstractWorld, count: int, *, key: Key) -> Float[Array, "starts state"]:
    """Sample start states: half from the initial distribution, half from the whole region."""
    region_key, initial_key = jax.random.split(key)
    keys = jax.random.split(initial_key, count)
    initial = jax.vmap(lambda key: world.initial().sample(key=key))(keys)
    return sample_states(world, initial, count, key=region_key)


def _wanted(
    target: Critic | None, outcome: Outcome, beta: Scalar, discount: Scalar
) -> Float[Array, " steps"]:
    """Compute the targets of the critic; without one, the gains themselves."""
    outcome = jax.lax.stop_gradient(outcome)
    if target is None:
        return outcome.gains
    wanted = returns(outcome, beta=beta, discount=discount, trace=_TRACE, critic=target)
    return jax.lax.stop_gradient(wanted)


def _critic_error(
    critic: Critic | None, outcome: Outcome, wanted: Float[Array, " steps"]
) -> Scalar:
    """Compute the mean square error of the critic; its gradient moves the critic alone."""
    if critic is None:
        return jnp.zeros(())
    states = jax.lax.stop_gradient(outcome.states[:-1])
    return jnp.mean((jax.vmap(critic)(states) - wanted) ** 2)
