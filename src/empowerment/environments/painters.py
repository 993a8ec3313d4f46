"""Painters of the worlds: from a state and the last action to a frame."""

import itertools
import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from empowerment.environments.canvas import (
    ACCENT,
    FLOOR,
    INK,
    PAPER,
    SHADE,
    SIDE_MULTIPLE,
    STEEL,
    Canvas,
    Frame,
    Point,
)

BALL_RADIUS = 0.66
"""Radius of the drawn ball; the dynamics, with its walls, are those of its centre."""


@runtime_checkable
class Painter(Protocol):
    """Function that draws a state."""

    def __call__(
        self,
        state: Float[np.ndarray, " state"],
        action: Float[np.ndarray, " action"] | None,
    ) -> Frame:
        """Draw a state and the action that led to it, None after a reset."""
        ...


def pendulum(
    state: Float[np.ndarray, " state"],
    action: Float[np.ndarray, " action"] | None,
    *,
    max_torque: float,
) -> Frame:
    """Draw the pendulum: angle 0 is up, positive angles lean to the left.

    Args:
        state: Angle and velocity.
        action: The torque, shown as an arc around the pivot.
        max_torque: The torque of the longest arc.

    Returns:
        A frame of 320 by 320 pixels.
    """
    canvas = Canvas(320, 320, view_height=2.9)
    canvas.disc((0, 0), 1.02, SHADE)
    canvas.disc((0, 0), 0.98, PAPER)
    canvas.line([(0, 1.0), (0, 1.12)], 0.04, SHADE)
    bob = on_circle(1.0, math.pi / 2 + float(state[0]))
    canvas.line([(0, 0), bob], 0.09, INK)
    canvas.disc(bob, 0.19, ACCENT)
    canvas.disc((0, 0), 0.12, INK)
    canvas.disc((0, 0), 0.045, PAPER)
    if action is not None:
        turning_arrow(canvas, float(action[0]) / max_torque)
    return canvas.frame()


def turning_arrow(canvas: Canvas, strength: float, pivot: Point = (0.0, 0.0)) -> None:
    """Draw an arc from above a pivot whose length is proportional to the torque."""
    if abs(strength) < 0.02:  # shorter than its own head
        return
    radius, top = 0.36, math.pi / 2
    reach = strength * 0.75 * math.pi

    def around(radius: float, angle: float) -> Point:
        x, y = on_circle(radius, angle)
        return pivot[0] + x, pivot[1] + y

    arc = [around(radius, top + reach * part) for part in np.linspace(0, 1, 17)]
    canvas.line(arc, 0.045, ACCENT)
    back = math.copysign(0.26, strength)
    barbs = [around(radius * side, top + reach - back) for side in (0.8, 1.2)]
    canvas.line([barbs[0], arc[-1], barbs[1]], 0.045, ACCENT)


def on_circle(radius: float, angle: float) -> Point:
    """Return the place on a circle around the origin."""
    return radius * math.cos(angle), radius * math.sin(angle)


def ball(
    state: Float[np.ndarray, " state"],
    action: Float[np.ndarray, " action"] | None,
    *,
    side: float,
) -> Frame:
    """Draw the ball in its box.

    Args:
        state: The position of the centre of the ball.
        action: The move, shown as the path of the ball without walls.
        side: The side of the square in which the centre moves; the drawn room is larger by
            the radius of the ball.

    Returns:
        A frame of 320 by 320 pixels.
    """
    radius, wall = BALL_RADIUS * side / 10, 0.025 * side
    canvas = Canvas(320, 320, view_height=1.32 * side, centre=(side / 2, side / 2))
    for reach, colour in ((radius + wall, INK), (radius, FLOOR)):
        edge = side + reach
        canvas.rectangle((-reach, -reach), (edge, edge), colour, corner=reach - radius)
    centre = (float(state[0]), float(state[1]))
    if action is not None:
        start = (centre[0] - float(action[0]), centre[1] - float(action[1]))
        canvas.line([start, centre], 2 * radius, SHADE)
    canvas.disc(centre, radius, ACCENT)
    return canvas.frame()


def balls(
    positions: Float[np.ndarray, "balls 2"],
    forces: Float[np.ndarray, "balls 2"] | None,
    *,
    side: float,
    radius: float,
    observer: int | None = None,
    rays: Float[np.ndarray, "rays 2"] | None = None,
) -> Frame:
    """Draw several balls in a box, and the lidar of one of them.

    Args:
        positions: The centres of the balls.
        forces: Drawn from the centre of each ball; a length of one reaches its rim.
        side: The side of the box.
        radius: The radius of the balls.
        observer: The highlighted ball; all are by default.
        rays: The end points of the rays of that ball.

    Returns:
        A frame of 400 by 400 pixels.
    """
    wall = 0.025 * side
    canvas = Canvas(400, 400, view_height=1.1 * side, centre=(side / 2, side / 2))
    canvas.rectangle((-wall, -wall), (side + wall, side + wall), INK, corner=wall)
    canvas.rectangle((0.0, 0.0), (side, side), FLOOR)
    places = [(float(x), float(y)) for x, y in positions]
    if observer is not None and rays is not None:
        for x, y in rays:
            canvas.line([places[observer], (float(x), float(y))], 0.004 * side, ACCENT)
    for number, place in enumerate(places):
        canvas.disc(place, radius, ACCENT if observer in (None, number) else STEEL)
    if forces is not None:
        for (x, y), force in zip(places, forces, strict=True):
            tip = (x + radius * float(force[0]), y + radius * float(force[1]))
            canvas.line([(x, y), tip], 0.2 * radius, INK)
    return canvas.frame()


