"""Networks: "128 tanh + {identity, exp}" and what their outputs mean."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.distributions import FullGaussian, Gaussian
from empowerment.types import Key


class Network(eqx.Module):
    """Fully connected layers with a linear output.

    Attributes:
        layers: From input to output.
        activation: Between them.
    """

    layers: tuple[eqx.nn.Linear, ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, inputs: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Give the output, by products of rows: batched, they need no transposes."""
        *hidden, last = self.layers
        for layer in hidden:
            inputs = self.activation(_apply(layer, inputs))
        return _apply(last, inputs)


def _apply(layer: eqx.nn.Linear, inputs: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    assert layer.bias is not None
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
    """Make a fully connected network with a linear output, of tanh layers if not said otherwise.

    Karl et al. (2018), App. A.2: "128 tanh + 128 tanh + ... + identity".

    Args:
        in_size: The number of inputs.
        out_size: The number of outputs.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
        activation: Of the hidden layers.
        key: Consumed.
    """
    sizes = [in_size, *[width] * depth, out_size]
    keys = jax.random.split(key, depth + 1)
    pairs = zip(sizes, sizes[1:], keys, strict=False)
    return Network(tuple(eqx.nn.Linear(i, o, key=k) for i, o, k in pairs), activation)


def diagonal(output: Float[Array, " output"]) -> Gaussian:
    """Read the output of a network as {identity, exp}: the mean and the scale."""
    mean, log_scale = jnp.split(output, 2)
    return Gaussian(mean, jnp.exp(log_scale))


def full_size(size: int) -> int:
    """Count the outputs that `full` reads for so many axes."""
    return 2 * size + size * (size - 1) // 2


def full(output: Float[Array, " output"], size: int) -> FullGaussian:
    """Read the output of a network as a mean and a triangular factor, exp on its diagonal."""
    mean, log_scale, below = jnp.split(output, (size, 2 * size))
    places = np.zeros((size, size), int)  # The first of all numbers below is a zero.
    places[np.tril_indices(size, -1)] = np.arange(below.size) + 1
    factor = jnp.concatenate([jnp.zeros_like(output, shape=(1,)), below])[places]
    return FullGaussian(mean, factor + jnp.diag(jnp.exp(log_scale)))
