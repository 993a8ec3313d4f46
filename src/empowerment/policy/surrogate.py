"""A network that stands for the bound of a trained channel: the same landscape, much faster."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from empowerment.channel import AbstractChannel, empowerment
from empowerment.networks import Network, network
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, Box

_BATCH = 256
_LEARNING_RATE = 3e-3
_NUM_JUDGED = 512
"""States at which the fit is judged; it never sees them."""

_AT_ONCE = 32
"""States that a channel is evaluated at in one go."""


class Surrogate(eqx.Module):
    """The bound as a plain function of the state.

    Attributes:
        network: Gives the bound, relative to its mean and in units of its spread.
        states: The region that it was fitted in.
        mean: Of the bound over the region, in nats.
        scale: Its standard deviation over the region.
        error: The root mean square of what the fit is off by, at states it never saw.
    """

    network: Network
    states: Box
    mean: Scalar
    scale: Scalar
    error: Scalar

    def __call__(self, state: State) -> Scalar:
        """Give the bound at a state, in nats; beyond the region, that of the nearest in it."""
        within = jnp.clip(state, self.states.low, self.states.high)
        turns = jnp.array([name in self.states.angles for name in self.states.names])
        features = self.states.features(jnp.where(turns, state, within))
        return self.mean + self.scale * self.network(features)[0]

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Give the bound at a state, as a channel would estimate it."""
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

    A codebook weighs all of its plans against each other, which is exact and slow; a policy
    asks for the bound at every state that it passes through. Deviation: the paper evaluates
    the channel there.

    Args:
        channel: A trained channel.
        world: A world whose actions live before the squash.
        num_states: States at which the channel is evaluated.
        num_samples: Draws at each.
        num_updates: Updates of the network.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
        key: Consumed.

    Returns:
        The fit, and how far off it is.
    """
    state_key, draw_key, network_key, fit_key = jax.random.split(key, 4)
    total = num_states + _NUM_JUDGED
    states, bounds = _evaluate(channel, world, total, num_samples, state_key, draw_key)
    mean, scale = bounds.mean(), bounds.std() + 1e-6
    fresh = fresh_surrogate(world.states, mean, scale, width=width, depth=depth, key=network_key)
    fitted = _fit(fresh, states[:num_states], bounds[:num_states], num_updates, fit_key)
    off = jax.vmap(fitted)(states[num_states:]) - bounds[num_states:]
    return eqx.tree_at(lambda made: made.error, fitted, jnp.sqrt(jnp.mean(off**2)))


def fresh_surrogate(
    states: Box, mean: Scalar, scale: Scalar, *, width: int, depth: int, key: Key
) -> Surrogate:
    """Make a fit to nothing yet: to be trained, or loaded into."""
    made = network(states.feature_size, 1, width=width, depth=depth, key=key)
    return Surrogate(made, states, mean, scale, jnp.zeros(()))


@eqx.filter_jit
def _evaluate(
    channel: AbstractChannel,
    world: AbstractWorld,
    count: int,
    num_samples: int,
    state_key: Key,
    draw_key: Key,
) -> tuple[Float[Array, "states state"], Float[Array, " states"]]:
    """Evaluate the channel at states from everywhere."""
    region = world.state_distribution()
    keys = jax.random.split(state_key, count)
    states = jax.vmap(lambda key: region.sample(key=key))(keys)

    def of_state(inputs: tuple[State, Key]) -> Scalar:
        state, key = inputs
        return empowerment(channel, world, state, num_samples=num_samples, key=key).value

    draws = jax.random.split(draw_key, count)
    return states, jax.lax.map(of_state, (states, draws), batch_size=_AT_ONCE)


@eqx.filter_jit
def _fit(
    surrogate: Surrogate,
    states: Float[Array, "states state"],
    bounds: Float[Array, " states"],
    num_updates: int,
    key: Key,
) -> Surrogate:
    """Descend the square of what the fit is off by."""
    schedule = optax.cosine_decay_schedule(_LEARNING_RATE, num_updates)
    optimiser = optax.adam(schedule)
    parameters, rest = eqx.partition(surrogate.network, eqx.is_inexact_array)
    features = jax.vmap(surrogate.states.features)(states)
    wanted = (bounds - surrogate.mean) / surrogate.scale

    def loss(parameters: Network, chosen: Array) -> Scalar:
        found = jax.vmap(eqx.combine(parameters, rest))(features[chosen])[:, 0]
        return jnp.mean((found - wanted[chosen]) ** 2)

    def update(carry, key: Key):
        parameters, state = carry
        chosen = jax.random.randint(key, (_BATCH,), 0, len(features))
        with jax.numpy_dtype_promotion("standard"):  # Adam counts in whole numbers.
            changes, state = optimiser.update(jax.grad(loss)(parameters, chosen), state)
        return (eqx.apply_updates(parameters, changes), state), None

    start = parameters, optimiser.init(parameters)
    (parameters, _), _ = jax.lax.scan(update, start, jax.random.split(key, num_updates))
    return eqx.tree_at(lambda made: made.network, surrogate, eqx.combine(parameters, rest))
