"""The messages between a controller and a device, over a stream of bytes.

All is little-endian. A message is 16 bytes and then its numbers, in single precision:

    offset  size  content
    0       4     the letters EMP1
    4       1     kind: H (hello), O (observation), A (action), B (heartbeat)
    5       1     flags, see `Flag`
    6       2     number of numbers n, at most 1024
    8       8     time of the sender's clock in nanoseconds
    16      4 n   numbers

The device begins with a hello: the sizes of observation and action, the interval in seconds, then
the lower and the upper limit of each action.
"""

import struct
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float32

MAGIC = b"EMP1"
MAX_NUMBERS = 1024
"""Most numbers in a message."""

_HEADER = struct.Struct("<4sBBHQ")
_SINGLE = np.dtype("<f4")

MAX_MESSAGE = _HEADER.size + MAX_NUMBERS * _SINGLE.itemsize
"""Bytes of the longest message."""

HELLO, OBSERVATION, ACTION, HEARTBEAT = b"HOAB"
"""Kinds of messages."""


class Flag(IntFlag):
    """Flags of an observation or, the last one, of a hello."""

    BEGIN = 1
    """The first of an episode: the controller is reset."""

    TERMINAL = 2
    """The last of an episode, which is a terminal state, such as a fall."""

    CUT = 4
    """The last of an episode that was cut."""

    LOCKSTEP = 128
    """The device sends one message in each cycle and waits for an action: an observation, or a
    heartbeat where the observation is missing."""


class WireError(ValueError):
    """What was received is no message; nothing that follows can be trusted."""


class Message(NamedTuple):
    """A message.

    Attributes:
        kind: One of `HELLO`, `OBSERVATION`, `ACTION` and `HEARTBEAT`.
        flags: See `Flag`.
        time: Time of the sender's clock in nanoseconds.
        content: The numbers, as bytes.
    """

    kind: int
    flags: int
    time: int
    content: bytes

    @property
    def size(self) -> int:
        """The number of numbers."""
        return len(self.content) // _SINGLE.itemsize

    @property
    def numbers(self) -> Float32[np.ndarray, " numbers"]:
        """The numbers; decoded only if they are asked for, since many messages are superseded."""
        return np.frombuffer(self.content, _SINGLE).astype(np.float32)


def pack(kind: int, numbers: object = (), *, flags: int = 0, time: int = 0) -> bytes:
    """Encode a message.

    Args:
        kind: The kind.
        numbers: Anything that NumPy takes as a vector.
        flags: The flags.
        time: Time of the clock in nanoseconds.
    """
    values = np.asarray(numbers, _SINGLE)
    if values.ndim != 1 or len(values) > MAX_NUMBERS:
        raise ValueError(
            f"Expected a message of at most {MAX_NUMBERS} numbers; got the shape {values.shape}."
        )
    return _HEADER.pack(MAGIC, kind, flags, len(values), time) + values.tobytes()


class Parser:
    """Takes bytes as they come, and returns messages; it holds no more than was fed.

    A message that is not one ends it: where the next one begins cannot be known.
    """

    def __init__(self):
        self._buffer = bytearray()

    def feed(self, received: bytes | memoryview) -> None:
        """Take some bytes, from a part of a message to many of them."""
        self._buffer += received

    def next(self) -> Message | None:
        """Return the next message, or None if it is not complete.

        Raises:
            WireError: If it is no message.
        """
        buffer = self._buffer
        if not MAGIC.startswith(buffer[: len(MAGIC)]):
            raise WireError(f"Expected a message to begin with {MAGIC!r}; got {bytes(buffer[:4])}.")
        if len(buffer) < _HEADER.size:
            return None
        _, kind, flags, count, time = _HEADER.unpack_from(buffer)
        if kind not in (HELLO, OBSERVATION, ACTION, HEARTBEAT):
            raise WireError(f"Expected a kind of message, one of H, O, A and B; got {kind}.")
        if count > MAX_NUMBERS:
            raise WireError(f"Expected at most {MAX_NUMBERS} numbers in a message; got {count}.")
        size = _HEADER.size + count * _SINGLE.itemsize
        if len(buffer) < size:
            return None
        content = bytes(buffer[_HEADER.size : size])
        del buffer[:size]
        return Message(kind, flags, time, content)


@final
@dataclass(frozen=True)
class Hello:
    """What a device says of itself.

    Attributes:
        observation_size: Numbers in an observation.
        action_size: Numbers in an action.
        interval: Seconds between observations.
        low: Lower limit of each action.
        high: Upper limit of each action.
        is_lockstep: Whether it waits for an action to each of its messages.
    """

    observation_size: int
    action_size: int
    interval: float
    low: tuple[float, ...]
    high: tuple[float, ...]
    is_lockstep: bool = False

    def pack(self) -> bytes:
        """Encode it."""
        numbers = (self.observation_size, self.action_size, self.interval, *self.low, *self.high)
        return pack(HELLO, numbers, flags=Flag.LOCKSTEP if self.is_lockstep else 0)

    @classmethod
    def read(cls, message: Message) -> "Hello":
        """Decode and check it.

        Raises:
            WireError: If it is none.
        """
        numbers = message.numbers.astype(float)
        sizes = numbers[:2]
        usable = (
            message.kind == HELLO
            and len(numbers) >= 5
            and np.isfinite(numbers).all()
            and not (sizes % 1).any()
            and (sizes >= 1).all()
            and (sizes <= MAX_NUMBERS).all()
            and len(numbers) == 3 + 2 * sizes[1]
            and 1e-6 <= numbers[2] <= 1e6
        )
        if not usable:
            raise WireError(
                "Expected a hello of sizes, interval and limits of each action; got "
                f"{chr(message.kind)} with {len(numbers)} numbers."
            )
        low, high = numbers[3:].reshape(2, -1).tolist()
        is_lockstep = bool(message.flags & Flag.LOCKSTEP)
        return cls(
            int(sizes[0]),
            int(sizes[1]),
            float(f"{numbers[2]:.7g}"),
            tuple(low),
            tuple(high),
            is_lockstep,
        )
