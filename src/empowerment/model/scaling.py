"""Affine scaling of data to order one."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_STILL = 1e-6
"""Standard deviation, relative to the largest value, below which a channel is constant."""


class Scaling(eqx.Module):
    """Affine map between physical units and units of order one.

    Attributes:
        offset: The physical value that maps to zero.
        scale: The physical difference that maps to one.
    """

    offset: Float[Array, " size"]
    scale: Float[Array, " size"]

    def scaled(self, value: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
        """Convert physical values to units of order one."""
        shape = (1,) * (value.ndim - 1) + (-1,)
        return (value - self.offset.reshape(shape)) / self.scale.reshape(shape)

    def physical(self, value: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
        """Convert scaled values back to physical units."""
        shape = (1,) * (value.ndim - 1) + (-1,)
        return self.offset.reshape(shape) + self.scale.reshape(shape) * value


def fit_scaling(
    values: Float[np.ndarray, "rows size"], changes: Float[np.ndarray, "changes size"]
) -> Scaling:
    """Fit a scaling of observations that is suited to control.

    A channel is divided by the geometric mean of the standard deviations of its values and of
    its one-step changes. Divided by the former alone, the effect of an action would be too small
    in channels that move slowly over a wide range, such as positions.

    Args:
        values: The values of each channel.
        changes: Differences of consecutive rows.

    Returns:
        The scaling; a constant channel is only shifted.
    """
    spread, change = values.std(0), changes.std(0)
    still = _STILL * np.maximum(np.abs(values).max(0), 1.0)
    scale = np.sqrt(np.maximum(spread, still) * np.maximum(change, still))
    scale = np.where((spread <= still) | (change <= still), np.maximum(spread, 1.0), scale)
    return Scaling(jnp.asarray(values.mean(0), float), jnp.asarray(scale, float))


def limits_scaling(low: Float[np.ndarray, " size"], high: Float[np.ndarray, " size"]) -> Scaling:
    """Build the scaling that maps the range between two bounds to [-1, 1]."""
    return Scaling(jnp.asarray((low + high) / 2, float), jnp.asarray((high - low) / 2, float))
