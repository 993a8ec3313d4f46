"""What a laser range finder measures among discs in a box: every ray at once, in closed form."""

from typing import final

import numpy as np
from jaxtyping import Float


@final
class Lidar:
    """A range finder in the middle of each disc; it sees the walls and the other discs.

    Rays leave in fixed directions, the first along the x axis and the rest evenly
    around, anticlockwise. They do not turn with the disc.

    Args:
        num_rays: How many.
        side: The side of the box, whose lower left corner is the origin.
        radius: The radius of the discs.
    """

    def __init__(self, num_rays: int, *, side: float, radius: float):
        angles = 2 * np.pi * np.arange(num_rays) / num_rays
        directions = np.stack([np.cos(angles), np.sin(angles)])
        directions[np.abs(directions) < 1e-12] = 0.0  # along an axis, but for rounding
        self.directions = directions.T
        self._num_rays = num_rays
        self._square = radius**2
        self._frames = np.concatenate([directions, [-directions[1], directions[0]]], axis=1)
        self._walls = np.where(directions >= 0, side, 0.0)[:, None]  # the one ahead
        with np.errstate(divide="ignore"):  # a wall beside a ray is never reached
            self._inverse = (1 / directions)[:, None]

    def __call__(self, positions: Float[np.ndarray, "discs 2"]) -> Float[np.ndarray, "discs rays"]:
        """Measure how far each ray goes, from the middle of its disc.

        Args:
            positions: The middles of the discs, inside the box.

        Returns:
            For each disc the distance to what each of its rays meets first.
        """
        num_discs = len(positions)
        to_walls = (self._walls - positions.T[:, :, None]) * self._inverse
        between = (positions - positions[:, None]).reshape(-1, 2)
        turned = between @ self._frames  # how far along each ray, and how far beside it
        along, beside = turned[:, : self._num_rays], turned[:, self._num_rays :]
        inside = self._square - beside * beside
        # A disc is not ahead of its own rays, so that it does not see itself.
        meets = (inside >= 0) & (along > 0)
        ranges = np.where(meets, along - np.sqrt(np.maximum(inside, 0)), np.inf)
        to_discs = ranges.reshape(num_discs, num_discs, -1).min(axis=1)
        return np.maximum(np.minimum(to_discs, np.minimum(*to_walls)), 0)
