"""A device behind a TCP socket, that is not trusted to stay there or to make sense."""

import contextlib
import errno
import socket
import time
from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float

from empowerment.controller.devices.base import LostDeviceError
from empowerment.controller.devices.wire import (
    ACTION,
    HEARTBEAT,
    OBSERVATION,
    Flag,
    Hello,
    Message,
    Parser,
    WireError,
    pack,
)

_CHUNK = 1 << 14
_MOST_CHUNKS = 8
"""Chunks that are received in one call of `read` at most, so that a flood does not hold it up."""

CONNECT_TIMEOUT = 5.0
"""Seconds in which a device has to say hello at first."""

_RETRY = 0.1
"""Seconds from one attempt to reconnect to the next."""

SILENCE = 1.0
"""Seconds without any message after which a device counts as dead."""

_PATIENCE = 10.0
"""The same for a device in lock-step, which may be slower than its clock."""

_BACKLOG = 1 << 16
"""Bytes that the peer may leave unread before it counts as dead."""


class SocketDevice:
    """Client of a device that listens on a TCP socket; see `wire` for the messages.

    Neither method blocks, but in lock-step `read` waits for the device. A connection that closes,
    is silent for too long, or brings anything that is no message, is closed and counts as lost;
    `read` then raises a `LostDeviceError` in each cycle, and connects again in the background.

    Args:
        host: Where the device listens.
        port: Its port.
        observation_size: Numbers in an observation; any by default.
        action_size: Numbers in an action; any by default.
        silence: Seconds without a message after which the device counts as dead.
        restarted: Callback at the beginning of each episode but the first.

    Attributes:
        hello: What the device says of itself; known once it is connected.
        time: Time of the device's clock at the latest message, in nanoseconds.
        is_idle: Whether it is between two episodes.
        ended: How the episode ended with the last observation, in the call of `read` that returned
            it; else None.
        num_episodes: Episodes so far.
        num_lost: How often the connection was lost.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        observation_size: int | None = None,
        action_size: int | None = None,
        silence: float = SILENCE,
        restarted: Callable[[], None] = lambda: None,
    ):
        self._name = f"{host}:{port}"
        try:
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ValueError(
                f"Expected the host of a device; got {host!r}, which is not known."
            ) from error
        self._family, self._address = found[0][0], found[0][4]
        self._sizes = observation_size, action_size
        self._silence = silence
        self.restarted = restarted
        self._socket: socket.socket | None = None
        self._is_new = False
        self._next_try = 0.0
        self._why = "nothing has answered"
        self._budget = 0
        self.hello: Hello | None = None
        self.time = self.num_episodes = self.num_lost = 0
        self.is_idle = True
        self.ended: Literal["terminated", "truncated"] | None = None

    @property
    def interval(self) -> float | None:
        """Seconds between observations, as the device says; known once it is connected."""
        return None if self.hello is None else self.hello.interval

    @property
    def limits(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Lower and upper limits of actions, as the device says; known once it is connected."""
        return None if self.hello is None else (self.hello.low, self.hello.high)

    @property
    def is_lockstep(self) -> bool:
        """Whether the device waits for an action to each of its messages."""
        return self.hello is not None and self.hello.is_lockstep

    def clock(self) -> int:
        """Return the time in nanoseconds: of this machine or, in lock-step, of the device."""
        return self.time if self.is_lockstep else time.monotonic_ns()

    def connect(self, *, timeout: float | None = None) -> None:
        """Connect, and wait for what the device says of itself.

        Raises:
            ValueError: If there is no such device.
        """
        timeout = CONNECT_TIMEOUT if timeout is None else timeout
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self._budget = _MOST_CHUNKS
            with contextlib.suppress(LostDeviceError):
                self._ensure_open()
                if self._hear_hello():
                    return
            time.sleep(0.005)
        self._close(self._why)
        raise ValueError(
            f"Expected a device at {self._name} that says hello within {timeout:g} s; "
            f"{self._why}. Start it first."
        )

    def read(self) -> Float[np.ndarray, " observation"] | None:
        """Return the newest observation, or None if there is no new one.

        An episode ends with its last observation: what comes after it is left to the next call.

        Raises:
            LostDeviceError: If the device is gone.
        """
        self.ended, self._budget = None, _MOST_CHUNKS
        self._ensure_open()
        if not self._hear_hello() or self.hello is None:
            raise LostDeviceError(f"the device at {self._name} was lost: {self._why}")
        newest: Message | None = None
        has_begun = False
        while True:
            message = self._next(wait=self.hello.is_lockstep and newest is None)
            if message is None:
                break
            self._heard, self.time = time.monotonic(), message.time
            if message.kind == HEARTBEAT:
                if self.hello.is_lockstep:
                    break
                continue
            self._check(message)
            newest = message
            has_begun |= bool(message.flags & Flag.BEGIN)
            if message.flags & (Flag.TERMINAL | Flag.CUT):
                self.ended = "terminated" if message.flags & Flag.TERMINAL else "truncated"
                break
            if self.hello.is_lockstep:
                break
        if has_begun:
            self.is_idle = False
            self.num_episodes += 1
            if self.num_episodes > 1:
                self.restarted()
        self.is_idle = self.is_idle or self.ended is not None
        if time.monotonic() - self._heard > self._silence and not self.hello.is_lockstep:
            raise self._lose(f"it was silent for {self._silence:g} s")
        return None if newest is None else newest.numbers

    def write(self, action: Float[np.ndarray, " action"]) -> None:
        """Send an action; nothing is sent while the device is gone."""
        self._send(pack(ACTION, action, time=time.monotonic_ns()))

    def beat(self) -> None:
        """Send a heartbeat: alive, but not acting yet."""
        self._send(pack(HEARTBEAT, time=time.monotonic_ns()))

    def close(self) -> None:
        """Close the connection."""
        self._close("it was closed")

    def _ensure_open(self) -> None:
        """Begin to connect, unless that was done a moment ago."""
        if self._socket is not None:
            return
        now = time.monotonic()
        if now < self._next_try:
            raise LostDeviceError(f"the device at {self._name} was lost: {self._why}")
        self._next_try = now + _RETRY
        try:
            self._socket = opened = socket.socket(self._family, socket.SOCK_STREAM)
            opened.settimeout(0.0)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.connect_ex(self._address)
        except OSError as error:
            raise self._lose(_describe(error)) from error
        self._parser, self._unsent = Parser(), b""
        self._is_new, self._heard, self.is_idle = True, now, True

    def _hear_hello(self) -> bool:
        """Return whether the device has said hello since it was connected."""
        if not self._is_new:
            return True
        message = self._next(wait=False)
        if message is None:
            if time.monotonic() - self._heard > self._silence:
                raise self._lose(f"it said nothing for {self._silence:g} s")
            return False
        try:
            hello = Hello.read(message)
        except WireError as error:
            raise self._lose(str(error)) from error
        wanted = tuple(
            own or found
            for own, found in zip(
                self._sizes, (hello.observation_size, hello.action_size), strict=True
            )
        )
        if wanted != (hello.observation_size, hello.action_size):
            raise self._lose(
                f"it has {hello.observation_size} observed numbers and {hello.action_size} "
                f"actions, not {wanted[0]} and {wanted[1]}"
            )
        self.hello, self._is_new = hello, False
        self._sizes = wanted
        return True

    def _check(self, message: Message) -> None:
        """Lose a device whose message is not an observation of the right size."""
        if message.kind != OBSERVATION or message.size != self._sizes[0]:
            raise self._lose(
                f"it sent {chr(message.kind)} with {message.size} numbers, not an observation of "
                f"{self._sizes[0]}"
            )

    def _next(self, *, wait: bool) -> Message | None:
        """Return the next message, if there is one; wait for it a bounded time if so told."""
        assert self._socket is not None
        silence = _PATIENCE if wait else self._silence
        end = time.monotonic() + silence
        try:
            while True:
                message = self._parser.next()
                if message is not None:
                    return message
                if self._budget == 0:
                    return None
                if wait:
                    self._socket.settimeout(max(end - time.monotonic(), 1e-3))
                received = self._socket.recv(_CHUNK)
                self._budget -= 1
                if not received:
                    raise self._lose("it closed the connection")
                self._parser.feed(received)
                if time.monotonic() > end:
                    raise self._lose(f"it sent no whole message for {silence:g} s")
        except BlockingIOError:
            return None
        except TimeoutError as error:
            raise self._lose(f"it was silent for {silence:g} s") from error
        except WireError as error:
            raise self._lose(str(error)) from error
        except OSError as error:
            if error.errno == errno.ENOTCONN:  # Still connecting, on some systems.
                return None
            raise self._lose(_describe(error)) from error
        finally:
            if wait and self._socket is not None:
                self._socket.settimeout(0.0)

    def _send(self, message: bytes) -> None:
        """Send a message whole or, if the peer does not read, not at all."""
        if self._socket is None or self._is_new:
            return
        if len(self._unsent) < _BACKLOG:
            self._unsent += message
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(_describe(error))

    def _lose(self, why: str) -> LostDeviceError:
        """Close a connection that is of no use, and return the error that says so."""
        self.num_lost += not self._is_new
        self._close(why)
        return LostDeviceError(f"the device at {self._name} was lost: {why}")

    def _close(self, why: str) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._why, self.is_idle = None, why, True


def _describe(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
