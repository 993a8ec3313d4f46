"""A pole on a cart with a continuous force, as an environment of a user's own would be.

empower train --env benchmarks.cartpole:ContinuousCartPole-v0 --out RUN
"""

from typing import Any, ClassVar

import gymnasium
import numpy as np

_CART, _POLE, _HALF_LENGTH, _GRAVITY = 1.0, 0.1, 0.5, 9.81
_FORCE, _SUBSTEP, _NUM_SUBSTEPS = 10.0, 0.01, 2
_LARGEST_ANGLE, _RAIL = 0.4, 2.4


class ContinuousCartPole(gymnasium.Env):
    """The cart-pole of Barto, Sutton and Anderson (1983), pushed with up to 10 N for 20 ms."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-_FORCE, _FORCE, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin nearly at rest and upright."""
        super().reset(seed=seed)
        self._state = self.np_random.uniform(-0.05, 0.05, 4)
        return self._state.astype(np.float32), {}

    def step(self, action: np.ndarray):
        """Advance by 20 ms; it ends where the pole leans too far, or the cart leaves the rail."""
        force = float(np.clip(action[0], -_FORCE, _FORCE))
        x, velocity, angle, turning = self._state
        for _ in range(_NUM_SUBSTEPS):
            sin, cos, mass = np.sin(angle), np.cos(angle), _CART + _POLE
            push = (force + _POLE * _HALF_LENGTH * turning * turning * sin) / mass
            swing = (_GRAVITY * sin - cos * push) / (_HALF_LENGTH * (4 / 3 - _POLE * cos**2 / mass))
            velocity += _SUBSTEP * (push - _POLE * _HALF_LENGTH * swing * cos / mass)
            x += _SUBSTEP * velocity
            turning += _SUBSTEP * swing
            angle += _SUBSTEP * turning
        self._state = np.array([x, velocity, angle, turning])
        is_over = bool(abs(angle) > _LARGEST_ANGLE or abs(x) > _RAIL)
        return self._state.astype(np.float32), 0.0, is_over, False, {}


gymnasium.register(
    "ContinuousCartPole-v0", entry_point=f"{__name__}:ContinuousCartPole", max_episode_steps=400
)
