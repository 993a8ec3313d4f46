"""A small rasteriser in NumPy: anti-aliased discs, lines and rectangles.

Every shape is a signed distance, negative inside; the coverage of a pixel falls from one to
zero over one pixel across the edge.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, UInt8

Colour = tuple[float, float, float]
"""Red, green and blue, from zero to one."""

Number = float | int
"""beartype, unlike a type checker, does not accept an int as a float."""

Point = tuple[Number, Number]
"""World coordinates: x to the right, y upwards."""

Frame = UInt8[np.ndarray, "height width 3"]
"""An image, top row first."""

PAPER: Colour = (0.965, 0.965, 0.955)
FLOOR: Colour = (1.0, 1.0, 1.0)
SHADE: Colour = (0.87, 0.88, 0.89)
STEEL: Colour = (0.62, 0.65, 0.69)
INK: Colour = (0.17, 0.19, 0.23)
ACCENT: Colour = (0.90, 0.36, 0.16)

SIDE_MULTIPLE = 16
"""Video encoders need frames whose sides are multiples of this."""


class Canvas:
    """Image to paint on in world coordinates; pixels are square.

    Args:
        height: The number of rows, a multiple of 16.
        width: The number of columns, a multiple of 16.
        view_height: The height of the view in world coordinates.
        centre: The centre of the view.
    """

    def __init__(self, height: int, width: int, *, view_height: float, centre: Point = (0.0, 0.0)):
        if height % SIDE_MULTIPLE or width % SIDE_MULTIPLE or min(height, width) <= 0:
            raise ValueError(
                f"Expected the sides of a canvas to be multiples of {SIDE_MULTIPLE}; "
                f"got {height} and {width}."
            )
        self._scale = height / view_height
        x = centre[0] + (np.arange(width) + 0.5 - width / 2) / self._scale
        y = centre[1] - (np.arange(height) + 0.5 - height / 2) / self._scale
        # Single precision is finer than a pixel, and twice as fast.
        self._x, self._y = x.astype(np.float32), y.astype(np.float32)
        self._pixels = np.full((height, width, 3), PAPER, np.float32)

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """Paint a disc."""

        def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.hypot(x - centre[0], y - centre[1]) - radius

        self._paint([centre], radius, distance, colour)

    def line(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """Paint a line through points, with round ends and joints."""

        def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            parts = [_to_segment(x, y, *ends) for ends in itertools.pairwise(points)]
            return np.minimum.reduce(parts) - width / 2

        self._paint(points, width / 2, distance, colour)

    def rectangle(self, low: Point, high: Point, colour: Colour, *, corner: float = 0.0) -> None:
        """Paint a rectangle between two corners, optionally with rounded corners."""

        def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            across = np.abs(x - (low[0] + high[0]) / 2) - (high[0] - low[0]) / 2 + corner
            upward = np.abs(y - (low[1] + high[1]) / 2) - (high[1] - low[1]) / 2 + corner
            outside = np.hypot(np.maximum(across, 0), np.maximum(upward, 0))
            return outside + np.minimum(np.maximum(across, upward), 0) - corner

        self._paint([low, high], 0.0, distance, colour)

    def frame(self) -> Frame:
        """Return the current image."""
        return np.rint(255 * self._pixels).astype(np.uint8)

    def _paint(
        self,
        points: Sequence[Point],
        margin: float,
        distance: Callable[[np.ndarray, np.ndarray], np.ndarray],
        colour: Colour,
    ) -> None:
        """Blend a colour into the pixels that a shape covers, among those near its points."""
        margin = margin + 1 / self._scale
        columns = _span(self._x, [point[0] for point in points], margin)
        rows = _span(self._y, [point[1] for point in points], margin)
        depth = distance(self._x[None, columns], self._y[rows, None])
        coverage = np.clip(0.5 - depth * self._scale, 0, 1)[..., None]
        region = self._pixels[rows, columns]
        region += coverage * (np.array(colour, np.float32) - region)


def _span(places: Float[np.ndarray, " pixels"], values: Sequence[Number], margin: float) -> slice:
    """Return the pixels between the smallest and the largest value, with a margin."""
    near = (places >= min(values) - margin) & (places <= max(values) + margin)
    pixels = np.flatnonzero(near)
    return slice(pixels[0], pixels[-1] + 1) if pixels.size else slice(0, 0)


def _to_segment(x: np.ndarray, y: np.ndarray, start: Point, stop: Point) -> np.ndarray:
    """Compute the distance of each pixel from the segment between two points."""
    dx, dy = stop[0] - start[0], stop[1] - start[1]
    length = max(dx * dx + dy * dy, np.finfo(float).tiny)  # a point is a short segment
    along = np.clip(((x - start[0]) * dx + (y - start[1]) * dy) / length, 0, 1)
    return np.hypot(x - start[0] - along * dx, y - start[1] - along * dy)
