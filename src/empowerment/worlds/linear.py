"""Linear-Gaussian systems."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import AbstractDistribution, Gaussian
from empowerment.types import Action, State
from empowerment.worlds.base import AbstractWorld, Box, as_array


class LinearGaussian(AbstractWorld):
    r"""A linear system with Gaussian noise.

    $$z' = A z + B u + \varepsilon,\; \varepsilon \sim \mathcal{N}(0, \mathrm{diag}\,q^2),
    \qquad x = C z + \eta,\; \eta \sim \mathcal{N}(0, \mathrm{diag}\,r^2)$$

    Args:
        dynamics: $A$.
        control: $B$.
        observation: $C$.
        process_noise: $q$, one scale for each coordinate of the state.
        resolution: $r$, one scale for each coordinate of the observation.
        states: The region of interest; initial states are uniform in it.
        actions: The admissible actions; they may be unbounded.
    """

    dynamics: Float[Array, "state state"] = eqx.field(converter=as_array)
    control: Float[Array, "state action"] = eqx.field(converter=as_array)
    observation: Float[Array, "observation state"] = eqx.field(converter=as_array)
    process_noise: Float[Array, " state"] = eqx.field(converter=as_array)
    resolution: Float[Array, " observation"] = eqx.field(converter=as_array)
    states: Box
    actions: Box

    def initial(self) -> AbstractDistribution:
        """Return the uniform distribution over `states`."""
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the distribution of the linear successor."""
        return Gaussian(self.dynamics @ state + self.control @ action, self.process_noise)

    def emission(self, state: State) -> Gaussian:
        """Return the distribution of the linear observation."""
        return Gaussian(self.observation @ state, self.resolution)


def double_integrator(resolution: float = 0.05) -> LinearGaussian:
    """Build a cart on a rail: position and velocity, moved by a bounded force.

    Args:
        resolution: The scale of the noise on the perceived state, on both coordinates.

    Returns:
        The world, with steps of 0.1 s and a force of at most 1.
    """
    interval = 0.1
    return LinearGaussian(
        dynamics=jnp.array([[1.0, interval], [0.0, 1.0]]),
        control=jnp.array([[0.5 * interval**2], [interval]]),
        observation=jnp.eye(2),
        process_noise=jnp.zeros(2),
        resolution=jnp.full((2,), resolution),
        states=Box((-1.0, -1.0), (1.0, 1.0), ("position", "velocity")),
        actions=Box((-1.0,), (1.0,), ("force",)),
    )
