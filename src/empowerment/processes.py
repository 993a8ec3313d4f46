"""Several processes that train one run together, on one machine or on many.

The user or SLURM starts them all by the same command. Process 0 listens at an address that all
know, and compares settings before any of them computes. Their connections stay open: what process 0
alone can know goes through them, and whoever loses one knows that the training is over.
"""

import _thread
import atexit
import contextlib
import json
import os
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax

from empowerment.errors import EmpowermentError
from empowerment.settings import difference

JOIN_SECONDS = 120.0
"""Seconds within which all processes have to be there; a cluster may start them one by one."""

_HELLO_SECONDS = 10.0
"""Seconds within which whoever connects has to say who it is."""

_GRACE_SECONDS = 15.0
"""Seconds that a process has to end by itself once another one is lost."""

_NOTICE_SECONDS = 2.0
"""Seconds within which it is noticed that another process is lost."""

_MAX_HELLO = 1 << 20
_LENGTH = struct.Struct(">Q")
_END = b""
"""What process 0 sends when the training is over, and to welcome a process."""


@dataclass
class Team:
    """The processes of a run, as one of them sees them.

    Attributes:
        number: Which one this is; process 0 has the run folder.
        count: How many there are.
        lost: What to say of another process that has ended before its time, once one has.
    """

    number: int = 0
    count: int = 1
    lost: str | None = None
    _connections: list[socket.socket] = field(default_factory=list)
    _received: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue)
    _is_over: bool = False

    @property
    def is_first(self) -> bool:
        """Whether this process writes the run folder and acts in the environment."""
        return self.number == 0

    def share(self, make: Callable[[], bytes]) -> bytes:
        """Compute something in process 0, and return it in all."""
        if self.is_first:
            made = make()
            for connection in self._connections:
                _send(connection, made)
            return made
        received = self._received.get()
        if received is None:
            raise EmpowermentError(str(self.lost))
        return received

    def watch(self) -> None:
        """Receive in threads what other processes send, and learn when one is lost."""
        for other, connection in enumerate(self._connections, start=int(self.is_first)):
            threading.Thread(target=self._watch, args=(connection, other), daemon=True).start()

    def _watch(self, connection: socket.socket, other: int) -> None:
        """Receive what a process sends; end this one if that is lost."""
        with contextlib.suppress(OSError):
            while (received := _receive(connection)) is not None:
                self._received.put(received)
        if self._is_over:
            return
        self.lost = (
            f"Expected all {self.count} processes to train to the end; process {other} has ended, "
            "for a reason that it says itself. Start all again with --resume."
        )
        _thread.interrupt_main()
        self._received.put(None)
        time.sleep(_GRACE_SECONDS)
        if not self._is_over:  # It waits for the other one in the depths of a library.
            print(f"empower: {self.lost}", file=sys.stderr, flush=True)
            os._exit(2)

    def _finish(self) -> None:
        """Wait until all processes are done."""
        self.share(lambda: _END)
        self._is_over = True
        jax.distributed.shutdown()


ALONE = Team()
"""A run that one process trains."""


@contextlib.contextmanager
def joined(
    address: str, *, number: int, count: int, settings: dict[str, Any], seconds: float
) -> Iterator[Team]:
    """Join the processes of a run; it has to come before anything is computed.

    Args:
        address: Where process 0 listens, HOST:PORT; JAX uses it, too, and further ports of its own.
        number: Which process this is, from 0.
        count: How many there are.
        settings: What has to be the same in all of them.
        seconds: How long to wait for the others.

    Raises:
        ValueError: If one does not come in time, or has other settings.
        EmpowermentError: If one is lost later.
    """
    host, port = _parse(address)
    if not 0 <= number < count:
        raise ValueError(
            f"Expected the number of a process to be one of 0 to {count - 1}; got {number}."
        )
    if number == 0:
        connections = _welcome(port, address, count, settings, seconds)
    else:
        connections = [_call(host, port, number, count, settings, seconds)]
    team = Team(number, count, _connections=connections)
    try:
        jax.config.update("jax_enable_preemption_service", val=False)  # SIGTERM ends a process.
        jax.distributed.initialize(address, count, number, initialization_timeout=int(seconds))
        team.watch()
        yield team
        team._finish()
    except BaseException as error:
        if isinstance(error, jax.errors.JaxRuntimeError):  # It may be of a connection of JAX's own.
            time.sleep(_NOTICE_SECONDS)
        # JAX would wait for the others at the end of the process, and abort it.
        interrupted = isinstance(error, KeyboardInterrupt) and team.lost is None
        atexit.register(_end, 130 if interrupted else 2)
        if team.lost is not None:
            raise EmpowermentError(team.lost) from None
        raise
    finally:
        team._is_over = True
        for connection in connections:
            connection.close()


