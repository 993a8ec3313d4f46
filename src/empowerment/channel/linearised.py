"""The linearised Gaussian channel as a family: in closed form, with nothing to train."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.capacity import UNIFORM_POWER, gaussian_empowerment
from empowerment.channel.base import AbstractChannel, Estimate, Inputs
from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import AbstractWorld


class Linearised(AbstractChannel):
    """The capacity of the channel linearised around the centre of the actions.

    An approximation (Salge et al., 2013), not a bound: the mean square of actions is limited
    rather than their size, and a plan counts as if its effect were proportional to it. But no
    number of codes limits it, and it is differentiable: it serves capacities of ten nats and more.

    Attributes:
        inputs: The scaling of network inputs, of which there are none.
        steps: The number of actions.
        action_size: The number of axes of an action.
    """

    inputs: Inputs
    steps: int = eqx.field(static=True)
    action_size: int = eqx.field(static=True)
    is_bound: ClassVar[bool] = False
    is_trained: ClassVar[bool] = False

    def draw(self, state: State, *, key: Key) -> Plan:
        """Sample actions of the power that the capacity allows, equally in all directions."""
        return self.draw_many(state, 1, key=key)[0][0]

    def draw_many(
        self, state: State, count: int, *, key: Key
    ) -> tuple[Float[Array, "plans steps action"], Float[Array, " plans"]]:
        """Sample `count` plans, of equal weight."""
        del state
        shape = (count, self.steps, self.action_size)
        plans = math.sqrt(UNIFORM_POWER) * jax.random.normal(key, shape)
        return plans, jnp.full(count, -math.log(count))

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Compute the capacity."""
        del key
        return gaussian_empowerment(world, state, steps=self.steps)

    def estimate(
        self, world: AbstractWorld, state: State, *, num_samples: int, key: Key
    ) -> Estimate:
        """Compute the capacity; there is nothing to sample."""
        return Estimate(self.information(world, state, key=key), jnp.zeros(()))
