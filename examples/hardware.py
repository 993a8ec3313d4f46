"""Control a device over a socket that delays and drops what it sends, with a filter in between.

A pendulum runs in a thread of its own, in its own time, behind a local UDP socket: it sends an
observation twenty times a second, some of them late, some never, and obeys the newest torque it
got. On this side there is a `Device` of two methods, `read` and `write`, and nothing else changes
for hardware of your own.

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
    """A pendulum that nobody waits for.

    Args:
        drop: The share of observations that never arrive.
        delay: The most that an observation is late, in seconds.
        interval: Between two of its steps, in seconds; its physics is always that of 0.05 s.
        seed: Of what is dropped and delayed.
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
        """Move, tell, obey, until it is stopped."""
        angle, velocity, peer = math.pi, 0.0, None
        late: list[tuple[float, bytes]] = []
        due = time.monotonic()
        while not self.stopping.is_set():
            try:
                while True:  # Only the newest torque counts.
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
                late.append((arrival, OBSERVATION.pack(wrapped, velocity)))
            due += self.interval
            while time.monotonic() < due:
                now = time.monotonic()
                for each in [each for each in late if each[0] <= now]:
                    late.remove(each)
                    if peer is not None:
                        self.socket.sendto(each[1], peer)
                time.sleep(0.001)
        self.socket.close()


class UdpDevice:
    """What the controller sees of it: the newest observation, or none.

    Args:
        address: Of the plant.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.socket.settimeout(0.0)

    def read(self) -> np.ndarray | None:
        """Give the newest observation that has arrived since the last time; never wait."""
        newest = None
        try:
            while True:
                newest = self.socket.recv(64)
        except (BlockingIOError, ConnectionRefusedError):
            pass
        if newest is None or len(newest) != OBSERVATION.size:
            return None
        return np.array(OBSERVATION.unpack(newest), np.float32)

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
    """Run a controller against the plant, and give how it went and the angles on the way."""
    plant = Plant(drop=drop, delay=delay, interval=interval)
    device = UdpDevice(plant.socket.getsockname())
    device.write(controller.safe_action)  # So that the plant knows whom to tell.
    plant.start()
    try:
        # Where real-time priority is not granted, it runs without.
        timing = run_loop(controller, device, rate=1 / interval, duration=duration, realtime=True)
    finally:
        plant.stopping.set()
        plant.join()
        device.socket.close()
    return timing, plant.angles


def main() -> None:
    """Control the plant for twenty seconds, and say how it stands."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
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
