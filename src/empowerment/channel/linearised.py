"""The linearised Gaussian channel as a family: a mean over plans, with nothing to train."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.capacity import gaussian_empowerment_along
from empowerment.channel.base import AbstractChannel, Estimate, Inputs
from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded

_MOST = 0.999
"""Largest share of the limits that an action of a plan has: before the squash it is finite."""


class Linearised(AbstractChannel):
    r"""The capacity of the channel linearised along plans, as a mean over uniform plans.

    An approximation (Salge et al., 2013), not a bound: the mean square of actions is limited
    rather than their size, and near a plan others count as if their effect were proportional to
    the difference. But no number of codes limits it, and it is differentiable: it serves
    capacities of ten nats and more.

    Deviation: Salge et al. linearise around no action alone. Where noise is small, the entropy of
    futures is that of plans plus the mean of $\log|\det G|$ over them, not its value at one plan;
    that of an unstable world is a needle at its equilibrium, and the mean is not.

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
        """Sample a plan whose actions are uniform within their limits."""
        return self.draw_many(state, 1, key=key)[0][0]

    def draw_many(
        self, state: State, count: int, *, key: Key
    ) -> tuple[Float[Array, "plans steps action"], Float[Array, " plans"]]:
        """Sample `count` plans, of equal weight."""
        del state
        shape = (count, self.steps, self.action_size)
        plans = jnp.arctanh(jax.random.uniform(key, shape, minval=-_MOST, maxval=_MOST))
        return plans, jnp.full(count, -math.log(count))

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Compute the capacity along one plan."""
        plan = self.draw(state, key=key)
        if isinstance(world, Bounded):
            # Powers count after the squash: before it, large actions would hardly have an effect.
            world, plan = world.world, jax.vmap(world.squash)(plan)
        return gaussian_empowerment_along(world, state, plan)

    def estimate(
        self, world: AbstractWorld, state: State, *, num_samples: int, key: Key
    ) -> Estimate:
        """Compute the mean of the capacity over plans."""
        keys = jax.random.split(key, num_samples)
        values = jax.vmap(lambda key: self.information(world, state, key=key))(keys)
        return Estimate.of(values)
