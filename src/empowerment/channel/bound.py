"""The variational lower bound on empowerment."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.channel.base import (
    AbstractChannel,
    AbstractPlanning,
    AbstractSource,
    Estimate,
    Inputs,
)
from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, perceive


class Channel(AbstractChannel):
    r"""A channel of a source and a planning distribution, the paper's $\theta = (\omega, q)$.

    Attributes:
        source: $\omega(u_{1:n}|z)$.
        planning: $q(u_{1:n}|z, x')$.
        inputs: The scaling of the inputs of both.
        steps: The number of actions $n$.
    """

    source: AbstractSource
    planning: AbstractPlanning
    inputs: Inputs
    steps: int = eqx.field(static=True)

    def draw(self, state: State, *, key: Key) -> Plan:
        """Sample a plan from the source."""
        features = self.inputs.features(state)
        return self.source.plan(features, self.source(features).sample(key=key))

    def draw_many(
        self, state: State, count: int, *, key: Key
    ) -> tuple[Float[Array, "plans steps action"], Float[Array, " plans"]]:
        """Sample `count` plans, of equal weight."""
        keys = jax.random.split(key, count)
        plans = jax.vmap(lambda key: self.draw(state, key=key))(keys)
        return plans, jnp.full(count, -math.log(count))

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        r"""Estimate the bound from one plan and its future, as in `information_bound`."""
        code_key, future_key = jax.random.split(key)
        features = self.inputs.features(state)
        code, log_source = self.source(features).sample_and_log_prob(key=code_key)
        plan = self.source.plan(features, code)
        successor = perceive(world, state, plan, key=future_key)
        relative = self.inputs.relative(world, state, successor, self.steps)
        return self.planning(features, relative).log_prob(code) - log_source

    def estimate(
        self, world: AbstractWorld, state: State, *, num_samples: int, key: Key
    ) -> Estimate:
        """Estimate the bound from many plans and their futures."""
        keys = jax.random.split(key, num_samples)
        return Estimate.of(jax.vmap(lambda key: self.information(world, state, key=key))(keys))


def information_bound(
    channel: AbstractChannel, world: AbstractWorld, state: State, *, key: Key
) -> Scalar:
    r"""Estimate the variational bound on mutual information from one sample.

    $$\hat{I}(x', u_{1:n} | z) = E\bigl[\ln q(u_{1:n}|z, x') - \ln \omega(u_{1:n}|z)\bigr]
    \le I(x', u_{1:n} | z)$$

    Karl et al. (2018), Eq. 3 (eq:vi_bound). The gap is the mean divergence of planning
    from the true posterior, Eq. 4 (eq:gap). Differentiable in the state and in the channel,
    by reparametrisation.

    Deviation: $x'$ is the perceived successor, and plans have any length; the source may
    sample a code for a plan and planning decodes the code, which bounds the same information
    by the data-processing inequality.

    Args:
        channel: Source and planning.
        world: A world whose actions live before the squash (`Bounded`).
        state: The state $z$.
        key: Consumed.

    Returns:
        An unbiased estimate of the bound, in nats.
    """
    return channel.information(world, state, key=key)
