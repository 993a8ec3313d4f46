"""Log the cart-pole while a controller written by hand holds it and shakes it.

    python examples/cartpole_device.py --port 5005 --lockstep --seconds 20 &
    python examples/cartpole_log.py --port 5005 --minutes 20 --out log.csv

The controller is what an engineer writes first: proportional and differential, with gains found by
trial. Dither, that is random pushes on top, is what tells actions from their circumstances in the
log: in some episodes it is weak, in others so strong that the pole falls. The cart is sent all over
the rail, and in a quarter of the episodes the gains are too small. Where the pole falls and the
rail ends is in the log only if it has happened.
"""

import argparse
import csv
import random
from pathlib import Path

import numpy as np

from empowerment.controller.devices import SocketDevice

COLUMNS = ("t", "episode", "position", "velocity", "angle", "turning", "force", "fell")


class Hand:
    """A proportional-differential controller with dither.

    Args:
        seed: Random seed.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.begin()

    def begin(self) -> None:
        """Draw what an episode is like."""
        self.strength = self.random.choice((1.0, 2.0, 4.0, 8.0))
        self.gain = self.random.choice((1.0, 1.0, 1.0, 0.4))
        self.target, self.wanted, self.dither = 0.0, 0.0, 0.0
        self.target_left = self.dither_left = 0

    def __call__(self, observation: np.ndarray | None) -> float:
        """Return the force; without an observation it is as before, but for the dither."""
        self.target_left -= 1
        if self.target_left < 0:
            self.target, self.target_left = (
                self.random.uniform(-1.4, 1.4),
                self.random.randint(100, 250),
            )
        self.dither_left -= 1
        if self.dither_left < 0:
            self.dither_left = self.random.randint(0, 11)
            self.dither = self.strength * self.random.uniform(-1.0, 1.0)
        if observation is not None:
            position, velocity, angle, turning = observation.tolist()
            away = max(-0.5, min(0.5, position - self.target))
            self.wanted = 1.5 * away + 2.5 * velocity + self.gain * (35.0 * angle + 7.0 * turning)
        return max(-10.0, min(10.0, self.wanted + self.dither))


def record(device: SocketDevice, path: Path, *, cycles: int, seed: int) -> int:
    """Write a row for each observation, with the action that answers it; return how many."""
    hand, rows = Hand(seed), 0
    device.restarted = hand.begin
    with path.open("w", newline="", encoding="ascii") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for _ in range(cycles):
            observation = device.read()
            force = hand(observation)
            device.write(np.array([force], np.float32))
            if observation is not None:
                fell = int(device.ended == "terminated")
                numbers = (*observation.tolist(), force)
                table.writerow(
                    (
                        f"{device.time / 1e9:.6f}",
                        device.num_episodes,
                        *(f"{x:.6g}" for x in numbers),
                        fell,
                    )
                )
                rows += 1
    return rows


def main() -> None:
    """Connect to the device in lock-step, and log it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=5005)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=Path("log.csv"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    device = SocketDevice("127.0.0.1", given.port, observation_size=4, action_size=1)
    device.connect()
    if not device.is_lockstep or device.interval is None:
        parser.error("start the device with --lockstep")
    cycles = round(60 * given.minutes / device.interval)
    print(f"{record(device, given.out, cycles=cycles, seed=given.seed)} rows in {given.out}")
    device.close()


if __name__ == "__main__":
    main()
