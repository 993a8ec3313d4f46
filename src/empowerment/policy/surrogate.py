"""A network fitted to the bound of a trained channel: the same landscape, much faster."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.channel import AbstractChannel, empowerment_at
from empowerment.errors import NotConvergedError
from empowerment.networks import Network, network
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, Box

_BATCH = 256
_LEARNING_RATE = 3e-3
_JUDGED = 64, 64
"""A state to judge the fit by for this many to fit to, but no fewer than this many."""

_REPEATS = 16
"""Times that the channel is evaluated at a state to judge by, half for each of two estimates."""

BLOCK = 1024
"""States at which the channel is evaluated in one call: always as many, to compile it once."""

_NUM_SAMPLES = 8
"""Draws of the channel at a state; a network averages over neighbours."""

_UPDATES_PER_AXIS, _MOST_AXES = 3000, 4
"""Updates for each axis of a state after the first, and the most axes that count. With four axes,
3000 updates leave an error of 0.17 nats where 12000 leave 0.10 (double pendulum)."""

_UPDATES_PER_STATE, _FEWEST_UPDATES = 2, 1000
"""Most updates for each state that is fitted to, where there are few, but no fewer than these."""

CLOSE = 0.1
"""Share of the spread of the bound within which a fit follows it."""

_USELESS = 1.5
"""Share of the spread from which a fit is surely worse than a constant."""

_HARMLESS = 0.1
"""Error that matters nowhere, in nats: a bound that hardly varies is as well a constant."""

_AT_ONCE = 32
"""States at which the channel is evaluated at once."""


class Surrogate(eqx.Module):
    """The bound as a plain function of the state.

    Attributes:
        network: Returns the bound relative to its mean, in units of its scale.
        states: Region of the fit.
        mean: Mean of the bound over the region, in nats.
        scale: Standard deviation of the bound over the region.
        error: Root mean square error of the fit at states to which it was not fitted.
    """

    network: Network
    states: Box
    mean: Scalar
    scale: Scalar
    error: Scalar

    def __call__(self, state: State) -> Scalar:
        """Return the bound at a state, in nats; outside the region, of the nearest state in it."""
        return self.mean + self.scale * self.network(self.inputs(state))[0]

    def inputs(self, state: State) -> Float[Array, " features"]:
        """Return the inputs of the network at a state, or at the nearest one in the region."""
        within = jnp.clip(state, self.states.low, self.states.high)
        turns = jnp.array([name in self.states.angles for name in self.states.names])
        return self.states.features(jnp.where(turns, state, within))

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Return the bound at a state, as a channel would estimate it."""
        return self(state)


class Evaluated(eqx.Module):
    """States, and the bound of a channel at each of them in nats."""

    states: Float[Array, "states state"]
    bounds: Float[Array, " states"]


class Fit(eqx.Module):
    """A surrogate, and what it was fitted to."""

    surrogate: Surrogate
    data: Evaluated


