"""The bound of a trained channel at one state or many."""

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from empowerment.channel.base import AbstractChannel, Estimate
from empowerment.channel.codebook import Codebook
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld

_STANDARD_ERROR = 0.01
"""The standard error below which an estimate is good enough, in nats."""

_FEWEST_SAMPLES, _MOST_SAMPLES = 256, 65536
_GROWTH = 4
_BATCH = 8

NEAR_CEILING = 0.25
"""Nats below its ceiling from which a bound says more about the channel than about the world."""


def empowerment(
    channel: AbstractChannel,
    world: AbstractWorld,
    state: State,
    *,
    num_samples: int | None = None,
    key: Key,
) -> Estimate:
    r"""Estimate the lower bound on the empowerment of a state.

    $\hat{\mathcal{E}}(z) = \max_\omega \hat{I}(x', u_{1:n}|z) \le \mathcal{E}(z)$: Karl et
    al. (2018), Eq. 5 (eq:emp_bound), with the source and the planning of a trained channel.
    Differentiable in the state.

    Args:
        channel: A trained channel.
        world: A world whose actions live before the squash (`Bounded`).
        state: The state $z$.
        num_samples: The number of samples. By default as many as a standard error below a
            hundredth of a nat takes, and 256 inside of a JAX transformation.
        key: Consumed.

    Returns:
        The mean of the samples and its standard error.
    """
    if num_samples is not None and num_samples < 2:
        raise ValueError(f"Expected num_samples to be at least 2; got {num_samples}.")
    inputs = jax.tree.leaves((channel, world, state, key))
    if num_samples is None and not any(isinstance(leaf, jax.core.Tracer) for leaf in inputs):
        value, error = precise_empowerment_at(channel, world, state[None], key[None])
        return Estimate(jnp.asarray(value[0]), jnp.asarray(error[0]))
    return channel.estimate(world, state, num_samples=num_samples or _FEWEST_SAMPLES, key=key)


def ceiling(channel: AbstractChannel) -> float:
    """Return what no bound of a channel can exceed: the logarithm of its number of codes.

    Where its codes are all plans that there are, nothing is lost by it, and there is no ceiling.
    """
    if not isinstance(channel, Codebook) or channel.has_all_plans:
        return float("inf")
    return float(np.log(len(channel.intents)))


def is_at_ceiling(
    channel: AbstractChannel, values: Float[np.ndarray, "*states"]
) -> Bool[np.ndarray, "*states"]:
    """Check which bounds are so close to the ceiling of a channel that it limits them."""
    return np.asarray(values > ceiling(channel) - NEAR_CEILING)


def precise_empowerment_at(
    channel: AbstractChannel,
    world: AbstractWorld,
    states: Float[Array, "states state"],
    keys: Array,
) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"]]:
    """Estimate the bound at many states with as many samples as each needs.

    Samples are added until the standard error is below a hundredth of a nat, or there are 65536.

    Args:
        channel: A trained channel.
        world: A world whose actions live before the squash.
        states: The states.
        keys: One for each state; consumed.

    Returns:
        The bound at each state, and its standard error.
    """
    num_samples = _FEWEST_SAMPLES
    estimate = _estimate_at(channel, world, states, keys, num_samples)
    value, error = (np.array(part) for part in (estimate.value, estimate.standard_error))
    while num_samples < _MOST_SAMPLES:
        num_samples *= _GROWTH
        rough = np.flatnonzero(~(error < _STANDARD_ERROR))
        if not rough.size:
            break
        # Repeated to a multiple of the batch, so that few shapes are compiled.
        padded = np.resize(rough, rough.size + -rough.size % min(_BATCH, len(value)))
        finer = _estimate_at(channel, world, states[padded], keys[padded], num_samples)
        value[padded], error[padded] = finer.value, finer.standard_error
    return value, error


@eqx.filter_jit
def _estimate_at(
    channel: AbstractChannel,
    world: AbstractWorld,
    states: Float[Array, "states state"],
    keys: Array,
    num_samples: int,
) -> Estimate:
    def of_state(inputs: tuple[State, Array]) -> Estimate:
        state, key = inputs
        return channel.estimate(world, state, num_samples=num_samples, key=key)

    return jax.lax.map(of_state, (states, keys))


@eqx.filter_jit
def empowerment_at(
    channel: AbstractChannel,
    world: AbstractWorld,
    states: Float[Array, "states state"],
    keys: Array,
    *,
    num_samples: int = 256,
    batch_size: int = 8,
) -> Float[Array, " states"]:
    """Estimate the lower bound on the empowerment of many states, in nats.

    Args:
        channel: A trained channel.
        world: A world whose actions live before the squash.
        states: The states.
        keys: One for each state; consumed.
        num_samples: Draws at each state.
        batch_size: States that are evaluated at once.
    """

    def of_state(inputs: tuple[State, Array]) -> Scalar:
        state, key = inputs
        return channel.estimate(world, state, num_samples=num_samples, key=key).value

    return jax.lax.map(of_state, (states, keys), batch_size=batch_size)
