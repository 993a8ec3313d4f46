"""Systems that no default was chosen by, each held by a simple controller: a test of the defaults.

empower train --env benchmarks.balance:Beam-v0 --out RUN
"""

from abc import abstractmethod
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space

_GRAVITY = 9.81
_SUBSTEP = 0.005

Vector = np.ndarray


class Balance(gymnasium.Env):
    """A system that begins near rest and ends where its state leaves a box.

    Attributes:
        size: Axes of the state.
        limits: The box; an axis without an end has no limit.
        period: Seconds between two actions.
        gains: A linear controller that holds the system: action = rest - gains @ state.
        rest: Its action at rest.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    size: ClassVar[int]
    limits: ClassVar[tuple[float, ...]]
    period: ClassVar[float] = 0.02
    gains: ClassVar[tuple[tuple[float, ...], ...]]
    rest: ClassVar[float] = 0.0
    observation_space: Space[Any]
    action_space: Space[Any]

    def __init__(self) -> None:
        shown = self.observe(np.zeros(self.size))
        self.observation_space = Box(-np.inf, np.inf, shown.shape, np.float32)

    @abstractmethod
    def derivative(self, state: Vector, force: Vector) -> Vector:
        """Return how the state changes."""

    def force(self, action: Any) -> Vector:
        """Return what an action does, within its limits."""
        assert isinstance(self.action_space, Box)
        return np.clip(np.atleast_1d(action), self.action_space.low, self.action_space.high)

    def hold(self) -> Any:
        """Return the action of the linear controller."""
        assert isinstance(self.action_space, Box)
        wanted = self._wanted()
        return np.clip(wanted, self.action_space.low, self.action_space.high).astype(np.float32)

    def _wanted(self) -> Vector:
        return self.rest - np.array(self.gains) @ self.state

    def observe(self, state: Vector) -> Vector:
        """Return what of a state is seen."""
        return state.astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin nearly at rest."""
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.05, 0.05, self.size)
        return self.observe(self.state), {}

    def step(self, action: Any):
        """Advance; it ends outside the box."""
        force = self.force(action)
        for _ in range(round(self.period / _SUBSTEP)):
            self.state = self.state + _SUBSTEP * self.derivative(self.state, force)
        is_over = bool(np.any(np.abs(self.state) > np.array(self.limits)))
        return self.observe(self.state), 0.0, is_over, False, {}


class Beam(Balance):
    """A ball that rolls on a beam (position, speed); the beam's angle follows a motor."""

    size, limits = 3, (0.5, np.inf, 0.5)
    action_space = Box(-2.0, 2.0, (1,), np.float32)  # rad/s
    gains = ((-3.0, -3.0, 6.0),)

    def derivative(self, state: Vector, force: Vector) -> Vector:
        """A solid ball rolls with 5/7 of the acceleration of one that slides."""
        _, speed, angle = state
        return np.array([speed, -5 / 7 * _GRAVITY * np.sin(angle), force[0]])


class Quadrotor(Balance):
    """Two rotors in a plane (x, z, tilt and their speeds), 1 kg; each pushes up to 10 N."""

    size, limits = 6, (2.0, 2.0, 1.0, np.inf, np.inf, np.inf)
    action_space = Box(0.0, 10.0, (2,), np.float32)
    rest = _GRAVITY / 2
    gains = ((0.15, 2.0, -2.0, 0.25, 2.0, -0.6), (-0.15, 2.0, 2.0, -0.25, 2.0, 0.6))

    def derivative(self, state: Vector, force: Vector) -> Vector:
        """Arms of 0.2 m, inertia 0.02 kg m^2."""
        _, _, tilt, *speeds = state
        lift = force.sum()
        return np.array(
            [
                *speeds,
                -lift * np.sin(tilt),
                lift * np.cos(tilt) - _GRAVITY,
                0.2 * (force[1] - force[0]) / 0.02,
            ]
        )


class CoarseQuadrotor(Quadrotor):
    """The same, of which each rotor has three speeds."""

    action_space = MultiDiscrete([3, 3])

    def force(self, action: Any) -> Vector:
        """Off, half and full."""
        return 5.0 * np.asarray(action, float)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin nearly at rest, with nothing left over."""
        self._left = np.zeros(2)
        return super().reset(seed=seed, options=options)

    def hold(self) -> Any:
        """Return the speeds that come nearest, with what the last ones left over."""
        wanted = np.clip(self._wanted() + self._left, -10, 20)
        action = np.clip(np.round(wanted / 5), 0, 2)
        self._left = wanted - 5 * action
        return action.astype(int)


class Pole(Balance):
    """A pole on a cart (position, angle and their speeds), of which no speed is seen."""

    size, limits = 4, (2.4, 0.3, np.inf, np.inf)
    action_space = Box(-10.0, 10.0, (1,), np.float32)
    gains = ((-1.0, -30.0, -2.0, -6.0),)

    def derivative(self, state: Vector, force: Vector) -> Vector:
        """Cart 1 kg, pole 0.1 kg and 1 m."""
        _, angle, velocity, turning = state
        sin, cos = np.sin(angle), np.cos(angle)
        push = (force[0] + 0.05 * turning**2 * sin) / 1.1
        swing = (_GRAVITY * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        return np.array([velocity, turning, push - 0.05 * swing * cos / 1.1, swing])

    def observe(self, state: Vector) -> Vector:
        """Return position and angle."""
        return state[:2].astype(np.float32)


class QuickPole(Pole):
    """The same with all that there is to see, and left or right 200 times a second."""

    action_space = Discrete(2)
    period = 0.005

    def force(self, action: Any) -> Vector:
        """10 N to the left or to the right."""
        return np.array([20.0 * float(action) - 10.0])

    def hold(self) -> Any:
        """Return the side on which the wanted force is."""
        return int(self._wanted()[0] > 0)

    def observe(self, state: Vector) -> Vector:
        """Return the state."""
        return state.astype(np.float32)


class Wind(Balance):
    """A boat in gusts (position and speed along two axes), within four walls."""

    size, limits = 4, (1.0, 1.0, np.inf, np.inf)
    action_space = Box(-1.0, 1.0, (2,), np.float32)
    period = 0.1
    gains = ((2.0, 0.0, 2.0, 0.0), (0.0, 2.0, 0.0, 2.0))

    def derivative(self, state: Vector, force: Vector) -> Vector:
        """Gusts are drawn anew every 5 ms."""
        gust = self.np_random.normal(0.0, 0.3 / np.sqrt(_SUBSTEP), 2)
        return np.array([*state[2:], *(2.0 * force - 0.5 * state[2:] + gust)])


SYSTEMS: dict[str, tuple[type[Balance], int]] = {
    "Beam-v0": (Beam, 500),
    "Quadrotor-v0": (Quadrotor, 500),
    "CoarseQuadrotor-v0": (CoarseQuadrotor, 500),
    "Pole-v0": (Pole, 500),
    "QuickPole-v0": (QuickPole, 2000),
    "Wind-v0": (Wind, 300),
}
"""Systems by their id, each with the steps of an episode."""

for _name, (_system, _limit) in SYSTEMS.items():
    _made = f"{__name__}:{_system.__name__}"
    gymnasium.register(_name, entry_point=_made, max_episode_steps=_limit)
