"""Control a simulated device over a UDP socket that delays and drops observations.

A pendulum runs in a thread, in real time, behind a local socket: it sends an observation twenty
times a second, some of them late and some never, and applies the latest torque it has received.
The controller sees a `Device` with two methods, `read` and `write`; for hardware of your own,
replace `UdpDevice`.

    empower train pendulum --out runs/pendulum
    python examples/hardware.py runs/pendulum
"""

import argparse
import math
import random
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np

from empowerment.controller import Controller, Safety
from empowerment.controller.loop import Timing, run_loop

INTERVAL = 0.05
OBSERVATION, TORQUE = struct.Struct("<2f"), struct.Struct("<f")


class Plant(threading.Thread):
    """A simulated pendulum that runs in real time.

    Args:
        drop: Fraction of observations that are dropped.
        delay: Maximal delay of an observation, in seconds.
        interval: Seconds between two steps; each step simulates 0.05 s.
        seed: Random seed.
    """

    def __init__(
        self, *, drop: float, delay: float, interval: float = INTERVAL, seed: int = 0
    ) -> None:
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.0)
        self.drop, self.delay, self.interval = drop, delay, interval
        self.random = random.Random(seed)
        self.angles: list[float] = []
        self.torque = 0.0
        self.stopping = threading.Event()

    def run(self) -> None:
        """Receive torques, simulate, and send observations until stopped."""
        angle, velocity, peer = math.pi, 0.0, None
        pending: list[tuple[float, bytes]] = []
        due = time.monotonic()
        while not self.stopping.is_set():
            try:
                while True:  # Only the latest torque counts.
                    data, peer = self.socket.recvfrom(64)
                    self.torque = TORQUE.unpack(data)[0] if len(data) == TORQUE.size else 0.0
            except BlockingIOError:
                pass
            velocity += (15 * math.sin(angle) + 3 * (self.torque - 0.05 * velocity)) * INTERVAL
            angle += velocity * INTERVAL
            velocity = max(-8.0, min(8.0, velocity))
            wrapped = math.remainder(angle, 2 * math.pi)
            self.angles.append(wrapped)
            if self.random.random() >= self.drop:
                arrival = time.monotonic() + self.random.uniform(0, self.delay)
                pending.append((arrival, OBSERVATION.pack(wrapped, velocity)))
            due += self.interval
            while time.monotonic() < due:
                now = time.monotonic()
                for each in [each for each in pending if each[0] <= now]:
                    pending.remove(each)
                    if peer is not None:
                        self.socket.sendto(each[1], peer)
                time.sleep(0.001)
        self.socket.close()


class UdpDevice:
    """The controller's side of the socket.

    Args:
        address: Address of the plant.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.socket.settimeout(0.0)

    def read(self) -> np.ndarray | None:
        """Return the latest observation since the last call, or none; never block."""
        latest = None
        try:
            while True:
                latest = self.socket.recv(64)
        except (BlockingIOError, ConnectionRefusedError):
            pass
        if latest is None or len(latest) != OBSERVATION.size:
            return None
        return np.array(OBSERVATION.unpack(latest), np.float32)

    def write(self, action: np.ndarray) -> None:
        """Send the torque."""
        self.socket.send(TORQUE.pack(float(action[0])))


def control(
    controller: Controller,
    *,
    duration: float = 20.0,
    drop: float = 0.1,
    delay: float = 0.02,
    interval: float = INTERVAL,
) -> tuple[Timing, list[float]]:
    """Run a controller against the plant; return the timing and the angles."""
    plant = Plant(drop=drop, delay=delay, interval=interval)
    device = UdpDevice(plant.socket.getsockname())
    device.write(controller.safe_action)  # The plant replies to the sender.
    plant.start()
    try:
        # Without the permission for real-time priority, it runs at normal priority.
        timing = run_loop(controller, device, rate=1 / interval, duration=duration, realtime=True)
    finally:
        plant.stopping.set()
        plant.join()
        device.socket.close()
    return timing, plant.angles


def main() -> None:
    """Control the plant for 20 s, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a trained run of the pendulum")
    safety = Safety(interval=INTERVAL, max_missing=20, record=Path("fault.json"))
    controller = Controller.load(parser.parse_args().run, safety=safety)
    timing, angles = control(controller)
    upright = sum(abs(angle) < 0.3 for angle in angles[-100:])
    print(
        f"{len(timing.begun)} cycles, {timing.num_missed} missed, {controller.num_missing} without "
        f"an observation; upright in {upright} of the last 100 steps; fault: {controller.fault}."
    )


if __name__ == "__main__":
    main()
