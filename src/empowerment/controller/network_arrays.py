"""Networks of JAX as the arrays of a bundle."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from empowerment.networks import Network
from empowerment.policy import Surrogate

_ACTIVATIONS = {jnp.tanh: "tanh", jax.nn.relu: "relu", jax.nn.sigmoid: "sigmoid"}


def add_network(
    networks: dict[str, tuple[str, ...]],
    arrays: dict[str, Any],
    name: str,
    network: Network,
    rows: np.ndarray | None = None,
) -> None:
    """Add a network layer by layer, or only some rows of its output.

    Args:
        networks: Activations of the layers of each network; the network is added.
        arrays: Arrays by name; those of the network are added.
        name: Name of the network.
        network: The network.
        rows: The outputs that are needed; all by default.
    """
    last = len(network.layers) - 1
    networks[name] = (_ACTIVATIONS[network.activation],) * last + ("identity",)
    for index, layer in enumerate(network.layers):
        weight, bias = np.asarray(layer.weight), np.asarray(layer.bias)
        if index == last and rows is not None:
            weight, bias = weight[rows], bias[rows]
        arrays |= {f"{name}.{index}.weight": weight, f"{name}.{index}.bias": bias}


def in_nats(bound: Surrogate) -> Network:
    """Return the network of a fit with its mean and scale folded into the last layer."""
    last = bound.network.layers[-1]
    assert last.bias is not None
    folded = bound.scale * last.weight, bound.mean + bound.scale * last.bias
    return eqx.tree_at(
        lambda made: (made.layers[-1].weight, made.layers[-1].bias), bound.network, folded
    )
