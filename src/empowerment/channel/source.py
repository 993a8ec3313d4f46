"""Sources: distributions of plans given the state."""

import equinox as eqx
import jax.numpy as jnp

from empowerment.channel.base import AbstractSource, Code, Features
from empowerment.channel.flow import Coupling, Flow, transform
from empowerment.distributions import FullGaussian, Gaussian
from empowerment.networks import Network, diagonal, full
from empowerment.types import Plan


class DiagonalSource(AbstractSource):
    r"""Independent Gaussians over all actions of a plan, from one network.

    Karl et al. (2018), Sec. 2.5 and App. A.3.1: $\omega(u_{1:n}|z) =
    \mathcal{N}(\mu(z), \mathrm{diag}\,\sigma^2(z))$.
    """

    network: Network
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features) -> Gaussian:
        """Return the distribution of flattened plans."""
        return diagonal(self.network(features))

    def plan(self, features: Features, code: Code) -> Plan:
        """Reshape the code, which is the plan."""
        del features
        return code.reshape(self.steps, -1)


class FlowSource(AbstractSource):
    """A full Gaussian over all actions, transformed by coupling layers if there are any."""

    network: Network
    layers: Coupling | None
    size: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features) -> FullGaussian | Flow:
        """Return the distribution of flattened plans."""
        return transform(full(self.network(features), self.size), self.layers, features)

    def plan(self, features: Features, code: Code) -> Plan:
        """Reshape the code, which is the plan."""
        del features
        return code.reshape(self.steps, -1)


class IntentSource(AbstractSource):
    r"""A network from intents to plans, $u_{1:n} = g(z, w)$, $w \sim \mathcal{N}(0, I)$.

    Deviation: the paper's source is a density over plans. Here planning infers the intent,
    which has no more axes than the observation; $I(w; x') \le I(u_{1:n}; x')$ by data
    processing, with equality if there is one plan for each reachable successor.
    """

    network: Network
    intent_size: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __call__(self, features: Features) -> Gaussian:
        """Return the distribution of intents, standard normal at every state."""
        mean = jnp.zeros_like(features, shape=(self.intent_size,))
        return Gaussian(mean, jnp.ones_like(mean))

    def plan(self, features: Features, code: Code) -> Plan:
        """Return the plan of an intent."""
        return self.network(jnp.concatenate([features, code])).reshape(self.steps, -1)
