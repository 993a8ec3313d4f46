"""Training a policy: ascend empowerment along its own rollouts."""

from dataclasses import replace
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
from empowerment.policy.base import Bound, Critic, Policy, rollout
from empowerment.policy.objective import Outcome, cost, imagine, returns
from empowerment.policy.refinement import NUM_PLACES, Refinement, begin, refine
from empowerment.policy.starts import candidates, first_starts, next_starts, rank
from empowerment.policy.surrogate import CLOSE, Fit, Surrogate
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

_SPREAD = 0.01
"""Rate at which the scale of returns follows them."""

_FIRST_LOOK = 10.0, 0.2
"""Steps that the critic looks ahead at first, and the fraction of training after which it looks as
far as its discount says."""

_USELESS = 0.5
"""Fraction of clipped updates from which the direction of the gradient is not to be trusted."""

_SHARES = (0.0, 0.35, 0.55, 1.0), (0.75, 0.75, 0.33, 0.33)
"""Share of ranked states among the starts, by the fraction of training that is done."""


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


class PolicyState(eqx.Module):
    """State carried from call to call.

    Attributes:
        updates: Agent, optimiser and followers.
        best: Ranked states to start from, the best first; none if every rollout starts anew.
        refinement: The surrogate that is refined; none if the bound stays as it is.
    """

    updates: TrainingState
    best: Float[Array, "candidates state"] | None
    refinement: Refinement | None

    @property
    def model(self) -> Agent:
        """The agent."""
        agent = self.updates.model
        surrogate = None if self.refinement is None else self.refinement.surrogate
        return replace(agent, surrogate=surrogate)


class Info(eqx.Module):
    """Diagnostics: means over the updates of a call.

    Attributes:
        cost: Cost of the policy, in nats per step.
        bound: Bound at the states of the rollouts, in nats.
        divergence: Divergence of the policy from its prior, in nats.
        gradient_norm: Norm of the gradient of the policy before clipping.
        clipped: Fraction of updates whose gradient was clipped.
        critic_error: Root mean square error of the critic.
        spread: Range of the returns, from the 5th to the 95th percentile, in nats per step.
    """

    cost: Scalar
    bound: Scalar
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


def init(
    agent: Agent,
    world: AbstractWorld,
    bound: Bound | Fit | None = None,
    *,
    num_starts: int,
    key: Key,
) -> PolicyState:
    """Build the state before the first update of an untrained agent, or one to fine-tune."""
    ends = best = None
    if agent.critic is not None:
        ends = first_starts(world, num_starts, key=jax.random.fold_in(key, 0))
        best = candidates(world, key=jax.random.fold_in(key, 1))
    followers = Followers(agent.critic, ends, jnp.ones(()))
    updates = optimise.init(agent, _OPTIMISER, target=followers, key=key)
    return PolicyState(updates, best, begin(bound) if isinstance(bound, Fit) else None)


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

    Returns:
        The state afterwards, and diagnostics.
    """
    fewest = 1 if best is not None else -(-num_starts // _CHUNK)
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
        if followers.ends is None or best is None:
            starts = _starts(world, num_starts // num_chunks, key=start_key)
        else:
            starts = next_starts(world, followers.ends, best, share, key=start_key)
        outcomes = imagine(agent.policy, judge, world, starts, horizon=horizon, key=imagine_key)
        beta = beta / spread
        costs = jax.vmap(lambda o: cost(o, beta=beta, discount=discount, critic=target))(outcomes)
        wanted = jax.vmap(lambda o: _wanted(target, o, beta, discount))(outcomes)
        error = jax.vmap(lambda *pair: _critic_error(agent.critic, *pair))(outcomes, wanted)
        # The bound at the start depends on the channel alone: that trains it in the whole region.
        total = costs.mean() - outcomes.bounds[:, 0].mean() / horizon + error.mean()
        means = costs.mean(), error.mean(), outcomes.bounds.mean(), outcomes.divergences.mean()
        low, high = jnp.percentile(wanted, jnp.array([5.0, 95.0]))
        return total / spread, (means, outcomes.states[:, -1], high - low)

    def diagnose(seen: tuple[Any, Array, Scalar], gradient: Agent) -> Info:
        (cost, error, mean_bound, divergence), _, spread = seen
        norm = optax.tree.norm(gradient.policy)
        clipped = (norm > _CLIP).astype(norm.dtype)
        return Info(cost, mean_bound, divergence, norm, clipped, jnp.sqrt(error), spread)

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


def train_policy(
    agent: Agent,
    world: AbstractWorld,
    bound: Bound | Fit | None = None,
    *,
    channel: AbstractChannel | None = None,
    betas: Float[Array | np.ndarray, " updates"],
    num_starts: int = 128,
    horizon: int = 16,
    learning_rate: float = 3e-3,
    discount: float = 0.995,
    updates_per_call: int = 100,
    callback: Callback = SILENT,
    key: Key,
) -> Snapshot:
    """Train a policy, by itself or together with its channel.

    The learning rate is constant in the first half of all updates, then decays to zero.

    Args:
        agent: An untrained agent, or one to fine-tune.
        world: A world whose actions live before the squash.
        bound: A trained channel, or a fit to one; a `Fit` is refined at the states that the policy
            visits, any other stays as it is. If none, the channel of the agent, which is trained
            too.
        channel: The trained channel, to refine a `Fit` to it.
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
    if isinstance(bound, Fit) and channel is None:
        raise ValueError("Expected the channel that a fit is refined to; got none.")
    if total % updates_per_call:
        raise ValueError(
            f"Expected the number of updates to be a multiple of {updates_per_call}; got {total}."
        )
    between_key = jax.random.fold_in(key, 2)

    def advance(at: Snapshot) -> Snapshot:
        first = len(at.history) * updates_per_call
        last = first + updates_per_call
        before: PolicyState = at.state
        done = jnp.arange(first, last) / total
        rates = optimise.half_cosine(learning_rate, done)
        rank_key, visit_key, refine_key = jax.random.split(
            jax.random.fold_in(between_key, first), 3
        )
        fixed = bound.surrogate if isinstance(bound, Fit) else bound
        if before.refinement is not None:
            fixed = before.refinement.surrogate
        model, best = before.updates.model, before.best
        judge = model.channel if fixed is None else fixed
        if best is not None and judge is not None:
            best = rank(model.policy, judge, world, best, horizon=horizon, key=rank_key)
        updates, info = step(
            before.updates,
            world,
            fixed,
            best,
            betas=jnp.asarray(betas[first:last], float),
            discounts=_discounts(discount, done),
            shares=jnp.interp(done, *map(jnp.asarray, _SHARES)),
            learning_rates=rates,
            num_starts=num_starts,
            horizon=horizon,
        )
        seen, refinement = optimise.to_floats(info), before.refinement
        if refinement is not None and channel is not None:
            visited = _visit(updates, world, horizon=horizon, key=visit_key)
            refinement, fit_info = refine(
                refinement, channel, world, visited, learning_rate=rates[-1] / 3, key=refine_key
            )
            seen |= optimise.to_floats(fit_info)
        state = PolicyState(updates, best, refinement)
        stopped = "the budget is spent" if last == total else ""
        return Snapshot(state, [*at.history, (last, seen)], total, stopped)

    fresh = init(agent, world, bound, num_starts=num_starts, key=key)
    return optimise.train(advance, Snapshot(fresh, [], total), callback)