def _end(code: int) -> None:
    sys.stdout.flush()
    os._exit(code)


def _parse(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"Expected the address of process 0 as HOST:PORT; got {address!r}.")
    return host, int(port)


def _welcome(
    port: int, address: str, count: int, settings: dict[str, Any], seconds: float
) -> list[socket.socket]:
    """Wait for all other processes, and compare their settings with those of this one."""
    deadline, found = time.monotonic() + seconds, dict[int, socket.socket]()
    try:
        with _listen(port) as listener:
            while len(found) < count - 1:
                connection = _accept(listener, deadline)
                if connection is None:
                    missing = ", ".join(str(i) for i in range(1, count) if i not in found)
                    raise ValueError(
                        f"Expected {count} processes at {address} within {seconds:.0f} s; number "
                        f"{missing} did not come. Start it by the same command with its "
                        "--process-id."
                    )
                hello = _hello(connection)
                if hello is None:  # A stranger.
                    connection.close()
                    continue
                number = hello["number"]
                if number in found or not 0 < number < count:
                    wrong = f"Expected each process once, 1 to {count - 1}; got number {number}."
                elif hello["count"] != count:
                    wrong = f"Expected {count} processes; process {number} has {hello['count']}."
                elif hello["settings"] != (ours := json.loads(json.dumps(settings))):
                    wrong = (
                        f"Expected the same settings in all processes; from process 0 to {number}, "
                        f"{difference(ours, hello['settings'])}."
                    )
                else:
                    found[number] = connection
                    continue
                found[-1] = connection
                raise ValueError(wrong)
        for connection in found.values():
            _send(connection, _END)
    except BaseException as error:
        for connection in found.values():
            with contextlib.suppress(OSError):
                _send(connection, str(error).encode())
            connection.close()
        raise
    return [found[number] for number in sorted(found)]


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("", port))
    except OSError as error:
        raise ValueError(
            f"Expected port {port} to be free on the machine of process 0; it is not "
            f"({error.strerror}). Choose another one."
        ) from None


def _accept(listener: socket.socket, deadline: float) -> socket.socket | None:
    """Wait for a process; return none if the time is over."""
    listener.settimeout(max(deadline - time.monotonic(), 0.01))
    try:
        return listener.accept()[0]
    except TimeoutError:
        return None


def _hello(connection: socket.socket) -> dict[str, Any] | None:
    """Read who connects; return none if it is no process of ours."""
    connection.settimeout(_HELLO_SECONDS)
    try:
        hello = json.loads(_receive(connection, most=_MAX_HELLO) or b"")
        connection.settimeout(None)
        numbers = hello["number"], hello["count"]
        return hello if all(isinstance(each, int) for each in numbers) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _call(
    host: str, port: int, number: int, count: int, settings: dict[str, Any], seconds: float
) -> socket.socket:
    """Connect to process 0, and wait until all are there."""
    deadline, why = time.monotonic() + seconds, "it does not answer"
    while time.monotonic() < deadline:
        try:
            connection = socket.create_connection((host, port), timeout=_HELLO_SECONDS)
        except OSError as error:
            why = error.strerror or str(error)
            time.sleep(0.2)
            continue
        try:
            hello = {"number": number, "count": count, "settings": settings}
            _send(connection, json.dumps(hello).encode())
            connection.settimeout(max(deadline - time.monotonic(), 0.0) + _HELLO_SECONDS)
            answer = _receive(connection, most=_MAX_HELLO)
        except (OSError, ValueError) as error:
            answer, why = None, f"what is there does not answer as one: {error}"
        if answer == _END:
            connection.settimeout(None)
            return connection
        connection.close()
        if answer:
            raise ValueError(answer.decode("utf-8", "replace"))
        break
    raise ValueError(
        f"Expected process 0 at {host}:{port} within {seconds:.0f} s; {why.rstrip('.')}. Start it "
        "by the same command with --process-id 0."
    )


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(data)) + data)


def _receive(connection: socket.socket, *, most: int | None = None) -> bytes | None:
    """Read what the other side sent; return none if it has closed the connection.

    Raises:
        ValueError: If it is too long to be meant.
    """
    head = _read(connection, _LENGTH.size)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    if most is not None and size > most:
        raise ValueError("Expected a short message; got a long one.")
    return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)
