"""Box2D simulation of the balls: four walls, the bodies, and one step."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float

RADIUS = 0.66
DENSITY = 5.0
FRICTION = 1.1
"""Of balls and walls."""
INTERVAL = 1 / 20
"""Seconds of a step."""
SKIN = 0.01
"""Skin of Box2D's walls: a rim closer than this is in contact."""
OVERLAP = 0.02
"""Upper bound of the overlap that Box2D tolerates between bodies in contact."""
MAX_SPEED = 2 / INTERVAL
"""Box2D limits the motion in one step to 2, and clips the velocity accordingly."""
_ITERATIONS = (8, 3)
"""Solver iterations of Box2D, for velocities and for positions."""


def load() -> Any:
    """Import Box2D, which is an extra."""
    with warnings.catch_warnings():
        # Its generated code warns on import; with warnings as errors, that crashes Python.
        warnings.simplefilter("ignore", DeprecationWarning)
        import Box2D
    return Box2D


def build(
    side: float,
    positions: Float[np.ndarray, "balls 2"],
    velocities: Float[np.ndarray, "balls 2"],
) -> tuple[Any, list[Any]]:
    """Build a Box2D world of balls between four walls, without gravity or restitution.

    Args:
        side: The side of the box, whose lower left corner is the origin.
        positions: Of the centres of the balls.
        velocities: Of the balls; they do not spin.

    Returns:
        The Box2D world, and the bodies of the balls.
    """
    # Without sleep, so that even the smallest force moves a ball.
    world = load().b2World(gravity=(0, 0), doSleep=False)
    box, corners = world.CreateStaticBody(), [(0, 0), (side, 0), (side, side), (0, side)]
    for corner, following in zip(corners, corners[1:] + corners[:1], strict=True):
        box.CreateEdgeFixture(vertices=[corner, following], friction=FRICTION, restitution=0.0)
    bodies = []
    for position, velocity in zip(positions.tolist(), velocities.tolist(), strict=True):
        # Bullets have continuous collision detection; without it balls overlap before they stop.
        body = world.CreateDynamicBody(position=position, linearVelocity=velocity, bullet=True)
        body.CreateCircleFixture(radius=RADIUS, density=DENSITY, friction=FRICTION, restitution=0.0)
        bodies.append(body)
    return world, bodies


def push(world: Any, bodies: list[Any], forces: Float[np.ndarray, "balls 2"]) -> None:
    """Apply forces to the balls for one step; Box2D crashes on forces that are not finite.

    Args:
        world: The Box2D world.
        bodies: The balls.
        forces: One for each ball, at its centre.
    """
    for body, force in zip(bodies, forces.tolist(), strict=True):
        body.ApplyForceToCenter(force, True)  # noqa: FBT003 (wake)
    world.Step(INTERVAL, *_ITERATIONS)