def cart(state: Float[np.ndarray, " state"], action: Float[np.ndarray, " action"] | None) -> Frame:
    """Draw the cart on its rail; the view follows it away from the origin.

    Args:
        state: Position and velocity.
        action: The force, shown as an arrow over the cart.

    Returns:
        A frame of 160 by 480 pixels.
    """
    position = float(state[0])
    middle = position - float(np.clip(position, -1, 1))
    canvas = Canvas(160, 480, view_height=1.0, centre=(middle, 0.15))
    canvas.line([(middle - 2, -0.14), (middle + 2, -0.14)], 0.03, STEEL)
    first = math.ceil((middle - 1.6) * 4)
    for tick in range(first, first + 14):
        long = 0.09 if tick % 4 == 0 else 0.05
        colour = ACCENT if tick == 0 else STEEL  # the origin
        canvas.line([(tick / 4, -0.2), (tick / 4, -0.2 - long)], 0.016, colour)
    canvas.rectangle((position - 0.2, -0.05), (position + 0.2, 0.17), ACCENT, corner=0.04)
    for wheel in (-0.12, 0.12):
        canvas.disc((position + wheel, -0.06), 0.065, INK)
    if action is not None and abs(float(action[0])) > 0.02:
        straight_arrow(canvas, (position, 0.32), 0.4 * float(action[0]))
    return canvas.frame()


def straight_arrow(canvas: Canvas, start: Point, length: float) -> None:
    """Draw an arrow to the right, or to the left if its length is negative."""
    tip, back = (start[0] + length, start[1]), math.copysign(0.06, length)
    canvas.line([start, tip], 0.03, INK)
    barbs = [(tip[0] - back, tip[1] + side) for side in (-0.06, 0.06)]
    canvas.line([barbs[0], tip, barbs[1]], 0.03, INK)


def sliders(
    state: Float[np.ndarray, " state"],
    action: Float[np.ndarray, " action"] | None,
    *,
    low: Float[np.ndarray, " state"],
    high: Float[np.ndarray, " state"],
) -> Frame:
    """Draw any state as a slider for each coordinate, the first at the top.

    Args:
        state: The state; coordinates are clipped to the ends of their sliders.
        action: Not shown.
        low: The left ends of the sliders; minus one where a coordinate is unbounded.
        high: The right ends of the sliders; one where a coordinate is unbounded.

    Returns:
        A frame 320 pixels wide and 48 pixels high for each coordinate, and 32 around.
    """
    del action
    limited = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(limited, low, -1.0), np.where(limited, high, 1.0)
    parts = np.clip((state - low) / (high - low), 0, 1)
    rows = len(parts)
    height = 48 * rows + 32
    canvas = Canvas(height, 320, view_height=height / 48, centre=(0.0, (1 - rows) / 2))
    for row, part in enumerate(parts):
        canvas.line([(-2.7, -row), (2.7, -row)], 0.14, SHADE)
        canvas.disc((5.4 * (float(part) - 0.5), -row), 0.24, ACCENT)
    return canvas.frame()


def grid(
    cell: Point,
    *,
    cells: Sequence[tuple[int, int]],
    walls: Sequence[tuple[tuple[int, int], tuple[int, int]]],
) -> Frame:
    """Draw the cells of a grid, the walls between them and the agent.

    Args:
        cell: The (x, y) of the agent.
        cells: The (x, y) of all cells; other places of the rectangle are solid.
        walls: The pairs of neighbours with a wall between them.

    Returns:
        A frame whose longer side is about 400 pixels.
    """
    columns, rows = (1 + max(place) for place in zip(*cells, strict=True))
    pixels = max(400 // max(columns, rows), 8)
    height, width = (_round_up((count + 0.8) * pixels) for count in (rows, columns))
    middle = ((columns - 1) / 2, (rows - 1) / 2)
    canvas = Canvas(height, width, view_height=height / pixels, centre=middle)
    canvas.rectangle((-0.6, -0.6), (columns - 0.4, rows - 0.4), INK, corner=0.1)
    canvas.rectangle((-0.5, -0.5), (columns - 0.5, rows - 0.5), FLOOR)
    for x in range(1, columns):
        canvas.line([(x - 0.5, -0.47), (x - 0.5, rows - 0.53)], 0.06, SHADE)
    for y in range(1, rows):
        canvas.line([(-0.47, y - 0.5), (columns - 0.53, y - 0.5)], 0.06, SHADE)
    for x, y in set(itertools.product(range(columns), range(rows))) - set(cells):
        canvas.rectangle((x - 0.55, y - 0.55), (x + 0.55, y + 0.55), INK)
    for (x, y), (next_x, next_y) in walls:
        across, upward = (next_y - y) / 2, (next_x - x) / 2  # perpendicular to a step
        middle = ((x + next_x) / 2, (y + next_y) / 2)
        ends = [(middle[0] + s * across, middle[1] + s * upward) for s in (-1, 1)]
        canvas.line(ends, 0.14, INK)
    canvas.disc(cell, 0.32, ACCENT)
    return canvas.frame()


def _round_up(length: float) -> int:
    """Round up to a side that video encoders accept."""
    return SIDE_MULTIPLE * math.ceil(length / SIDE_MULTIPLE)
