"""Training a policy from beginning to end: what to start from, how far to look, where to refine."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.channel import AbstractChannel
from empowerment.optimise import SILENT, Callback, Snapshot, TrainingState
from empowerment.policy.base import Bound, rollout
from empowerment.policy.refinement import NUM_PLACES, Refinement, begin, refine
from empowerment.policy.starts import candidates, rank
from empowerment.policy.surrogate import CLOSE, Fit
from empowerment.policy.task import Task, counted
from empowerment.policy.training import CHUNK, Agent, any_starts, init, step
from empowerment.types import Key, Scalar
from empowerment.worlds import AbstractWorld

_FIRST_LOOK = 10.0, 0.2
"""Steps that the critic looks ahead at first, and the fraction of training after which it looks as
far as its discount says."""

_HOLD = 4
"""Rollouts in a row through which a ranked state has to be held: a rod may fly through one."""

_USELESS = 0.5
"""Fraction of clipped updates from which the direction of the gradient is not to be trusted."""

_SHARES = (0.0, 0.35, 0.55, 1.0), (0.75, 0.75, 0.33, 0.33)
"""Share of ranked states among the starts, by the fraction of training that is done."""


_WORSE = 0.1
"""Share of the range of returns by which an agent is worse than one before it, to keep that one."""

_NONE = -1e9
"""Bound of what is worse than any agent."""


class PolicyState(eqx.Module):
    """State carried from call to call.

    Attributes:
        updates: Agent, optimiser and followers.
        best: Ranked states to start from, the best first; none if every rollout starts anew.
        refinement: The surrogate that is refined; none if the bound stays as it is.
        kept: The agent whose imagined episodes were best so far.
        kept_gain: The mean gain along them.
    """

    updates: TrainingState
    best: Float[Array, "candidates state"] | None
    refinement: Refinement | None
    kept: Agent
    kept_gain: Scalar

    @property
    def model(self) -> Agent:
        """The agent."""
        agent = self.updates.model
        surrogate = None if self.refinement is None else self.refinement.surrogate
        return replace(agent, surrogate=surrogate)


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
    task: Task | None = None,
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
        task: What counts beside empowerment.
        updates_per_call: Updates between two diagnostics.
        callback: Observer.
        key: Consumed.

    Returns:
        The final snapshot; `model` is the trained agent.

    Raises:
        DivergedError: If any diagnostic is not finite.
    """
    total = len(betas)
    task = counted(task)
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
            best = rank(
                model.policy, judge, world, best, horizon=_HOLD * horizon, task=task, key=rank_key
            )
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
            task=task,
        )
        seen, refinement = optimise.to_floats(info), before.refinement
        if refinement is not None and channel is not None:
            visited = _visit(updates, world, horizon=horizon, key=visit_key)
            refinement, fit_info = refine(
                refinement, channel, world, visited, learning_rate=rates[-1] / 3, key=refine_key
            )
            seen |= optimise.to_floats(fit_info)
        # Episodes of this call are of the agent before it, more or less.
        kept, kept_gain = before.kept, before.kept_gain
        if first >= _FIRST_LOOK[1] * total and seen["episode_gain"] > float(kept_gain):
            kept, kept_gain = before.model, jnp.asarray(seen["episode_gain"])
        state = PolicyState(updates, best, refinement, kept, kept_gain)
        stopped = "the budget is spent" if last == total else ""
        is_worse = float(kept_gain) - seen["episode_gain"] > _WORSE * seen["spread"]
        chosen = kept if stopped and best is not None and is_worse else None
        return Snapshot(state, [*at.history, (last, seen)], total, stopped, chosen)

    best = None if agent.critic is None else candidates(world, key=jax.random.fold_in(key, 1))
    refinement = begin(bound) if isinstance(bound, Fit) else None
    surrogate = None if refinement is None else refinement.surrogate
    fresh = PolicyState(
        init(agent, world, num_starts=num_starts, key=key),
        best,
        refinement,
        replace(agent, surrogate=surrogate),
        jnp.asarray(_NONE),
    )
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
    if trained.best is not None:
        best, last = float(trained.state.kept_gain), seen[-1]["episode_gain"]
        said.append(
            f"Imagined episodes got worse again, from {best:.3g} to {last:.3g} nats: the policy is "
            "that of the best ones."
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
        starts = any_starts(world, CHUNK, key=choice_key)
    keys = jax.random.split(path_key, len(starts))
    paths = jax.vmap(lambda z, key: rollout(state.model.policy, world, z, horizon=horizon, key=key))
    states = paths(starts, keys).states.reshape(-1, starts.shape[-1])
    return states[jax.random.randint(choice_key, (NUM_PLACES,), 0, len(states))]
