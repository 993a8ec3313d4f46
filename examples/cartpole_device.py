"""A cart-pole in a process of its own, as a real one would be: behind a socket, and not perfect.

A motor pushes a cart on a rail of 3 m, so that the pole on it stays up. From the measurement of an
observation until the action that answers it acts, 20 ms pass. Sensors are noisy, cart and hinge
have friction, and messages are late or lost, as many as you say. An episode ends where the pole
leans by more than 0.4 rad or the cart leaves the rail; the device then puts it up again.

    python examples/cartpole_device.py --port 5005               # by the clock, 50 times a second
    python examples/cartpole_device.py --port 5005 --lockstep    # as fast as the controller is

Without an action for a tenth of a second the motor is off. The messages are those of
`empowerment.controller.devices.wire`.
"""

import argparse
import contextlib
import math
import random
import socket
import time
from collections.abc import Iterator

from empowerment.controller.devices.wire import (
    ACTION,
    HEARTBEAT,
    OBSERVATION,
    Flag,
    Hello,
    Parser,
    WireError,
    pack,
)

PERIOD, SUBSTEP = 0.02, 0.002
"""Seconds between observations, and of a step of the simulation."""

SUBSTEPS = 10
"""Steps of the simulation in a period."""

ONE_WAY = 0.01
"""Seconds that a message takes, to the controller and back."""

FORCE, RAIL, FALLEN = 10.0, 1.5, 0.4
"""The strongest push in newtons, the end of the rail in metres, and the largest angle in rad."""

NOISE = (0.002, 0.02, 0.003, 0.03)
"""Scales of the noise of position, velocity, angle and angular velocity."""

DEADMAN = 0.1
"""Seconds without an action after which the motor is off."""


class Device:
    """Cart, pole, sensors and the way that messages go.

    Args:
        drop: Fraction of messages that are lost, each way.
        jitter: Seconds by which a message is late at most, each way.
        seed: Random seed.
    """

    def __init__(self, *, drop: float = 0.02, jitter: float = 0.0, seed: int = 0):
        self.drop, self.jitter = drop, jitter
        self.random = random.Random(seed)
        self.begin()

    def begin(self) -> None:
        """Put the pole up."""
        draw = self.random.uniform
        self.state = draw(-0.3, 0.3), draw(-0.05, 0.05), draw(-0.05, 0.05), draw(-0.05, 0.05)
        self.count, self.force, self.heard = 0, 0.0, 0.0
        self.coming: list[tuple[float, float]] = []
        self.going: list[tuple[float, list[float]]] = []

    @property
    def now(self) -> float:
        """Seconds since the episode began."""
        return self.count * SUBSTEP

    @property
    def is_over(self) -> bool:
        """Whether the pole has fallen or the cart has left the rail."""
        return abs(self.state[0]) > RAIL or abs(self.state[2]) > FALLEN

    def measure(self) -> list[float]:
        """Return an observation."""
        return [
            number + scale * self.random.gauss(0.0, 1.0)
            for number, scale in zip(self.state, NOISE, strict=True)
        ]

    def receive(self, force: float) -> None:
        """Take an action, which acts a moment later, or is lost."""
        self.heard = self.now
        if self.random.random() >= self.drop and math.isfinite(force):
            late = self.now + ONE_WAY + self.random.uniform(0.0, self.jitter)
            self.coming.append((late, max(-FORCE, min(FORCE, force))))

    def advance(self) -> None:
        """Simulate 2 ms; at the beginning of a period an observation is sent, or lost."""
        if self.count % SUBSTEPS == 0 and self.random.random() >= self.drop:
            late = self.now + ONE_WAY + self.random.uniform(0.0, self.jitter)
            self.going.append((late, self.measure()))
        for due in [each for each in self.coming if each[0] <= self.now + 1e-9]:
            self.coming.remove(due)
            self.force = due[1]
        if self.now - self.heard > DEADMAN:
            self.force = 0.0
        x, velocity, angle, turning = self.state
        sin, cos = math.sin(angle), math.cos(angle)
        drag = 0.6 * math.tanh(velocity / 0.02) + 0.5 * velocity
        push = (self.force - drag + 0.05 * turning * turning * sin) / 1.1
        swing = (9.81 * sin - cos * push - 0.05 * turning) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        velocity += SUBSTEP * (push - 0.05 * swing * cos / 1.1)
        turning += SUBSTEP * swing
        self.state = x + SUBSTEP * velocity, velocity, angle + SUBSTEP * turning, turning
        self.count += 1

    def arrived(self) -> list[float] | None:
        """Return the newest observation that has arrived since the last call, if any."""
        due = [each for each in self.going if each[0] <= self.now + 1e-9]
        self.going = [each for each in self.going if each not in due]
        return due[-1][1] if due else None


