"""Balls that push each other in a box, simulated by Box2D: a system of several agents."""

import math
from collections.abc import Mapping
from typing import Any, final

import gymnasium
import numpy as np
from jaxtyping import Bool, Float, Shaped

from empowerment.environments import box2d, painters
from empowerment.environments.box2d import INTERVAL, MAX_SPEED, OVERLAP, RADIUS, SKIN, build, push
from empowerment.environments.canvas import Frame
from empowerment.environments.lidar import Lidar
from empowerment.environments.validation import (
    LARGEST,
    check_options,
    check_render_mode,
    finite_array,
)

NUM_RAYS = 40
OBSERVATION_SIZE = 4 + NUM_RAYS
"""Per ball: two positions, two velocities, and the ranges of its lidar."""
ACTION_SIZE = 2
OPTIONS = ("positions", "velocities")
"""The options of `reset`."""

_MAX_COVER = 0.4
"""Largest covered fraction of the floor at which rejection sampling of the starts is fast."""


def per_ball(
    values: Shaped[np.ndarray, "*batch joint"], num_balls: int
) -> Shaped[np.ndarray, "*batch balls each"]:
    """View joint observations or actions ball by ball.

    Args:
        values: Those of all balls, concatenated.
        num_balls: The number of balls.

    Returns:
        The same numbers with an axis for the balls: 44 observations or 2 forces each.
    """
    return values.reshape(*values.shape[:-1], num_balls, values.shape[-1] // num_balls)


def joint(values: Shaped[np.ndarray, "*batch balls each"]) -> Shaped[np.ndarray, "*batch joint"]:
    """Concatenate the observations or actions of all balls, the inverse of `per_ball`.

    Args:
        values: Observations or actions with an axis for the balls.

    Returns:
        The same numbers, concatenated.
    """
    return values.reshape(*values.shape[:-2], values.shape[-2] * values.shape[-1])


@final
class BallsEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Balls in a box without gravity, each driven by its own force; collisions are inelastic.

    A ball observes its position, its velocity, and 40 lidar ranges from its centre to the
    walls and the other balls, the first along the x axis and the rest anticlockwise. Its
    spin, which friction changes, is not observed.

    Observations and actions are joint, those of one ball after the other: `per_ball` splits
    them and `joint` concatenates them, so that every ball can have its own agent, within
    `single_observation_space` and `single_action_space`. The reward is always zero and
    `terminated` always false.

    `reset` accepts `options={"positions": ..., "velocities": ...}`, each with a row for each
    ball; without positions the balls are placed at random without overlap, without
    velocities they are at rest. The info of each step and reset has

    - `wall_touches`: for each ball, whether it is in contact with a wall,
    - `contacts`: the number of pairs of balls in contact,
    - `wall_distances`: for each ball, the distance of its rim from the nearest wall,
    - `pair_distances`: for each pair, the distance between their centres.

    Contact is Box2D's: a rim within 0.01 of a wall, two centres within a diameter.

    Deviation: the paper names inelastic collisions, density, friction and radius; the box,
    the force and the interval are ours.

    Args:
        num_balls: The number of balls.
        side: The side of the box.
        max_force: The limit of the force along each axis; larger forces are clipped.
        show_lidar_of: The index of the ball whose rays are drawn, or None for no rays.
        render_mode: `"rgb_array"`, or None for no rendering.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium's convention)
        "render_modes": ["rgb_array"],
        "render_fps": round(1 / INTERVAL),
    }

    action_space: gymnasium.spaces.Box
    observation_space: gymnasium.spaces.Box

    def __init__(
        self,
        num_balls: int = 4,
        *,
        side: float = 10.0,
        max_force: float = 60.0,
        show_lidar_of: int | None = None,
        render_mode: str | None = None,
    ):
        box2d.load()  # Where it is not installed, say so now.
        check_render_mode(render_mode, self.metadata["render_modes"])
        _check_sizes(num_balls, side, max_force, show_lidar_of)
        self.num_balls, self.side, self.render_mode = num_balls, float(side), render_mode
        low = np.array([0, 0, -LARGEST, -LARGEST] + [0] * NUM_RAYS, np.float32)
        high = [side, side, LARGEST, LARGEST] + [math.sqrt(2) * side] * NUM_RAYS
        self.single_observation_space = gymnasium.spaces.Box(low, np.array(high, np.float32))
        force = np.full(ACTION_SIZE, max_force, np.float32)
        self.single_action_space = gymnasium.spaces.Box(-force, force)
        self.observation_space = _repeat(self.single_observation_space, num_balls)
        self.action_space = _repeat(self.single_action_space, num_balls)
        self._lidar = Lidar(NUM_RAYS, side=self.side, radius=RADIUS)
        self._pairs = np.triu_indices(num_balls, 1)
        self._show_lidar_of = show_lidar_of
        self._world: Any = None
        self._bodies: list[Any] = []
        self._action: np.ndarray | None = None

    @property
    def dt(self) -> float:
        """Seconds from one action to the next."""
        return INTERVAL

    @property
    def state(self) -> Float[np.ndarray, "balls 4"]:
        """The two positions and two velocities of each ball."""
        self._check_reset()
        places = ((body.position, body.linearVelocity) for body in self._bodies)
        return np.array([(p.x, p.y, v.x, v.y) for p, v in places])

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " observation"], dict[str, Any]]:
        """Start an episode from random or given positions.

        Args:
            seed: Random seed of the positions from here on; nothing else is random.
            options: Initial `"positions"` and `"velocities"`, both optional.

        Returns:
            The first joint observation, and the info.
        """
        super().reset(seed=seed)
        check_options(options, OPTIONS)
        start, shape = options or {}, (self.num_balls, 2)
        positions, velocities = start.get("positions"), start.get("velocities")
        if positions is None:
            positions = self._scatter()
        else:
            positions = finite_array("the start positions", positions, shape, np.float64)
            self._check_places(positions)
        if velocities is None:
            velocities = np.zeros(shape)
        else:
            velocities = finite_array("the start velocities", velocities, shape, np.float64)
            if np.abs(velocities).max() > MAX_SPEED:
                raise ValueError(
                    f"Expected the start velocities to be at most {MAX_SPEED:g}; "
                    f"got {velocities.tolist()}."
                )
        # A new world: the contact cache of the old one would affect the new episode.
        self._world, self._bodies = build(self.side, positions, velocities)
        self._action = None
        return self._observe()

    def step(
        self, action: Any
    ) -> tuple[Float[np.ndarray, " observation"], float, bool, bool, dict[str, Any]]:
        """Apply forces to all balls for one step.

        Args:
            action: The forces, x and y of one ball after the other, all finite.

        Returns:
            Observation, reward, terminated, truncated and info.
        """
        self._check_reset()
        space = self.action_space
        checked = finite_array("the action", action, space.shape, np.float32)
        forces = per_ball(np.clip(checked, space.low, space.high), self.num_balls)
        push(self._world, self._bodies, forces)
        self._action = forces
        observation, info = self._observe()
        return observation, 0.0, False, False, info

    def render(self) -> Frame | None:
        """Draw the balls, the forces on them, and the rays of one ball if requested."""
        if self.render_mode is None:
            gymnasium.logger.warn("No render mode: make it with render_mode='rgb_array'.")
            return None
        positions, observer = self.state[:, :2], self._show_lidar_of
        rays = None
        if observer is not None:
            ranges = self._lidar(positions)[observer]
            rays = positions[observer] + ranges[:, None] * self._lidar.directions
        forces = None if self._action is None else self._action / self.single_action_space.high
        return painters.balls(
            positions, forces, side=self.side, radius=RADIUS, observer=observer, rays=rays
        )

    def _check_reset(self) -> None:
        if self._world is None:
            raise gymnasium.error.ResetNeeded(
                "Expected the environment to be reset before it is used; call `reset`."
            )

    def _observe(self) -> tuple[Float[np.ndarray, " observation"], dict[str, Any]]:
        """Return the joint observation, and the info."""
        state = self.state
        positions = state[:, :2]
        observations = np.concatenate([state, self._lidar(positions)], axis=1, dtype=np.float32)
        walls, pairs = self._distances(positions)
        touches: Bool[np.ndarray, " balls"] = walls <= SKIN
        info = {
            "wall_touches": touches,
            "contacts": int((pairs <= 2 * RADIUS).sum()),
            "wall_distances": walls,
            "pair_distances": pairs,
        }
        return joint(observations), info

    def _distances(
        self, positions: Float[np.ndarray, "balls 2"]
    ) -> tuple[Float[np.ndarray, " balls"], Float[np.ndarray, " pairs"]]:
        """Measure distances from rims to the nearest walls, and between the centres of pairs."""
        walls = np.minimum(positions, self.side - positions).min(axis=1) - RADIUS
        first, second = self._pairs
        offsets = positions[first] - positions[second]
        return walls, np.hypot(offsets[:, 0], offsets[:, 1])

    def _scatter(self) -> Float[np.ndarray, "balls 2"]:
        """Sample positions without overlap, one ball after the other."""
        while True:  # rarely, the first balls leave the last no room
            places = np.empty((0, 2))
            while len(places) < self.num_balls:
                tries = self.np_random.uniform(RADIUS, self.side - RADIUS, (64, 2))
                offsets = tries[:, None] - places
                free = np.hypot(offsets[..., 0], offsets[..., 1]).min(axis=1, initial=np.inf)
                accepted = tries[free >= 2 * RADIUS]
                if not len(accepted):
                    break
                places = np.concatenate([places, accepted[:1]])
            else:
                return places

    def _check_places(self, positions: Float[np.ndarray, "balls 2"]) -> None:
        """Check that no ball overlaps a wall or another ball."""
        walls, pairs = self._distances(positions)
        if walls.min() < -OVERLAP or pairs.min(initial=np.inf) < 2 * RADIUS - OVERLAP:
            raise ValueError(
                f"Expected the start positions to be at least {RADIUS:g} from the walls and "
                f"{2 * RADIUS:g} from one another in a box of side {self.side:g}; "
                f"got {positions.tolist()}."
            )


def _repeat(space: gymnasium.spaces.Box, times: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(np.tile(space.low, times), np.tile(space.high, times))


def _check_sizes(num_balls: int, side: float, max_force: float, show_lidar_of: int | None) -> None:
    if isinstance(num_balls, bool) or not isinstance(num_balls, int) or num_balls < 1:
        raise ValueError(f"Expected num_balls to be a whole number from 1; got {num_balls!r}.")
    for name, value in (("side", side), ("max_force", max_force)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"Expected {name} to be positive and finite; got {value!r}.")
    least = RADIUS * math.sqrt(num_balls * math.pi / _MAX_COVER)
    if side < least:
        raise ValueError(
            f"Expected side to be at least {math.ceil(100 * least) / 100:g}, so that "
            f"{num_balls} balls have room; got {side!r}."
        )
    if show_lidar_of is not None and show_lidar_of not in range(num_balls):
        raise ValueError(
            f"Expected show_lidar_of to be None or the index of one of {num_balls} balls; "
            f"got {show_lidar_of!r}."
        )
