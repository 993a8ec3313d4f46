"""The other side of a socket: a device whose every byte a test decides."""

import socket
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from empowerment.controller.devices.wire import (
    HEARTBEAT,
    OBSERVATION,
    Hello,
    Message,
    Parser,
    pack,
)

HELLO = Hello(5, 2, 0.02, (-2.0, 0.5), (1.0, 3.5))
"""Sizes of the filter's bundle."""


class Peer:
    """A device that listens on loopback."""

    def __init__(self, hello: Hello = HELLO):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(10.0)
        self.port = self.server.getsockname()[1]
        self.hello = hello
        self.connection: socket.socket | None = None
        self.parser = Parser()

    def accept(self) -> None:
        """Take a connection, and say hello."""
        self.connection, _ = self.server.accept()
        self.connection.settimeout(10.0)
        self.parser = Parser()
        self.send_bytes(self.hello.pack())

    def send_bytes(self, text: bytes) -> None:
        assert self.connection is not None
        self.connection.sendall(text)

    def observe(self, value: float, flags: int = 0, time: int = 0) -> None:
        """Send an observation of equal numbers."""
        numbers = np.full(self.hello.observation_size, value)
        self.send_bytes(pack(OBSERVATION, numbers, flags=flags, time=time))

    def beat(self) -> None:
        self.send_bytes(pack(HEARTBEAT))

    def receive(self) -> Message:
        """Wait for the next message."""
        assert self.connection is not None
        while (message := self.parser.next()) is None:
            received = self.connection.recv(1 << 14)
            assert received, "the controller is gone"
            self.parser.feed(received)
        return message

    def drop(self) -> None:
        """Close the connection, as a process that dies does."""
        assert self.connection is not None
        self.connection.close()

    def close(self) -> None:
        self.server.close()
        if self.connection is not None:
            self.connection.close()


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Wait for something a bounded time, and return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.001)
    return found