def warning(trained: Snapshot) -> str:
    """Return what is to be said about a training: whether to trust its gradients and its bound."""
    seen = [seen for _, seen in trained.history[len(trained.history) // 2 :]]
    said = []
    clipped = float(np.mean([each["clipped"] for each in seen]))
    if clipped > _USELESS:
        norm = float(np.median([each["gradient_norm"] for each in seen]))
        said.append(
            f"The gradient of the policy had to be clipped in {clipped:.0%} of the updates (norm "
            f"{norm:.3g}): it grows along imagined rollouts, and its direction is mostly chance. A "
            "shorter horizon may help."
        )
    surrogate = trained.model.surrogate
    if surrogate is not None:
        error, spread = seen[-1]["visited_error"], float(surrogate.scale)
        if error > CLOSE * max(spread, CLOSE):
            said.append(
                f"The policy ascended a rough picture of the bound: at the states that it visits "
                f"the fit is off by {error:.3g} nats, where the bound varies by {spread:.3g}. More "
                "states (bound_states) or a larger network (width, depth) may bring it closer."
            )
    return " ".join(said)


def _discounts(discount: float, done: Float[Array, " updates"]) -> Float[Array, " updates"]:
    """Return discounts that look ever farther ahead, geometrically in steps."""
    look, rise = _FIRST_LOOK
    if discount == 1:
        return jnp.ones_like(done)
    farthest = 1 / (1 - discount)
    nearest = min(look, farthest)
    return 1 - 1 / (nearest * (farthest / nearest) ** jnp.clip(done / rise, 0, 1))


@eqx.filter_jit
def _visit(
    state: TrainingState, world: AbstractWorld, *, horizon: int, key: Key
) -> Float[Array, "visited state"]:
    """Sample states that rollouts of the policy visit."""
    path_key, choice_key = jax.random.split(key)
    starts = state.target.ends
    if starts is None:
        starts = _starts(world, _CHUNK, key=choice_key)
    keys = jax.random.split(path_key, len(starts))
    paths = jax.vmap(lambda z, key: rollout(state.model.policy, world, z, horizon=horizon, key=key))
    states = paths(starts, keys).states.reshape(-1, starts.shape[-1])
    return states[jax.random.randint(choice_key, (NUM_PLACES,), 0, len(states))]


def _starts(world: AbstractWorld, count: int, *, key: Key) -> Float[Array, "starts state"]:
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
        return outcome.bounds[1:]
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
