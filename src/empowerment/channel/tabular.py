"""The variational bound of discrete worlds, by tables: one source and planning for each cell."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.types import Key, Scalar
from empowerment.worlds import Grid

_LEARNING_RATE = 0.1


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
        steps: Number of moves in a sequence.
        num_updates: Number of updates.
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
    return _train((source, planning), channels, num_updates)


@eqx.filter_jit
def _train(
    tables: tuple[Array, Array], channels: Float[Array, "cells sequences ends"], num_updates: int
) -> Float[Array, " cells"]:
    def loss(tables: tuple[Array, Array], target: None, inputs: None, key: None):
        return -jnp.sum(jax.vmap(discrete_bound)(*tables, channels)), None

    optimiser = optax.scale_by_adam()
    rates = optimise.full_cosine(_LEARNING_RATE, num_updates)
    carry = (tables, optimiser.init(tables), None)
    (tables, *_), _ = optimise.descend(loss, carry, (None, rates, None), optimiser=optimiser)
    return jax.vmap(discrete_bound)(*tables, channels)


def _sequences(world: Grid, steps: int) -> Float[Array, "cells sequences ends"]:
    """Compute the distribution of ends of each sequence of moves, without ends never reached."""
    futures = jnp.eye(len(world.cells))[:, None]
    for _ in range(steps):
        moved = jnp.einsum("xsc,cmd->xsmd", futures, world.kernel)
        futures = moved.reshape(len(world.cells), -1, len(world.cells))
    reached = jnp.any(futures > 0, axis=1)
    columns = jnp.argsort(~reached, axis=1)[:, : int(reached.sum(axis=1).max())]
    return jnp.take_along_axis(futures, columns[:, None, :], axis=2)
