"""Sources: how plans are drawn."""

import equinox as eqx
import jax.numpy as jnp

from empowerment.channel.base import AbstractSource, Code, Features
from empowerment.channel.flow import Coupling, Flow, bend
from empowerment.distributions import FullGaussian, Gaussian
from empowerment.networks import Network, diagonal, full
from empowerment.types import Plan


class DiagonalSource(AbstractSource):
    r"""One network that gives independent Gaussians over all actions of a plan.

    Karl et al. (2018), Sec. 2.5 and App. A.3.1: $\omega(u_{1:n}|z) =
    \mathcal{N}(\mu(z), \mathrm{diag}\,\sigma^2(z))$.
    """

    network: Network
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features) -> Gaussian:
        """Give the distribution of plans, flattened."""
        return diagonal(self.network(features))

    def plan(self, features: Features, code: Code) -> Plan:
        """Give the code, which is the plan."""
        del features
        return code.reshape(self.steps, -1)


class FlowSource(AbstractSource):
    """A Gaussian with full covariance over all actions, bent by coupling layers if any."""

    network: Network
    layers: Coupling | None
    size: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features) -> FullGaussian | Flow:
        """Give the distribution of plans, flattened."""
        return bend(full(self.network(features), self.size), self.layers, features)

    def plan(self, features: Features, code: Code) -> Plan:
        """Give the code, which is the plan."""
        del features
        return code.reshape(self.steps, -1)


class IntentSource(AbstractSource):
    r"""A network that makes a plan of an intent, $u_{1:n} = g(z, w)$, $w \sim \mathcal{N}(0, I)$.

    Deviation: the paper's source is a density over plans. Planning reads the intent, which
    has no more axes than what is perceived; $I(w; x') \le I(u_{1:n}; x')$ by data processing,
    and one plan for each reachable successor is enough to lose nothing.
    """

    network: Network
    intent_size: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features) -> Gaussian:
        """Give the distribution of intents: it is the same everywhere."""
        mean = jnp.zeros_like(features, shape=(self.intent_size,))
        return Gaussian(mean, jnp.ones_like(mean))

    def plan(self, features: Features, code: Code) -> Plan:
        """Give the plan of an intent."""
        return self.network(jnp.concatenate([features, code])).reshape(self.steps, -1)