class Session:
    """A connection to a controller.

    Args:
        peer: The socket.
        device: The device.
        seconds: Seconds after which an episode is cut.
        episodes: Number of the episodes so far.
    """

    def __init__(self, peer: socket.socket, device: Device, seconds: float, episodes: int):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer, self.device, self.seconds = peer, device, seconds
        self.parser, self.episodes, self.elapsed = Parser(), episodes, 0.0

    def actions(self) -> Iterator[float]:
        """Receive what there is, and return the actions in it."""
        received = self.peer.recv(1 << 14)
        if not received:
            raise ConnectionError("closed")
        self.parser.feed(received)
        while (message := self.parser.next()) is not None:
            if message.kind == ACTION and message.size == 1:
                yield float(message.numbers[0])

    def send(self, kind: int, numbers: object = (), flags: int = 0) -> None:
        """Send a message."""
        now = round(1e9 * (self.elapsed + self.device.now))
        self.peer.sendall(pack(kind, numbers, flags=flags, time=now))

    def end(self) -> bool:
        """End the episode if it is over, and say so to everybody; return whether it was."""
        device = self.device
        if not device.is_over and device.now < self.seconds - 1e-9:
            return False
        self.send(OBSERVATION, device.measure(), Flag.TERMINAL if device.is_over else Flag.CUT)
        self.episodes += 1
        how = "over" if device.is_over else "cut"
        print(f"episode {self.episodes}: {device.now:.2f} s, {how}", flush=True)
        self.elapsed += device.now
        device.begin()
        return True

    def run_in_step(self) -> None:
        """Send an observation or, if it is missing, a heartbeat, and wait for the action."""
        self.peer.settimeout(30.0)
        device, flags = self.device, Flag.BEGIN
        while True:
            device.advance()
            if not self.end():
                if device.count % SUBSTEPS != SUBSTEPS // 2:
                    continue
                if (observation := device.arrived()) is None:
                    self.send(HEARTBEAT)
                else:
                    self.send(OBSERVATION, observation, flags)
                    flags = Flag(0)
            else:
                flags = Flag.BEGIN
            answers: list[float] = []
            while not answers:
                answers = list(self.actions())
            if device.count:  # Not an answer to the end of an episode.
                device.receive(answers[-1])

    def run_by_clock(self) -> None:
        """Simulate as fast as time goes by."""
        device, flags, due = self.device, Flag.BEGIN, time.monotonic()
        self.peer.settimeout(0.0)
        while True:
            due += SUBSTEP
            time.sleep(max(due - time.monotonic(), 0.0))
            with contextlib.suppress(BlockingIOError):
                for action in self.actions():
                    device.receive(action)
            device.advance()
            if self.end():
                flags = Flag.BEGIN
            elif (observation := device.arrived()) is not None:
                self.send(OBSERVATION, observation, flags)
                flags = Flag(0)


def main() -> None:
    """Serve one controller after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=5005, help="0 for any that is free")
    parser.add_argument("--lockstep", action="store_true", help="wait for the controller")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of an episode")
    parser.add_argument("--drop", type=float, default=0.02, help="fraction of messages lost")
    parser.add_argument("--jitter", type=float, default=0.0, help="seconds of delay at most")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    given = parser.parse_args()
    device, episodes = Device(drop=given.drop, jitter=given.jitter, seed=given.seed), 0
    with socket.create_server(("127.0.0.1", given.port)) as server:
        print(f"listening on 127.0.0.1:{server.getsockname()[1]}", flush=True)
        while True:
            peer, _ = server.accept()
            device.begin()
            session = Session(peer, device, given.seconds, episodes)
            hello = Hello(4, 1, PERIOD, (-FORCE,), (FORCE,), is_lockstep=given.lockstep)
            with peer, contextlib.suppress(OSError, WireError):
                peer.sendall(hello.pack())
                session.run_in_step() if given.lockstep else session.run_by_clock()
            episodes = session.episodes


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
