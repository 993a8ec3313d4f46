"""Fully connected networks, and the parameters of distributions from their outputs."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.distributions import FullGaussian, Gaussian
from empowerment.types import Key


class Network(eqx.Module):
    """Fully connected network with a linear output layer.

    Attributes:
        layers: The linear layers, from input to output.
        activation: The activation of the hidden layers.
    """

    layers: tuple[eqx.nn.Linear, ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, inputs: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Apply the network."""
        *hidden, last = self.layers
        for layer in hidden:
            inputs = self.activation(_apply(layer, inputs))
        return _apply(last, inputs)


def _apply(layer: eqx.nn.Linear, inputs: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    assert layer.bias is not None
    # Row vector times matrix: batched by vmap, it needs no transposes.
    return inputs @ layer.weight.T + layer.bias


def network(
    in_size: int,
    out_size: int,
    *,
    width: int,
    depth: int,
    activation: Callable[[Array], Array] = jnp.tanh,
    key: Key,
) -> Network:
    """Build a fully connected network with a linear output layer.

    Karl et al. (2018), App. A.2: "128 tanh + 128 tanh + ... + identity".

    Args:
        in_size: The number of inputs.
        out_size: The number of outputs.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
        activation: The activation of the hidden layers.
        key: Consumed.
    """
    sizes = [in_size, *[width] * depth, out_size]
    keys = jax.random.split(key, depth + 1)
    pairs = zip(sizes, sizes[1:], keys, strict=False)
    return Network(tuple(eqx.nn.Linear(i, o, key=k) for i, o, k in pairs), activation)


def diagonal(output: Float[Array, " output"]) -> Gaussian:
    """Build a diagonal Gaussian from an output: {identity, exp} for mean and scale."""
    mean, log_scale = jnp.split(output, 2)
    return Gaussian(mean, jnp.exp(log_scale))


def full_size(size: int) -> int:
    """Return the number of outputs that `full` needs for a Gaussian of this size."""
    return 2 * size + size * (size - 1) // 2


def full(output: Float[Array, " output"], size: int) -> FullGaussian:
    """Build a full Gaussian from an output: mean, log-diagonal and rest of the factor."""
    mean, log_scale, below = jnp.split(output, (size, 2 * size))
    places = np.zeros((size, size), int)  # Index 0 refers to a zero placed in front of `below`.
    places[np.tril_indices(size, -1)] = np.arange(below.size) + 1
    factor = jnp.concatenate([jnp.zeros_like(output, shape=(1,)), below])[places]
    return FullGaussian(mean, factor + jnp.diag(jnp.exp(log_scale)))
