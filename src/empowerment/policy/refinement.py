"""Refining the fit of a bound where a policy goes, while it is trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from empowerment import optimise
from empowerment.channel import AbstractChannel
from empowerment.networks import Network
from empowerment.policy.surrogate import (
    BLOCK,
    Evaluated,
    Fit,
    Surrogate,
    evaluate,
    root_mean_product,
)
from empowerment.types import Key, Scalar
from empowerment.worlds import AbstractWorld

NUM_PLACES = BLOCK // 2
"""States at which the channel is evaluated in a refinement, twice each."""

_RECENT = 8192
"""Number of states of the latest refinements that the fit is held to."""

_BATCH = 256
_UPDATES = 100
_OPTIMISER = optax.scale_by_adam()


class Refinement(eqx.Module):
    """A surrogate that is refined, and what it is fitted to.

    Attributes:
        surrogate: The surrogate.
        region: States of the whole region, with the bound of the channel there.
        recent: States of the latest refinements, likewise.
        memory: State of the optimiser.
        count: Number of refinements.
    """

    surrogate: Surrogate
    region: Evaluated
    recent: Evaluated
    memory: optax.OptState
    count: Int[Array, ""]


class FitInfo(eqx.Module):
    """How well a fit follows the bound.

    Attributes:
        visited_error: Root mean square error at states that the policy visits, before they are
            fitted to and without the noise of sampling the bound, in nats.
        best_error: The same at the tenth of these states that the surrogate takes for the best.
        visited_bound: Mean bound of the channel at these states.
    """

    visited_error: Scalar
    best_error: Scalar
    visited_bound: Scalar


def begin(fit: Fit) -> Refinement:
    """Build the state before the first refinement."""
    repeated = jnp.arange(_RECENT) % len(fit.data.states)
    recent = jax.tree.map(lambda leaf: leaf[repeated], fit.data)
    memory = _OPTIMISER.init(eqx.filter(fit.surrogate.network, eqx.is_inexact_array))
    return Refinement(fit.surrogate, fit.data, recent, memory, jnp.array(0))


def refine(
    at: Refinement,
    channel: AbstractChannel,
    world: AbstractWorld,
    visited: Float[Array, "visited state"],
    *,
    learning_rate: Scalar,
    key: Key,
) -> tuple[Refinement, FitInfo]:
    """Evaluate the channel at visited states, and fit to these as much as to the whole region.

    Args:
        at: Where the refinement stands.
        channel: The trained channel.
        world: A world whose actions live before the squash.
        visited: States that the policy visits, `NUM_PLACES` of them.
        learning_rate: Learning rate.
        key: Consumed.

    Returns:
        Where it stands afterwards, and how well the surrogate followed the bound before.
    """
    draw_key, batch_key = jax.random.split(key)
    estimates = evaluate(channel, world, jnp.tile(visited, (2, 1)), key=draw_key).reshape(2, -1)
    return _refit(at, visited, estimates, learning_rate, batch_key)


@eqx.filter_jit
def _refit(
    at: Refinement,
    visited: Float[Array, "visited state"],
    estimates: Float[Array, "two visited"],
    learning_rate: Scalar,
    key: Key,
) -> tuple[Refinement, FitInfo]:
    """Replace the oldest states by new ones with two estimates of the bound, and fit again."""
    one, other = estimates
    bounds, surrogate = 0.5 * (one + other), at.surrogate
    values = jax.vmap(surrogate)(visited)
    best = jnp.argsort(-values)[: len(values) // 10]
    info = FitInfo(
        root_mean_product(values - one, values - other),
        root_mean_product((values - one)[best], (values - other)[best]),
        bounds.mean(),
    )
    first = (at.count * len(visited)) % _RECENT
    recent = Evaluated(
        jax.lax.dynamic_update_slice(at.recent.states, visited, (first, 0)),
        jax.lax.dynamic_update_slice(at.recent.bounds, bounds, (first,)),
    )

    def loss(network: Network, target: None, inputs: None, key: Key) -> tuple[Scalar, None]:
        region_key, recent_key = jax.random.split(key)
        halves = _draw(at.region, region_key), _draw(recent, recent_key)
        batch = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *halves)
        fitted = jax.vmap(network)(jax.vmap(surrogate.inputs)(batch.states))[:, 0]
        wanted = (batch.bounds - surrogate.mean) / surrogate.scale
        return jnp.mean((fitted - wanted) ** 2), None

    scanned = None, jnp.full(_UPDATES, learning_rate), jax.random.split(key, _UPDATES)
    (network, memory, _), _ = optimise.descend(
        loss, (surrogate.network, at.memory, None), scanned, optimiser=_OPTIMISER
    )
    surrogate = eqx.tree_at(lambda made: made.network, surrogate, network)
    return Refinement(surrogate, at.region, recent, memory, at.count + 1), info


def _draw(data: Evaluated, key: Key) -> Evaluated:
    """Sample half a batch."""
    chosen = jax.random.randint(key, (_BATCH // 2,), 0, len(data.bounds))
    return jax.tree.map(lambda leaf: leaf[chosen], data)
