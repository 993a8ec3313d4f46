"""Planning: distributions of plans given state and perceived successor."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from empowerment.channel.base import AbstractPlanning, Features
from empowerment.channel.flow import Coupling, Flow, transform
from empowerment.distributions import AbstractDistribution, FullGaussian, Gaussian
from empowerment.networks import Network, full
from empowerment.types import Key, Observation, Plan, Scalar


class Stepwise(AbstractDistribution):
    """Autoregressive Gaussian over actions, each conditioned on some preceding ones.

    Args:
        networks: One network per step, stacked, with {identity, exp} outputs.
        condition: The condition of every step.
        num_seen: The number of directly preceding actions that a step is conditioned on.
        steps: The number of actions in a plan.
    """

    networks: Network
    condition: Float[Array, " condition"]
    num_seen: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def _at(self, plan: Plan) -> tuple[Plan, Plan]:
        """Compute mean and scale of each action, all steps at once."""
        ago = np.arange(self.steps)[:, None] - np.arange(self.steps)[None, :]
        visible = (ago > 0) & (ago <= self.num_seen)
        seen = jnp.where(visible[:, :, None], plan[None], 0.0).reshape(self.steps, -1)
        condition = jnp.broadcast_to(self.condition, (self.steps, self.condition.size))
        outputs = eqx.filter_vmap(lambda network, inputs: network(inputs))(
            self.networks, jnp.concatenate([condition, seen], axis=1)
        )
        mean, log_scale = jnp.split(outputs, 2, axis=1)
        return mean, jnp.exp(log_scale)

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample action by action, by reparametrisation."""
        shape = self.steps, self.networks.layers[-1].weight.shape[1] // 2
        noise = jax.random.normal(key, shape, self.condition.dtype)

        def add(plan: Plan, step: Int[Array, ""]) -> tuple[Plan, None]:
            mean, scale = self._at(plan)
            return plan.at[step].set((mean + scale * noise)[step]), None

        return jax.lax.scan(add, jnp.zeros_like(noise), jnp.arange(self.steps))[0].ravel()

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-density of a flattened plan."""
        mean, scale = self._at(value.reshape(self.steps, -1))
        return Gaussian(mean.ravel(), scale.ravel()).log_prob(value)


class StepwisePlanning(AbstractPlanning):
    r"""Planning factorised over steps, each action conditioned on some preceding ones.

    $$q(u_{1:n}|z, x') = q(u_1|z, x') \prod_{k=2}^{n} q(u_k|z, x', u_{k-1})$$

    Karl et al. (2018), Sec. 2.5, where a step is conditioned on one action (`num_seen == 1`);
    conditioned on all preceding actions, the only restriction is that factors are Gaussian.

    Deviation: the product printed there runs to $k = n - 1$ and so has one factor too many,
    that of an action after the plan.
    """

    networks: Network
    num_seen: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features, successor: Observation) -> Stepwise:
        """Return the distribution of flattened plans."""
        condition = jnp.concatenate([features, successor])
        return Stepwise(self.networks, condition, self.num_seen, self.steps)


class FlowPlanning(AbstractPlanning):
    """A full Gaussian over the code, transformed by coupling layers if there are any."""

    network: Network
    layers: Coupling | None
    size: int = eqx.field(static=True)

    def __call__(self, features: Features, successor: Observation) -> FullGaussian | Flow:
        """Return the distribution of codes."""
        condition = jnp.concatenate([features, successor])
        return transform(full(self.network(condition), self.size), self.layers, condition)
