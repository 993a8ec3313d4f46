"""Time steps of the balls with LIDAR in closed form, in turns with a loop over rays."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from benchmarks.channel import interleaved, pin
from empowerment.environments import BallsEnv
from empowerment.environments.balls import NUM_RAYS
from empowerment.environments.box2d import RADIUS

_STEPS = 200


def ray_by_ray(
    positions: Float[np.ndarray, "balls 2"], *, side: float
) -> Float[np.ndarray, "balls rays"]:
    """Compute the ranges by naive loops over balls, rays and obstacles."""
    places = positions.tolist()
    ranges = np.empty((len(places), NUM_RAYS))
    for ball, (x, y) in enumerate(places):
        for ray in range(NUM_RAYS):
            angle = 2 * math.pi * ray / NUM_RAYS
            across, upward = math.cos(angle), math.sin(angle)
            nearest = math.inf
            for place, direction in ((x, across), (y, upward)):
                if direction > 1e-12:
                    nearest = min(nearest, (side - place) / direction)
                elif direction < -1e-12:
                    nearest = min(nearest, -place / direction)
            for other, (other_x, other_y) in enumerate(places):
                along = (other_x - x) * across + (other_y - y) * upward
                beside = (other_y - y) * across - (other_x - x) * upward
                if other != ball and along > 0 and abs(beside) <= RADIUS:
                    nearest = min(nearest, along - math.sqrt(RADIUS**2 - beside**2))
            ranges[ball, ray] = nearest
    return ranges


def episode(env: BallsEnv, actions: Float[np.ndarray, "steps forces"]) -> Callable[[], None]:
    """Build a function that runs an episode with these actions."""

    def run() -> None:
        env.reset(seed=0)
        for action in actions:
            env.step(action)

    return run


def main() -> None:
    pin()
    ours, theirs = BallsEnv(), BallsEnv()
    theirs._lidar = lambda positions: ray_by_ray(positions, side=theirs.side)  # pyright: ignore[reportAttributeAccessIssue]
    space = ours.action_space
    space.seed(0)
    actions = np.stack([space.sample() for _ in range(_STEPS)])
    for env in (ours, theirs):
        episode(env, actions)()
    assert np.allclose(ours.step(actions[0])[0], theirs.step(actions[0])[0], atol=1e-5)
    own, other = interleaved(episode(ours, actions), episode(theirs, actions))
    assert other is not None
    print(f"steps of {ours.num_balls} balls with {NUM_RAYS} rays each, one core, interleaved")
    print(f"  closed form  {_STEPS / own:7.0f} steps per second")
    print(f"  ray by ray   {_STEPS / other:7.0f} steps per second")
    print(f"  ratio        {other / own:.1f}", flush=True)


if __name__ == "__main__":
    main()
