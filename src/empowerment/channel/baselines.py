"""What the paper compares with: learning without a model, and the discrete bound."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from empowerment.channel.bound import Channel
from empowerment.channel.families import make_channel
from empowerment.channel.training import Trained, sample_states
from empowerment.networks import Network, network
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, Grid, perceive

_LEARNING_RATE = 1e-3
_DISCRETE_LEARNING_RATE = 0.1
_CLIP = 1.0
_NUM_LOOKS = 20
"""How often the bound is noted while training."""


class ModelFree(eqx.Module):
    r"""What Mohamed and Rezende (2015) learn.

    Attributes:
        channel: Source $\omega$ and planning $q$.
        normaliser: The network $\psi(z)$; it becomes empowerment times `beta`.
    """

    channel: Channel
    normaliser: Network


def model_free_loss(
    model: ModelFree, world: AbstractWorld, state: State, *, beta: float = 1.0, key: Key
) -> tuple[Scalar, Scalar]:
    r"""Evaluate the two losses of Mohamed and Rezende (2015), from one draw.

    Planning by maximum likelihood, $-\ln q(u|z, x')$; the source by regression,
    $(\beta \ln q(u|z, x') - \ln \omega(u|z) - \psi(z))^2$ with $q$ held fixed. Plans are drawn from
    the source, and no gradient passes through the drawing or the world.

    Args:
        model: Source, planning and normaliser.
        world: A world whose actions live before the squash; it is only sampled.
        state: The state $z$.
        beta: The inverse temperature.
        key: Consumed.

    Returns:
        The sum of both losses, and an unbiased estimate of the bound.
    """
    channel = model.channel
    code_key, future_key = jax.random.split(key)
    features = channel.inputs.features(state)
    source = channel.source(features)
    code = jax.lax.stop_gradient(source.sample(key=code_key))
    successor = perceive(world, state, channel.source.plan(features, code), key=future_key)
    seen = channel.inputs.relative(world, state, successor, channel.steps)
    log_planning = channel.planning(features, jax.lax.stop_gradient(seen)).log_prob(code)
    log_source = source.log_prob(code)
    target = beta * jax.lax.stop_gradient(log_planning)
    regression = (target - log_source - model.normaliser(features)[0]) ** 2
    return regression - log_planning, log_planning - log_source


def train_model_free(
    world: AbstractWorld,
    *,
    steps: int,
    num_updates: int,
    batch_size: int,
    family: str = "paper",
    beta: float = 1.0,
    key: Key,
) -> Trained:
    r"""Train a channel as Mohamed and Rezende (2015) do, without gradients of the world.

    For `beta` one the source moves towards $\omega(u|z) \propto \exp E_{x'} \ln q(u|z, x')$, a step
    of Blahut and Arimoto's iteration.

    Deviation: they learn from pixels and one stream of experience; here states are drawn
    from everywhere, as for the other channels, so that only the learning rule differs.

    Args:
        world: A world whose actions live before the squash (`Bounded`); only sampled.
        steps: The number of actions in a plan.
        num_updates: The number of updates.
        batch_size: The number of states in an update.
        family: A family whose source is a density of plans: not `intent`, not `codebook`.
        beta: The inverse temperature.
        key: Consumed.

    Returns:
        The trained channel, with the mean bound of the batches as history.
    """
    channel_key, normaliser_key, train_key = jax.random.split(key, 3)
    if family not in ("paper", "autoregressive", "gaussian", "flow"):
        raise ValueError(
            "Expected a family whose source is a density of plans (paper, autoregressive, "
            f"gaussian, flow); got {family!r}."
        )
    if num_updates < 1 or batch_size < 1:
        raise ValueError(
            "Expected num_updates and batch_size to be at least 1; got "
            f"{num_updates} and {batch_size}."
        )
    channel = make_channel(world, family=family, steps=steps, key=channel_key)
    assert isinstance(channel, Channel)
    normaliser = network(channel.inputs.size, 1, width=128, depth=2, key=normaliser_key)
    arrays, rest = eqx.partition(ModelFree(channel, normaliser), eqx.is_inexact_array)
    schedule = optax.cosine_decay_schedule(_LEARNING_RATE, num_updates)
    optimiser = optax.chain(optax.clip_by_global_norm(_CLIP), optax.adam(schedule))

    def loss(arrays: ModelFree, states: Float[Array, "batch state"], key: Key):
        model = eqx.combine(arrays, rest)
        keys = jax.random.split(key, batch_size)
        losses, bounds = jax.vmap(
            lambda state, key: model_free_loss(model, world, state, beta=beta, key=key)
        )(states, keys)
        return losses.mean(), bounds.mean()

    def update(carry, key: Key):
        arrays, memory = carry
        state_key, loss_key = jax.random.split(key)
        states = sample_states(world, None, batch_size, key=state_key)
        gradient, bound = jax.grad(loss, has_aux=True)(arrays, states, loss_key)
        changes, memory = optimiser.update(gradient, memory)
        return (eqx.apply_updates(arrays, changes), memory), bound

    @jax.jit
    def run(arrays: ModelFree):
        keys = jax.random.split(train_key, num_updates)
        memory = optimiser.init(eqx.filter(arrays, eqx.is_inexact_array))
        return jax.lax.scan(update, (arrays, memory), keys)

    # Adam counts in integers and scales in floats.
    with jax.numpy_dtype_promotion("standard"):
        (arrays, _), bounds = run(arrays)
    model = eqx.combine(arrays, rest)
    span = max(num_updates // _NUM_LOOKS, 1)
    history = [
        (start + span, float(bounds[start : start + span].mean()))
        for start in range(0, num_updates - span + 1, span)
    ]
    return Trained(model.channel, history, "the budget is spent")


def discrete_bound(
    source: Float[Array, " sequences"],
    planning: Float[Array, "sequences ends"],
    channel: Float[Array, "sequences ends"],
) -> Scalar:
    r"""Evaluate the variational bound of one cell of a discrete world, without sampling.

    $$\hat{I} = \sum_{u, x'} \omega(u|z)\, p(x'|z, u)
    \bigl[\ln q(u|z, x') - \ln \omega(u|z)\bigr]$$

    Karl et al. (2018), Eq. 3 (eq:vi_bound); $u$ runs over all sequences of moves.

    Args:
        source: Logits of $\omega(\cdot|z)$.
        planning: Logits of $q(\cdot|z, x')$, one column for each end.
        channel: $p(x'|z, u)$.

    Returns:
        The bound, in nats.
    """
    log_source = jax.nn.log_softmax(source)
    log_planning = jax.nn.log_softmax(planning, axis=0)
    joint = jnp.exp(log_source)[:, None] * channel
    return jnp.sum(joint * (log_planning - log_source[:, None]))


def train_discrete(
    world: Grid, *, steps: int, num_updates: int, key: Key
) -> Float[Array, " cells"]:
    """Train a source and a planning table for each cell by ascending the bound.

    Mohamed and Rezende (2015) judge their bound this way on grids; here source and planning
    are ascended together, as in Karl et al. (2018), Sec. 2.2.

    Args:
        world: A discrete world.
        steps: The number of moves in a sequence.
        num_updates: The number of updates.
        key: Consumed.

    Returns:
        The bound on the empowerment of each cell, in nats.
    """
    if steps < 1:
        raise ValueError(f"Expected steps to be at least 1; got {steps}.")
    if num_updates < 1:
        raise ValueError(f"Expected num_updates to be at least 1; got {num_updates}.")
    channels = _sequences(world, steps)
    cells, sequences, ends = channels.shape
    source_key, planning_key = jax.random.split(key)
    source = 0.1 * jax.random.normal(source_key, (cells, sequences))
    planning = 0.1 * jax.random.normal(planning_key, (cells, sequences, ends))
    optimiser = optax.adam(optax.cosine_decay_schedule(_DISCRETE_LEARNING_RATE, num_updates))

    def loss(tables: tuple[Array, Array]) -> Scalar:
        return -jnp.sum(jax.vmap(discrete_bound)(*tables, channels))

    def update(carry, _):
        tables, memory = carry
        changes, memory = optimiser.update(jax.grad(loss)(tables), memory)
        return (eqx.apply_updates(tables, changes), memory), None

    @jax.jit
    def run(tables: tuple[Array, Array]) -> Float[Array, " cells"]:
        start = tables, optimiser.init(tables)
        (tables, _), _ = jax.lax.scan(update, start, length=num_updates)
        return jax.vmap(discrete_bound)(*tables, channels)

    with jax.numpy_dtype_promotion("standard"):
        return run((source, planning))


def _sequences(world: Grid, steps: int) -> Float[Array, "cells sequences ends"]:
    """Give where each sequence of moves ends; columns that no sequence reaches are left out."""
    futures = jnp.eye(len(world.cells))[:, None]
    for _ in range(steps):
        moved = jnp.einsum("xsc,cmd->xsmd", futures, world.kernel)
        futures = moved.reshape(len(world.cells), -1, len(world.cells))
    reached = jnp.any(futures > 0, axis=1)
    columns = jnp.argsort(~reached, axis=1)[:, : int(reached.sum(axis=1).max())]
    return jnp.take_along_axis(futures, columns[:, None, :], axis=2)
