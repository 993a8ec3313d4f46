"""A network fitted to the bound of a trained channel: the same landscape, much faster."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from empowerment import optimise
from empowerment.channel import AbstractChannel, empowerment_at
from empowerment.networks import Network, network
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, Box

_BATCH = 256
_LEARNING_RATE = 3e-3
_NUM_VALIDATION = 512
"""Number of validation states."""

_AT_ONCE = 32
"""States at which the channel is evaluated at once."""


class Surrogate(eqx.Module):
    """The bound as a plain function of the state.

    Attributes:
        network: Returns the bound relative to its mean, in units of its scale.
        states: Region of the fit.
        mean: Mean of the bound over the region, in nats.
        scale: Standard deviation of the bound over the region.
        error: Root mean square error of the fit at validation states.
    """

    network: Network
    states: Box
    mean: Scalar
    scale: Scalar
    error: Scalar

    def __call__(self, state: State) -> Scalar:
        """Return the bound at a state, in nats; outside the region, of the nearest state in it."""
        within = jnp.clip(state, self.states.low, self.states.high)
        turns = jnp.array([name in self.states.angles for name in self.states.names])
        features = self.states.features(jnp.where(turns, state, within))
        return self.mean + self.scale * self.network(features)[0]

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Return the bound at a state, as a channel would estimate it."""
        return self(state)


def fit_surrogate(
    channel: AbstractChannel,
    world: AbstractWorld,
    *,
    num_states: int = 8192,
    num_samples: int = 16,
    num_updates: int = 3000,
    width: int = 128,
    depth: int = 2,
    key: Key,
) -> Surrogate:
    """Fit a network to the bound of a trained channel, over the whole region of a world.

    A codebook compares all of its plans with each other, which is exact and slow, and training
    a policy needs the bound at every state of every rollout. Deviation: the paper evaluates the
    channel there.

    Args:
        channel: A trained channel.
        world: A world whose actions live before the squash.
        num_states: Number of states at which the channel is evaluated.
        num_samples: Draws at each state.
        num_updates: Updates of the network.
        width: Width of a hidden layer.
        depth: Number of hidden layers.
        key: Consumed.
    """
    state_key, draw_key, network_key, fit_key = jax.random.split(key, 4)
    total = num_states + _NUM_VALIDATION
    states = _sample(world, jax.random.split(state_key, total))
    keys = jax.random.split(draw_key, total)
    bounds = empowerment_at(
        channel, world, states, keys, num_samples=num_samples, batch_size=_AT_ONCE
    )
    mean, scale = bounds.mean(), bounds.std() + 1e-6
    sizes = {"width": width, "depth": depth}
    unfitted = unfitted_surrogate(world.states, mean, scale, **sizes, key=network_key)
    fitted = _fit(unfitted, states[:num_states], bounds[:num_states], num_updates, fit_key)
    errors = jax.vmap(fitted)(states[num_states:]) - bounds[num_states:]
    return eqx.tree_at(lambda made: made.error, fitted, jnp.sqrt(jnp.mean(errors**2)))


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
