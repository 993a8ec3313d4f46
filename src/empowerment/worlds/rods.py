r"""Rods on hinges: a chain that hangs from a pivot, and a pole on a cart."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.distributions import AbstractDistribution, Gaussian, Uniform
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds.base import AbstractWorld, Box, as_array

_RADIUS = 0.02
"""Radius of a rod, a capsule of its length and two half spheres."""

_AT_REST = 0.05
"""Largest offset of an initial state from rest; angles stay within half a turn."""


class Slow(AbstractDistribution):
    """Uniform positions; velocities uniform in a box that is shrunk by a random factor.

    A motion in four dimensions or more is rarely slow where velocities are uniform, and what a
    controller has to know best are slow states.
    """

    region: Box
    num_positions: int = eqx.field(static=True)

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample a state."""
        state_key, shrink_key = jax.random.split(key)
        state = self.region.uniform().sample(key=state_key)
        return state.at[self.num_positions :].multiply(jax.random.uniform(shrink_key))

    def log_prob(self, value: Float[Array, " size"]) -> Scalar:
        r"""Compute the log-density: $\int_m^1 s^{-n} ds$ with $m$ the largest share of a speed."""
        speeds = self.region.high[self.num_positions :]
        size = self.region.size - self.num_positions
        least = jnp.max(jnp.abs(value[self.num_positions :]) / speeds)
        shrunk = -jnp.log(least) if size == 1 else (least ** (1.0 - size) - 1) / (size - 1)
        return self.region.uniform().log_prob(value) + jnp.log(shrunk)


