"""The paper's pendulum."""

import equinox as eqx
import jax.numpy as jnp

from empowerment.distributions import Gaussian, Uniform
from empowerment.types import Action, Scalar, State
from empowerment.worlds.base import AbstractWorld, Box, as_array


class Pendulum(AbstractWorld):
    r"""A torque-limited pendulum with friction; angle 0 is upright.

    Karl et al. (2018), App. A.2.2, in the paper's order of operations:

    $$\begin{aligned}
    u &\leftarrow \min(\max(u, u_\min), u_\max) \\
    \dot\theta &\leftarrow \dot\theta + \bigl(-\tfrac{3g}{2l}\sin(\theta + \pi)
        + \tfrac{3}{ml^2}(u - 0.05\,\dot\theta)\bigr)\Delta t \\
    \theta &\leftarrow \theta + \dot\theta\,\Delta t \\
    \dot\theta &\leftarrow \min(\max(\dot\theta, -8), 8)
    \end{aligned}$$

    The velocity is limited after the angle has moved with it; Gymnasium's pendulum
    limits it before, and has no friction. The angle is not wrapped.

    Deviation: the paper states no noise, and gives $-\sin(\theta + \pi)$, which is
    $\sin\theta$: so it is computed. Here the perceived state has the noise `resolution`.

    Args:
        resolution: The scale of the noise on what is perceived, on both coordinates.
        process_noise: The scale of the noise on every successor, on both coordinates.
        max_torque: The limit of the torque, $u_\max = -u_\min$.
        max_speed: The limit of the angular velocity.
        friction: The torque lost per unit of angular velocity.
        gravity: $g$.
        mass: $m$.
        length: $l$.
        interval: $\Delta t$.
    """

    resolution: Scalar = eqx.field(converter=as_array, default=0.05)
    process_noise: Scalar = eqx.field(converter=as_array, default=0.0)
    max_torque: Scalar = eqx.field(converter=as_array, default=2.0)
    max_speed: Scalar = eqx.field(converter=as_array, default=8.0)
    friction: Scalar = eqx.field(converter=as_array, default=0.05)
    gravity: Scalar = eqx.field(converter=as_array, default=10.0)
    mass: Scalar = eqx.field(converter=as_array, default=1.0)
    length: Scalar = eqx.field(converter=as_array, default=1.0)
    interval: Scalar = eqx.field(converter=as_array, default=0.05)

    @property
    def states(self) -> Box:
        """One full turn, at all velocities."""
        high = jnp.stack([as_array(jnp.pi), self.max_speed])
        return Box(-high, high, ("angle", "velocity"), angles=("angle",))

    @property
    def actions(self) -> Box:
        """Torques up to the limit."""
        return Box(-self.max_torque[None], self.max_torque[None], ("torque",))

    def initial(self) -> Uniform:
        """Return the initial distribution of Gymnasium's pendulum: any angle, low velocity."""
        speed = jnp.minimum(as_array(1.0), self.max_speed)
        high = jnp.stack([as_array(jnp.pi), speed])
        return Uniform(-high, high)

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the distribution of the state one interval later."""
        angle, velocity = state
        torque = jnp.clip(action[0], -self.max_torque, self.max_torque)
        fall = 1.5 * self.gravity / self.length * jnp.sin(angle)
        drive = 3 / (self.mass * self.length**2) * (torque - self.friction * velocity)
        velocity = velocity + (fall + drive) * self.interval
        angle = angle + velocity * self.interval
        velocity = jnp.clip(velocity, -self.max_speed, self.max_speed)
        successor = jnp.stack([angle, velocity])
        return Gaussian(successor, jnp.broadcast_to(self.process_noise, (2,)))

    def emission(self, state: State) -> Gaussian:
        """Return angle and velocity with noise of the resolution."""
        return Gaussian(state, jnp.broadcast_to(self.resolution, (2,)))
