"""Units in which everything is of order one."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_STILL = 1e-6
"""Of its largest value, the spread below which a channel counts as constant."""


class Scaling(eqx.Module):
    """Takes values to order one, and back.

    Attributes:
        offset: What becomes zero.
        scale: What becomes one, added to it.
    """

    offset: Float[Array, " size"]
    scale: Float[Array, " size"]

    def scaled(self, value: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
        """Give values in units of order one."""
        shape = (1,) * (value.ndim - 1) + (-1,)
        return (value - self.offset.reshape(shape)) / self.scale.reshape(shape)

    def physical(self, value: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
        """Give values in the units that they came in."""
        shape = (1,) * (value.ndim - 1) + (-1,)
        return self.offset.reshape(shape) + self.scale.reshape(shape) * value


def fit_scaling(
    values: Float[np.ndarray, "rows size"], changes: Float[np.ndarray, "changes size"]
) -> Scaling:
    """Find the units that suit the control of what is observed.

    A channel is divided by the geometric mean of its spread and the spread of its change in one
    step: by its spread alone, what an action does would drown where a channel moves slowly over
    a wide range, as a position does.

    Args:
        values: Of each channel, over the data.
        changes: From one row to the next.

    Returns:
        The scaling; a channel that never changes is only shifted.
    """
    spread, change = values.std(0), changes.std(0)
    still = _STILL * np.maximum(np.abs(values).max(0), 1.0)
    scale = np.sqrt(np.maximum(spread, still) * np.maximum(change, still))
    scale = np.where((spread <= still) | (change <= still), np.maximum(spread, 1.0), scale)
    return Scaling(jnp.asarray(values.mean(0), float), jnp.asarray(scale, float))


def limits_scaling(low: Float[np.ndarray, " size"], high: Float[np.ndarray, " size"]) -> Scaling:
    """Take what lies between limits to the range from -1 to 1."""
    return Scaling(jnp.asarray((low + high) / 2, float), jnp.asarray((high - low) / 2, float))
