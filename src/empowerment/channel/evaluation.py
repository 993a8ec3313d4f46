"""The bound of a channel at many states."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from empowerment.channel.base import AbstractChannel
from empowerment.channel.bound import empowerment
from empowerment.types import Scalar, State
from empowerment.worlds import AbstractWorld


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
        return empowerment(channel, world, state, num_samples=num_samples, key=key).value

    return jax.lax.map(of_state, (states, keys), batch_size=batch_size)