class Chain(AbstractWorld):
    r"""A chain of rods that hangs from a pivot, with motors at any of its hinges.

    States are the angles of the hinges, then their velocities; the first angle is that of the
    first rod with the vertical, each other one that with the rod before. All zero is upright, and
    positive angles turn to the left. With $\theta$ the sums of the angles, $\tau$ the torques,
    and $b_i$ the moments of the weights,

    $$\sum_j A_{ij} \bigl(\cos(\theta_i - \theta_j)\,\ddot\theta_j
    + \sin(\theta_i - \theta_j)\,\dot\theta_j^2\bigr) = \tau_i - \tau_{i+1} + g\,b_i \sin\theta_i$$

    integrated by the method of Runge and Kutta of fourth order while the action is held.

    Args:
        num_links: The number of rods.
        driven: The hinges with a motor, counted from the pivot.
        max_torque: The limit of the torque of each motor.
        damping: The torque that a hinge loses per unit of its velocity.
        mass: The mass of each rod.
        length: The length of each rod.
        gravity: $g$.
        max_speed: The velocities of the region of interest; the chain may turn faster.
        resolution: The scale of the noise on perceived angles.
        velocity_resolution: The scale of the noise on perceived velocities.
        interval: The duration of an action.
        substeps: The number of steps of the integrator in an interval; fast motions need more.
    """

    num_links: int = eqx.field(static=True, default=2)
    driven: tuple[int, ...] = eqx.field(static=True, default=(0,))
    max_torque: Scalar = eqx.field(converter=as_array, default=6.0)
    damping: Scalar = eqx.field(converter=as_array, default=0.5)
    mass: Scalar = eqx.field(converter=as_array, default=1.0)
    length: Scalar = eqx.field(converter=as_array, default=1.0)
    gravity: Scalar = eqx.field(converter=as_array, default=9.81)
    max_speed: Scalar = eqx.field(converter=as_array, default=10.0)
    resolution: Scalar = eqx.field(converter=as_array, default=0.1)
    velocity_resolution: Scalar = eqx.field(converter=as_array, default=0.5)
    interval: float = eqx.field(static=True, default=0.05)
    substeps: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        """Check that there are rods, and that the motors are at their hinges."""
        hinges = range(self.num_links)
        if not self.driven or sorted(set(self.driven) & set(hinges)) != list(self.driven):
            raise ValueError(
                "Expected the driven hinges to be at least one of "
                f"{', '.join(map(str, hinges)) or 'none'}, in order; got {self.driven}."
            )

    @property
    def states(self) -> Box:
        """Angles within half a turn, and velocities up to `max_speed`."""
        numbers = range(1, self.num_links + 1)
        high = jnp.repeat(jnp.stack([as_array(math.pi), self.max_speed]), self.num_links)
        angles = tuple(f"angle_{number}" for number in numbers)
        names = angles + tuple(f"velocity_{number}" for number in numbers)
        return Box(-high, high, names, angles=angles)

    @property
    def actions(self) -> Box:
        """Torques of the motors."""
        high = jnp.broadcast_to(self.max_torque, (len(self.driven),))
        return Box(-high, high, tuple(f"torque_{hinge + 1}" for hinge in self.driven))

    def initial(self) -> Uniform:
        """Return a chain that hangs nearly at rest."""
        hanging = jnp.zeros(2 * self.num_links).at[0].set(math.pi - _AT_REST)
        return Uniform(hanging - _AT_REST, hanging + _AT_REST)

    def state_distribution(self) -> Slow:
        """Return all angles, and velocities of which many are small."""
        return Slow(self.states, self.num_links)

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the state after an action; there is no process noise."""
        torque = jnp.clip(action, -self.max_torque, self.max_torque)
        moved = _held(
            lambda state: self._motion(state, torque), state, self.interval, self.substeps
        )
        return Gaussian(moved, jnp.zeros_like(moved))

    def emission(self, state: State) -> Gaussian:
        """Return angles and velocities with noise of their resolutions."""
        scales = jnp.stack([self.resolution, self.velocity_resolution])
        return Gaussian(state, jnp.repeat(scales, self.num_links))

    def height(self, state: State) -> Scalar:
        """Return the height of the tip: 0 hanging, 1 upright."""
        return 0.5 + 0.5 * jnp.cos(jnp.cumsum(state[: self.num_links])).mean()

    def _motion(self, state: State, torque: Action) -> State:
        """Return the derivative of a state with respect to time."""
        count = self.num_links
        velocities = state[count:]
        angles, speeds = jnp.cumsum(state[:count]), jnp.cumsum(velocities)
        # A_ij = m l^2 (rods beyond both + 1/2); on the diagonal the rod's own moment for the 1/2.
        further = count - 1 - np.maximum.outer(np.arange(count), np.arange(count))
        inertia = self.mass * self.length**2 * as_array(further + 0.5)
        own = _moment(self.mass, self.length) - 0.5 * self.mass * self.length**2
        inertia = inertia + own * jnp.eye(count)
        weights = self.mass * self.length * as_array(count - 0.5 - np.arange(count))
        offsets = angles[:, None] - angles[None, :]
        driving = -self.damping * velocities
        driving = driving.at[np.array(self.driven)].add(torque)
        reaction = jnp.concatenate([driving[1:], jnp.zeros(1)])
        centrifugal = (inertia * jnp.sin(offsets)) @ speeds**2
        force = driving - reaction - centrifugal + self.gravity * weights * jnp.sin(angles)
        accelerations = _solve(inertia * jnp.cos(offsets), force)
        return jnp.concatenate([velocities, jnp.diff(accelerations, prepend=0.0)])


class CartPole(AbstractWorld):
    r"""A pole on a cart that a force moves along a rail, held by a spring.

    States are position of the cart, angle of the pole (0 is upright, positive to the right), and
    their velocities.

    Args:
        max_force: The limit of the force on the cart.
        cart_mass: The mass of the cart.
        stiffness: The force of the spring per unit of distance from the middle of the rail.
        cart_damping: The force that the cart loses per unit of velocity.
        pole_mass: The mass of the pole.
        pole_length: The length of the pole.
        pole_damping: The torque that the hinge loses per unit of velocity.
        gravity: $g$.
        rail: Half the length of the rail: the region of interest; the cart may leave it.
        resolution: The scale of the noise on perceived position and angle.
        velocity_resolution: The scale of the noise on perceived velocities.
        interval: The duration of an action.
        substeps: The number of steps of the integrator in an interval; fast motions need more.
    """

    max_force: Scalar = eqx.field(converter=as_array, default=5.0)
    cart_mass: Scalar = eqx.field(converter=as_array, default=1.0)
    stiffness: Scalar = eqx.field(converter=as_array, default=5.0)
    cart_damping: Scalar = eqx.field(converter=as_array, default=1.0)
    pole_mass: Scalar = eqx.field(converter=as_array, default=0.5)
    pole_length: Scalar = eqx.field(converter=as_array, default=1.0)
    pole_damping: Scalar = eqx.field(converter=as_array, default=0.05)
    gravity: Scalar = eqx.field(converter=as_array, default=9.81)
    rail: Scalar = eqx.field(converter=as_array, default=3.0)
    resolution: Scalar = eqx.field(converter=as_array, default=0.1)
    velocity_resolution: Scalar = eqx.field(converter=as_array, default=0.5)
    interval: float = eqx.field(static=True, default=0.05)
    substeps: int = eqx.field(static=True, default=4)

    @property
    def states(self) -> Box:
        """The rail, all angles, and velocities that occur."""
        high = jnp.stack([self.rail, as_array(math.pi), as_array(5.0), as_array(10.0)])
        return Box(-high, high, ("position", "angle", "velocity", "turning"), angles=("angle",))

    @property
    def actions(self) -> Box:
        """Forces on the cart."""
        return Box(-self.max_force[None], self.max_force[None], ("force",))

    def initial(self) -> Uniform:
        """Return a pole that hangs nearly at rest in the middle of the rail."""
        hanging = jnp.zeros(4).at[1].set(math.pi - _AT_REST)
        return Uniform(hanging - _AT_REST, hanging + _AT_REST)

    def state_distribution(self) -> Slow:
        """Return all positions and angles, and velocities of which many are small."""
        return Slow(self.states, 2)

    def transition(self, state: State, action: Action) -> Gaussian:
        """Return the state after an action; there is no process noise."""
        force = jnp.clip(action[0], -self.max_force, self.max_force)
        moved = _held(lambda state: self._motion(state, force), state, self.interval, self.substeps)
        return Gaussian(moved, jnp.zeros_like(moved))

    def emission(self, state: State) -> Gaussian:
        """Return positions and velocities with noise of their resolutions."""
        scales = jnp.stack([self.resolution, self.velocity_resolution])
        return Gaussian(state, jnp.repeat(scales, 2))

    def height(self, state: State) -> Scalar:
        """Return the height of the tip: 0 hanging, 1 upright."""
        return 0.5 + 0.5 * jnp.cos(state[1])

    def _motion(self, state: State, force: Scalar) -> State:
        """Return the derivative of a state with respect to time."""
        position, angle, velocity, turning = state
        moment = 0.5 * self.pole_mass * self.pole_length
        coupling = moment * jnp.cos(angle)
        inertia = jnp.stack(
            [
                jnp.stack([self.cart_mass + self.pole_mass, coupling]),
                jnp.stack([coupling, _moment(self.pole_mass, self.pole_length)]),
            ]
        )
        pull = force - self.stiffness * position - self.cart_damping * velocity
        forces = jnp.stack(
            [
                pull + moment * jnp.sin(angle) * turning**2,
                self.gravity * moment * jnp.sin(angle) - self.pole_damping * turning,
            ]
        )
        return jnp.concatenate([state[2:], _solve(inertia, forces)])


def _held(motion: Callable[[State], State], state: State, interval: float, substeps: int) -> State:
    """Integrate a motion over an interval, by the method of Runge and Kutta of fourth order."""
    step = interval / substeps

    def advance(state: State, _: None) -> tuple[State, None]:
        first = motion(state)
        second = motion(state + 0.5 * step * first)
        third = motion(state + 0.5 * step * second)
        fourth = motion(state + step * third)
        return state + step / 6 * (first + 2 * second + 2 * third + fourth), None

    return jax.lax.scan(advance, state, length=substeps)[0]


def _moment(mass: Scalar, length: Scalar) -> Scalar:
    """Return the moment of inertia of a rod about its end."""
    ends = 4 / 3 * _RADIUS
    share = length / (length + ends)
    middle = length**2 / 12 + _RADIUS**2 / 4
    caps = 0.4 * _RADIUS**2 + length**2 / 4 + 3 / 8 * length * _RADIUS
    return mass * (share * middle + (1 - share) * caps + length**2 / 4)


def _solve(
    matrix: Float[Array, "size size"], vector: Float[Array, " size"]
) -> Float[Array, " size"]:
    """Solve a small, positive definite system by elimination, unrolled: a batch is one loop."""
    size = vector.size
    rows = [jnp.append(matrix[row], vector[row]) for row in range(size)]
    for pivot in range(size):
        for row in range(pivot + 1, size):
            rows[row] = rows[row] - rows[row][pivot] / rows[pivot][pivot] * rows[pivot]
    found: list[Scalar] = []
    for row in reversed(range(size)):
        rest = sum((rows[row][row + 1 + k] * value for k, value in enumerate(found)), start=0.0)
        found.insert(0, (rows[row][-1] - rest) / rows[row][row])
    return jnp.stack(found)
