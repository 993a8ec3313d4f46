"""Painters of rods on hinges."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from empowerment.environments.canvas import ACCENT, INK, SHADE, STEEL, Canvas, Frame
from empowerment.environments.painters import on_circle, straight_arrow, turning_arrow


def chain(
    state: Float[np.ndarray, " state"],
    action: Float[np.ndarray, " action"] | None,
    *,
    driven: Sequence[int],
    max_torque: float,
) -> Frame:
    """Draw a chain of rods: all angles 0 is up, positive angles lean to the left.

    Args:
        state: Angles of the hinges, then their velocities.
        action: Torques, each shown as an arc around its hinge.
        driven: Hinges of these torques.
        max_torque: Torque of the longest arc.

    Returns:
        A frame of 320 by 320 pixels.
    """
    count = len(state) // 2
    canvas = Canvas(320, 320, view_height=2.3 * count)
    canvas.line([(-0.5, 0), (0.5, 0)], 0.06, SHADE)
    places = [(0.0, 0.0)]
    for angle in math.pi / 2 + np.cumsum(state[:count]):
        x, y = on_circle(1.0, float(angle))
        places.append((places[-1][0] + x, places[-1][1] + y))
    canvas.line(places, 0.09, INK)
    for place in places[:-1]:
        canvas.disc(place, 0.09, STEEL)
    canvas.disc(places[-1], 0.14, ACCENT)
    if action is not None:
        for hinge, torque in zip(driven, action, strict=True):
            turning_arrow(canvas, float(torque) / max_torque, places[hinge])
    return canvas.frame()


def cart_pole(
    state: Float[np.ndarray, " state"],
    action: Float[np.ndarray, " action"] | None,
    *,
    rail: float,
    length: float,
    max_force: float,
) -> Frame:
    """Draw a pole on a cart: angle 0 is up, positive angles lean to the right.

    Args:
        state: Position, angle and their velocities.
        action: Force, shown as an arrow under the cart.
        rail: Half the length of the rail.
        length: Length of the pole.
        max_force: Force of the longest arrow.

    Returns:
        A frame of 240 by 480 pixels.
    """
    position, angle = float(state[0]), float(state[1])
    scale = max(length, rail / 2.4)
    canvas = Canvas(240, 480, view_height=2.6 * scale)
    canvas.line([(-rail, 0), (rail, 0)], 0.03 * scale, STEEL)
    wide, high = 0.2 * scale, 0.12 * scale
    canvas.rectangle((position - wide, -high), (position + wide, high), INK, corner=0.04 * scale)
    tip = (position + length * math.sin(angle), length * math.cos(angle))
    canvas.line([(position, 0), tip], 0.06 * scale, INK)
    canvas.disc(tip, 0.09 * scale, ACCENT)
    if action is not None and abs(float(action[0])) > 0.02 * max_force:
        straight_arrow(canvas, (position, -0.3 * scale), 0.5 * scale * float(action[0]) / max_force)
    return canvas.frame()
