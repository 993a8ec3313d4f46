"""The ball in a box, in closed form."""

import equinox as eqx
import jax.numpy as jnp

from empowerment.distributions import Gaussian, Uniform
from empowerment.types import Action, Scalar, State
from empowerment.worlds.base import AbstractWorld, Box, as_array


class Ball(AbstractWorld):
    """A ball in a square box, moved by adding the control to its position.

    Karl et al. (2018), Sec. 4.2. The walls absorb the part of a move that is
    perpendicular to them: the ball slides along a wall and does not bounce.

    Deviation: the paper simulates the ball with Box2D and states neither the size of the
    box nor of a move; here the motion is in closed form, so that the exact empowerment
    is known.

    Args:
        resolution: The scale of the noise on the perceived position, on both axes.
        process_noise: The scale of the noise on every successor, on both axes.
        max_step: The longest move along each axis.
        side: The side of the square in which the centre of the ball moves.
    """

    resolution: Scalar = eqx.field(converter=as_array, default=0.05)
    process_noise: Scalar = eqx.field(converter=as_array, default=0.0)
    max_step: Scalar = eqx.field(converter=as_array, default=1.0)
    side: Scalar = eqx.field(converter=as_array, default=10.0)

    @property
    def states(self) -> Box:
        """The whole box."""
        return Box(jnp.zeros(2), jnp.broadcast_to(self.side, (2,)), ("x", "y"))

    @property
    def actions(self) -> Box:
        """Moves of at most `max_step` along each axis."""
        high = jnp.broadcast_to(self.max_step, (2,))
        return Box(-high, high, ("move_x", "move_y"))

    def initial(self) -> Uniform:
        """Return the uniform distribution over the box."""
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the distribution of the position after a move, clipped at the walls."""
        move = jnp.clip(action, -self.max_step, self.max_step)
        position = jnp.clip(state + move, 0, self.side)
        return Gaussian(position, jnp.broadcast_to(self.process_noise, (2,)))

    def emission(self, state: State) -> Gaussian:
        """Return the position with noise of the resolution."""
        return Gaussian(state, jnp.broadcast_to(self.resolution, (2,)))
