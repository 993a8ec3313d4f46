"""Planning: which plan may have led to a future."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from empowerment.channel.base import AbstractPlanning, Features
from empowerment.channel.flow import Coupling, Flow, bend
from empowerment.distributions import AbstractDistribution, FullGaussian, Gaussian
from empowerment.networks import Network, full
from empowerment.types import Key, Observation, Plan, Scalar


class Stepwise(AbstractDistribution):
    """Actions one after the other, each Gaussian given those before it that it may see.

    Args:
        networks: One for each step, stacked; each gives {identity, exp}.
        condition: What every step sees.
        num_seen: How many of the actions just before it a step sees.
    """

    networks: Network
    condition: Float[Array, " condition"]
    num_seen: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def _at(self, plan: Plan) -> tuple[Plan, Plan]:
        """Give the mean and the scale of each action, all steps at once."""
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
        """Draw action by action, by reparametrisation."""
        shape = self.steps, self.networks.layers[-1].weight.shape[1] // 2
        noise = jax.random.normal(key, shape, self.condition.dtype)

        def add(plan: Plan, step: Int[Array, ""]) -> tuple[Plan, None]:
            mean, scale = self._at(plan)
            return plan.at[step].set((mean + scale * noise)[step]), None

        return jax.lax.scan(add, jnp.zeros_like(noise), jnp.arange(self.steps))[0].ravel()

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the log-density at a plan, flattened."""
        mean, scale = self._at(value.reshape(self.steps, -1))
        return Gaussian(mean.ravel(), scale.ravel()).log_prob(value)


class StepwisePlanning(AbstractPlanning):
    r"""Planning factorised over steps, each action given some of those before it.

    $$q(u_{1:n}|z, x') = q(u_1|z, x') \prod_{k=2}^{n} q(u_k|z, x', u_{k-1})$$

    Karl et al. (2018), Sec. 2.5, where a step sees one action (`num_seen == 1`); if it sees
    all before it, nothing is lost but the Gaussian shape.

    Deviation: the product printed there runs to $k = n - 1$ and so has one factor too many,
    that of an action after the plan.
    """

    networks: Network
    num_seen: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features, successor: Observation) -> Stepwise:
        """Give the distribution of plans, flattened."""
        condition = jnp.concatenate([features, successor])
        return Stepwise(self.networks, condition, self.num_seen, self.steps)


class FlowPlanning(AbstractPlanning):
    """A Gaussian with full covariance over the code, bent by coupling layers if any."""

    network: Network
    layers: Coupling | None
    size: int = eqx.field(static=True)

    def __call__(self, features: Features, successor: Observation) -> FullGaussian | Flow:
        """Give the distribution of codes."""
        condition = jnp.concatenate([features, successor])
        return bend(full(self.network(condition), self.size), self.layers, condition)
