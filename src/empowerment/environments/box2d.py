"""Box2D's part in the balls: a world of four walls, its bodies, and one step of it."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float

with warnings.catch_warnings():
    # Its generated code warns on import; where warnings are errors, that crashes Python.
    warnings.simplefilter("ignore", DeprecationWarning)
    import Box2D

RADIUS = 0.66
DENSITY = 5.0
FRICTION = 1.1
"""Of balls and walls alike."""
INTERVAL = 1 / 20
"""Seconds in a step."""
SKIN = 0.01
"""Box2D's walls are this thick: a rim closer than that is in contact."""
OVERLAP = 0.02
"""Box2D lets bodies that touch overlap a little, by less than this."""
MAX_SPEED = 2 / INTERVAL
"""Box2D moves nothing farther than 2 in a step, and slows down what would."""
_ITERATIONS = (8, 3)
"""Of Box2D's solver, for velocities and for positions."""


def build(
    side: float,
    positions: Float[np.ndarray, "balls 2"],
    velocities: Float[np.ndarray, "balls 2"],
) -> tuple[Any, list[Any]]:
    """Make a world of balls between four walls; there is no gravity and nothing bounces.

    Args:
        side: The side of the box, whose lower left corner is the origin.
        positions: Where the balls are.
        velocities: How they move; they do not spin.

    Returns:
        Box2D's world, and the bodies of the balls in it.
    """
    # Without sleep, so that the slightest force moves a ball at any time.
    world = Box2D.b2World(gravity=(0, 0), doSleep=False)
    box, corners = world.CreateStaticBody(), [(0, 0), (side, 0), (side, side), (0, side)]
    for corner, following in zip(corners, corners[1:] + corners[:1], strict=True):
        box.CreateEdgeFixture(vertices=[corner, following], friction=FRICTION, restitution=0.0)
    bodies = []
    for position, velocity in zip(positions.tolist(), velocities.tolist(), strict=True):
        # A bullet stops where it meets another ball; others sink in before they stop.
        body = world.CreateDynamicBody(position=position, linearVelocity=velocity, bullet=True)
        body.CreateCircleFixture(radius=RADIUS, density=DENSITY, friction=FRICTION, restitution=0.0)
        bodies.append(body)
    return world, bodies


def push(world: Any, bodies: list[Any], forces: Float[np.ndarray, "balls 2"]) -> None:
    """Let forces act on the balls for one step; Box2D crashes on any that is not finite.

    Args:
        world: Box2D's world.
        bodies: The balls in it.
        forces: One for each ball, on its middle.
    """
    for body, force in zip(bodies, forces.tolist(), strict=True):
        body.ApplyForceToCenter(force, True)  # noqa: FBT003 (wakes it; Box2D's own way)
    world.Step(INTERVAL, *_ITERATIONS)
