"""Simulated lidar among discs in a box: all rays at once, in closed form."""

from typing import final

import numpy as np
from jaxtyping import Float


@final
class Lidar:
    """Lidar at the centre of each disc, which measures ranges to walls and other discs.

    The directions of the rays are fixed, the first along the x axis and the rest evenly
    spaced, anticlockwise. They do not turn with the disc.

    Args:
        num_rays: The number of rays of a disc.
        side: The side of the box, whose lower left corner is the origin.
        radius: The radius of the discs.
    """

    def __init__(self, num_rays: int, *, side: float, radius: float):
        angles = 2 * np.pi * np.arange(num_rays) / num_rays
        directions = np.stack([np.cos(angles), np.sin(angles)])
        directions[np.abs(directions) < 1e-12] = 0.0  # along an axis, up to rounding
        self.directions = directions.T
        self._num_rays = num_rays
        self._square = radius**2
        self._frames = np.concatenate([directions, [-directions[1], directions[0]]], axis=1)
        self._walls = np.where(directions >= 0, side, 0.0)[:, None]  # in the direction of the ray
        with np.errstate(divide="ignore"):  # a ray never reaches a wall that it is parallel to
            self._inverse = (1 / directions)[:, None]

    def __call__(self, positions: Float[np.ndarray, "discs 2"]) -> Float[np.ndarray, "discs rays"]:
        """Compute the range of each ray, from the centre of its disc.

        Args:
            positions: The centres of the discs, inside the box.

        Returns:
            For each disc and ray the distance of the first wall or disc it hits.
        """
        num_discs = len(positions)
        to_walls = (self._walls - positions.T[:, :, None]) * self._inverse
        between = (positions - positions[:, None]).reshape(-1, 2)
        turned = between @ self._frames  # along each ray, and perpendicular to it
        along, beside = turned[:, : self._num_rays], turned[:, self._num_rays :]
        inside = self._square - beside * beside
        # The own centre is not ahead of a ray, so that a disc does not detect itself.
        meets = (inside >= 0) & (along > 0)
        ranges = np.where(meets, along - np.sqrt(np.maximum(inside, 0)), np.inf)
        to_discs = ranges.reshape(num_discs, num_discs, -1).min(axis=1)
        return np.maximum(np.minimum(to_discs, np.minimum(*to_walls)), 0)