def fit_surrogate(
    channel: AbstractChannel,
    world: AbstractWorld,
    *,
    num_states: int = 8192,
    num_updates: int | None = None,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> tuple[Fit, dict[str, Any]]:
    """Fit a network for a policy to be trained on; see `fit_bound`, which does it.

    A codebook compares all of its plans with each other, which is exact and slow, and training
    a policy needs the bound at every state of every rollout. Deviation: the paper evaluates the
    channel there.

    Args:
        channel: A trained channel.
        world: A world whose actions live before the squash.
        num_states: See `fit_bound`.
        num_updates: See `fit_bound`.
        width: See `fit_bound`.
        depth: See `fit_bound`.
        key: Consumed.

    Returns:
        As `fit_bound`, with a warning among the facts if the error is above a tenth of the spread,
        else an empty one.

    Raises:
        NotConvergedError: If the fit is worse than a constant.
    """
    fit, facts = fit_bound(
        channel,
        world,
        num_states=num_states,
        num_updates=num_updates,
        width=width,
        depth=depth,
        key=key,
    )
    return fit, {**facts, "warning": _judge(**facts)}


def fit_bound(
    channel: AbstractChannel,
    world: AbstractWorld,
    *,
    num_states: int = 8192,
    num_updates: int | None = None,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> tuple[Fit, dict[str, float]]:
    """Fit a network to the bound of a trained channel, over the whole region of a world.

    Args:
        channel: A trained channel.
        world: A world whose actions live before the squash.
        num_states: Number of states at which the channel is evaluated.
        num_updates: Updates of the network; by default more, the more axes a state has, and fewer
            where there are few states.
        width: Width of a hidden layer.
        depth: Number of hidden layers.
        key: Consumed.

    Returns:
        The surrogate with what it was fitted to, and facts about it: its error at states to which
        it was not fitted (`error`), and the standard deviation of the bound over the same states
        (`spread`), both in nats and without the noise of sampling the bound.
    """
    state_key, draw_key, network_key, fit_key = jax.random.split(key, 4)
    if num_updates is None:
        num_updates = min(
            _UPDATES_PER_AXIS * min(max(world.states.size - 1, 1), _MOST_AXES),
            max(_UPDATES_PER_STATE * num_states, _FEWEST_UPDATES),
        )
    num_judged = max(num_states // _JUDGED[0], _JUDGED[1])
    drawn = _sample(world, jax.random.split(state_key, num_states + num_judged))
    states, judged = _disjoint(np.asarray(drawn), num_states)
    everywhere = jnp.concatenate([states, jnp.tile(judged, (_REPEATS, 1))])
    everything = evaluate(channel, world, everywhere, key=draw_key)
    bounds, repeated = everything[:num_states], everything[num_states:]
    mean, scale = bounds.mean(), bounds.std() + 1e-6
    sizes = {"width": width, "depth": depth}
    unfitted = unfitted_surrogate(world.states, mean, scale, **sizes, key=network_key)
    fitted = _fit(unfitted, states, bounds, num_updates, fit_key)
    one, other = repeated.reshape(2, _REPEATS // 2, len(judged)).mean(axis=1)
    values = jax.vmap(fitted)(judged)
    error = root_mean_product(values - one, values - other)
    spread = root_mean_product(one - one.mean(), other - other.mean())
    fitted = eqx.tree_at(lambda made: made.error, fitted, error)
    facts = {"error": float(error), "spread": float(spread)}
    return Fit(fitted, Evaluated(states, bounds)), facts


def evaluate(
    channel: AbstractChannel,
    world: AbstractWorld,
    states: Float[Array, "states state"],
    *,
    key: Key,
) -> Float[Array, " states"]:
    """Estimate the bound of a channel at many states from a few draws each, block by block."""
    repeated = np.arange(len(states) + -len(states) % BLOCK) % len(states)
    keys = jax.random.split(key, len(repeated))
    blocks = [
        empowerment_at(
            channel,
            world,
            states[repeated[first : first + BLOCK]],
            jax.lax.dynamic_slice_in_dim(keys, first, BLOCK),  # One program for all blocks.
            num_samples=_NUM_SAMPLES,
            batch_size=_AT_ONCE,
        )
        for first in range(0, len(repeated), BLOCK)
    ]
    return jnp.concatenate(blocks)[: len(states)]


def _judge(error: float, spread: float) -> str:
    """Return what is to be said about the error of a fit; refuse one that is useless."""
    facts = (
        f"an error of {error:.3g} nats where the bound varies by {spread:.3g}. More states "
        "(bound_states) or a larger network (width, depth) may bring it closer."
    )
    if not error <= _USELESS * max(spread, _HARMLESS):
        raise NotConvergedError(f"Expected a network to follow the bound; got {facts}")
    if error > max(CLOSE * spread, CLOSE * _HARMLESS):
        return f"The policy begins with a rough picture of the bound: its network has {facts}"
    return ""


def _disjoint(
    drawn: Float[np.ndarray, "drawn state"], num_states: int
) -> tuple[Float[Array, "states state"], Float[Array, "judged state"]]:
    """Separate states to fit to from states to judge by, also where some were drawn repeatedly.

    Distinct states among the last ones are judged, at most a quarter of all; those to fit to are
    the first ones without the judged. Both are repeated where there are fewer than were drawn.
    """
    distinct, which = np.unique(drawn, axis=0, return_inverse=True)
    which = which.reshape(-1)
    judged = list(dict.fromkeys(which[num_states:].tolist()))[: max(len(distinct) // 4, 1)]
    rest = np.flatnonzero(~np.isin(which, judged))[:num_states]
    if not len(rest):
        raise ValueError(
            "Expected a world to have two states or more, to fit to one and judge by another; got "
            f"{len(distinct)}."
        )
    chosen = distinct[np.resize(judged, len(drawn) - num_states)]
    return jnp.asarray(drawn[np.resize(rest, num_states)]), jnp.asarray(chosen)


def root_mean_product(one: Float[Array, " states"], other: Float[Array, " states"]) -> Scalar:
    """Return the root mean square of what two noisy estimates of the same have in common.

    Their noises are independent, so that it cancels in the mean of products.
    """
    return jnp.sqrt(jnp.maximum(jnp.mean(one * other), 0.0))


@eqx.filter_jit
def _sample(world: AbstractWorld, keys: Array) -> Float[Array, "states state"]:
    """Sample states from the whole region."""
    region = world.state_distribution()
    return jax.vmap(lambda key: region.sample(key=key))(keys)


def unfitted_surrogate(
    states: Box, mean: Scalar, scale: Scalar, *, width: int, depth: int, key: Key
) -> Surrogate:
    """Build an untrained surrogate."""
    untrained = network(states.feature_size, 1, width=width, depth=depth, key=key)
    return Surrogate(untrained, states, mean, scale, jnp.zeros(()))


@eqx.filter_jit
def _fit(
    surrogate: Surrogate,
    states: Float[Array, "states state"],
    bounds: Float[Array, " states"],
    num_updates: int,
    key: Key,
) -> Surrogate:
    """Minimise the mean square error of the fit."""
    features = jax.vmap(surrogate.states.features)(states)
    wanted = (bounds - surrogate.mean) / surrogate.scale

    def loss(network: Network, target: None, inputs: None, key: Key) -> tuple[Scalar, None]:
        chosen = jax.random.randint(key, (_BATCH,), 0, len(features))
        fitted = jax.vmap(network)(features[chosen])[:, 0]
        return jnp.mean((fitted - wanted[chosen]) ** 2), None

    optimiser = optax.scale_by_adam()
    memory = optimiser.init(eqx.filter(surrogate.network, eqx.is_inexact_array))
    rates = optimise.full_cosine(_LEARNING_RATE, num_updates)
    keys = jax.random.split(key, num_updates)
    (fitted, *_), _ = optimise.descend(
        loss, (surrogate.network, memory, None), (None, rates, keys), optimiser=optimiser
    )
    return eqx.tree_at(lambda made: made.network, surrogate, fitted)
