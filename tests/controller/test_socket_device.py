"""A device behind a socket: messages in parts, garbage, floods, silence, death and return."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from controllers_for_tests import filter_bundle
from hypothesis import given
from peers_for_tests import HELLO, Peer, until

from empowerment.controller import Controller, Safety
from empowerment.controller.devices import Device, LostDeviceError, RemoteDevice, SocketDevice
from empowerment.controller.devices.spec import DeviceSpec
from empowerment.controller.devices.wire import (
    ACTION,
    HEARTBEAT,
    MAX_MESSAGE,
    MAX_NUMBERS,
    OBSERVATION,
    Flag,
    Hello,
    Parser,
    WireError,
    pack,
)
from empowerment.controller.loop import run_in_step, run_loop

FILTER = filter_bundle()
SAFE = (-1.0, 1.0)


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.close()


def linked(peer: Peer, **options: Any) -> SocketDevice:
    """A device that is connected to a peer, which may be slow on a busy machine."""
    options.setdefault("silence", 60.0)
    device = SocketDevice("127.0.0.1", peer.port, observation_size=5, action_size=2, **options)
    acceptor = threading.Thread(target=peer.accept)
    acceptor.start()
    device.connect()
    acceptor.join()
    return device


def reads(device: SocketDevice) -> np.ndarray:
    """Wait for an observation."""
    end = time.monotonic() + 10.0
    while (seen := device.read()) is None:
        assert time.monotonic() < end
        time.sleep(0.001)
    return seen


def is_lost(device: SocketDevice) -> bool:
    try:
        device.read()
    except LostDeviceError:
        return True
    return False


def make(**safety: Any) -> Controller:
    return Controller(FILTER, safety=Safety(safe_action=SAFE, **safety), engine="numpy")


# The format


@given(
    st.sampled_from([OBSERVATION, ACTION, HEARTBEAT]),
    st.lists(st.floats(width=32, allow_nan=False), max_size=40),
    st.integers(0, 255),
    st.integers(0, 2**64 - 1),
    st.integers(1, 60),
)
def test_messages_survive_being_cut_anywhere(
    kind: int, numbers: list[float], flags: int, time: int, piece: int
):
    parser, found = Parser(), []
    text = 3 * pack(kind, numbers, flags=flags, time=time)
    for start in range(0, len(text), piece):
        parser.feed(text[start : start + piece])
        while (message := parser.next()) is not None:
            found.append(message)
    assert len(found) == 3
    for message in found:
        assert (message.kind, message.flags, message.time) == (kind, flags, time)
        np.testing.assert_array_equal(message.numbers, np.array(numbers, np.float32))


def test_the_bytes_are_those_that_the_docs_say():
    text = pack(ACTION, [1.5, -2.0], flags=4, time=0x0102030405060708)
    assert text == b"EMP1A\x04\x02\x00\x08\x07\x06\x05\x04\x03\x02\x01" + struct.pack(
        "<2f", 1.5, -2.0
    )
    assert MAX_MESSAGE == 16 + 4 * MAX_NUMBERS == 4112


@given(st.binary(max_size=64))
def test_garbage_is_no_message_or_incomplete(text: bytes):
    parser = Parser()
    parser.feed(text)
    try:
        message = parser.next()
    except WireError:
        return
    assert message is not None or b"EMP1".startswith(text[:4])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "to begin with"),
        (b"\x00", "to begin with"),
        (b"EMP1Z" + bytes(11), "one of H, O, A and B"),
        (b"EMP1O\x00\xff\xff" + bytes(8), "at most 1024 numbers"),
    ],
)
def test_what_is_no_message_is_refused(text: bytes, complaint: str):
    parser = Parser()
    parser.feed(text)
    with pytest.raises(WireError, match=complaint):
        parser.next()


def test_no_message_is_too_long():
    with pytest.raises(ValueError, match="at most 1024 numbers"):
        pack(OBSERVATION, np.zeros(1025))
    with pytest.raises(ValueError, match="at most 1024 numbers"):
        pack(OBSERVATION, np.zeros((2, 2)))


@pytest.mark.parametrize(
    "numbers",
    [
        (),
        (5, 2, 0.02),
        (5, 2, 0.02, 0, 0, 1),
        (5.5, 2, 0.02, 0, 0, 1, 1),
        (0, 2, 0.02, 0, 0, 1, 1),
        (5, 2, 0.0, 0, 0, 1, 1),
        (5, 2, np.nan, 0, 0, 1, 1),
        (5, 1e30, 0.02, 0, 0, 1, 1),
        (5, -1, 0.02, 0, 0),
    ],
)
def test_a_hello_that_makes_no_sense_is_refused(numbers: tuple[float, ...]):
    parser = Parser()
    parser.feed(pack(b"H"[0], numbers))
    message = parser.next()
    assert message is not None
    with pytest.raises(WireError, match="Expected a hello"):
        Hello.read(message)


# The device


def test_the_newest_observation_counts_and_actions_arrive(peer: Peer):
    device = linked(peer)
    assert isinstance(device, Device)
    assert isinstance(device, RemoteDevice)
    assert device.hello == HELLO
    assert device.interval == 0.02
    assert not device.is_lockstep
    assert device.is_idle
    assert device.read() is None
    for value in range(1, 6):
        peer.observe(value, Flag.BEGIN if value == 1 else 0, time=value)
    until(lambda: device.read() is not None or device.time == 5)
    assert device.time == 5
    assert not device.is_idle
    assert device.num_episodes == 1
    assert device.read() is None
    device.beat()
    device.write(np.array([0.5, 2.0], np.float32))
    assert peer.receive().kind == HEARTBEAT
    message = peer.receive()
    assert message.kind == ACTION
    np.testing.assert_array_equal(message.numbers, [0.5, 2.0])
    device.close()


def test_a_message_in_parts_is_waited_for(peer: Peer):
    device = linked(peer)
    text = pack(OBSERVATION, np.arange(5.0), flags=Flag.BEGIN)
    for start in range(len(text) - 1):
        peer.send_bytes(text[start : start + 1])
        assert device.read() is None
    peer.send_bytes(text[-1:])
    np.testing.assert_array_equal(reads(device), np.arange(5.0))
    device.close()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"HTTP/1.1 400 Bad Request", "to begin with"),
        (pack(OBSERVATION, np.zeros(4)), "O with 4 numbers"),
        (pack(ACTION, np.zeros(5)), "A with 5 numbers"),
        (b"EMP1O\x00\xff\xff" + bytes(200_000), "at most 1024"),
        (HELLO.pack(), "H with 7 numbers"),
    ],
    ids=["http", "size", "kind", "oversized", "hello"],
)
def test_whatever_is_no_observation_ends_the_connection(peer: Peer, text: bytes, why: str):
    device = linked(peer)
    peer.send_bytes(text)
    with pytest.raises(LostDeviceError, match=why):
        until(lambda: device.read() is not None)
    assert device.num_lost == 1
    assert device.is_idle
    device.write(np.zeros(2, np.float32))  # It goes nowhere, and that is no error.
    device.close()


def test_a_flood_neither_blocks_nor_fills_the_memory(peer: Peer):
    device = linked(peer)
    stop = threading.Event()
    message = 300 * pack(OBSERVATION, np.ones(5))
    sent = 0

    def flood() -> None:
        nonlocal sent
        assert peer.connection is not None
        peer.connection.settimeout(0.1)
        while not stop.is_set():
            try:
                sent += peer.connection.send(message)
            except TimeoutError:
                continue

    flooder = threading.Thread(target=flood)
    flooder.start()
    try:
        end = time.monotonic() + 30.0
        while sent < 1 << 20:
            device.read()
            assert len(device._parser._buffer) < MAX_MESSAGE
            assert time.monotonic() < end
    finally:
        stop.set()
        flooder.join()
    device.close()


def test_a_peer_that_reads_nothing_fills_no_memory_and_gets_whole_messages(peer: Peer):
    peer.server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
    device = linked(peer)
    action = np.array([0.25, 1.0], np.float32)
    assert device._socket is not None
    device._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
    for _ in range(50_000):
        device.write(action)
        if len(device._unsent) > 1 << 16:
            break
    assert 1 << 16 <= len(device._unsent) < (1 << 16) + MAX_MESSAGE
    for _ in range(1000):
        np.testing.assert_array_equal(peer.receive().numbers, action)
    device.close()


def test_silence_is_death_and_heartbeats_are_life(peer: Peer):
    device = linked(peer, silence=0.2)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        peer.beat()
        assert device.read() is None
        time.sleep(0.01)
    with pytest.raises(LostDeviceError, match="silent for"):
        until(lambda: device.read() is not None)
    device.close()


def test_episodes_begin_and_end_one_after_the_other(peer: Peer):
    restarts = []
    device = linked(peer, restarted=lambda: restarts.append(device.num_episodes))
    peer.observe(1, Flag.BEGIN)
    peer.observe(2, Flag.TERMINAL)
    peer.observe(3, Flag.BEGIN)
    peer.observe(4)
    peer.observe(5, Flag.CUT)
    peer.observe(6)  # Of no episode.
    time.sleep(0.05)  # All of it is there.
    assert reads(device)[0] == 2
    assert (device.ended, device.is_idle) == ("terminated", True)
    assert reads(device)[0] == 5
    assert (device.ended, device.is_idle) == ("truncated", True)
    assert restarts == [2]
    assert reads(device)[0] == 6
    assert (device.ended, device.is_idle, device.num_episodes) == (None, True, 2)
    device.close()


def test_it_connects_again_and_waits_for_an_episode_to_begin(peer: Peer):
    device = linked(peer)
    peer.observe(1, Flag.BEGIN)
    reads(device)
    peer.drop()
    until(lambda: is_lost(device))
    acceptor = threading.Thread(target=peer.accept)
    acceptor.start()
    until(lambda: not is_lost(device))
    acceptor.join()
    peer.observe(2)
    assert reads(device)[0] == 2
    assert device.is_idle
    peer.observe(3, Flag.BEGIN)
    assert reads(device)[0] == 3
    assert not device.is_idle
    assert (device.num_lost, device.num_episodes) == (1, 2)
    device.close()


def test_nobody_there_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    device = SocketDevice("127.0.0.1", port)
    with pytest.raises(ValueError, match=f"device at 127.0.0.1:{port}.*Start it first"):
        device.connect(timeout=0.3)
    with pytest.raises(ValueError, match="which is not known"):
        SocketDevice("no.such.host.invalid", 5)


def test_another_size_is_refused(peer: Peer):
    device = SocketDevice("127.0.0.1", peer.port, observation_size=3)
    acceptor = threading.Thread(target=peer.accept)
    acceptor.start()
    with pytest.raises(ValueError, match="5 observed numbers and 2 actions, not 3 and 2"):
        device.connect(timeout=0.5)
    acceptor.join()


# Loops


def test_a_device_that_dies_is_answered_by_the_safe_action_in_the_same_cycle(peer: Peer):
    """The device's last message is known; every action that follows it is the safe one."""
    device, controller, written = linked(peer), make(max_missing=1000), []
    device.restarted = controller.reset
    peer.observe(0.1, Flag.BEGIN)

    class Tap:
        """Notes what the device was sent and, of each cycle, whether it was gone."""

        is_idle = property(lambda self: device.is_idle)

        def read(self) -> np.ndarray | None:
            if len(written) == 10:
                peer.drop()
                until(lambda: _is_closed(device))
            return device.read()

        def write(self, action: np.ndarray) -> None:
            written.append(action.tolist())
            device.write(action)

    run_loop(controller, Tap(), rate=200.0, duration=60.0, stop=lambda: len(written) > 20)
    assert len(written) > 20
    assert SAFE not in [tuple(each) for each in written[:10]]
    assert {tuple(each) for each in written[10:]} == {SAFE}
    assert "was lost" in str(controller.fault)
    assert controller.num_faults == 1
    device.close()


def _is_closed(device: SocketDevice) -> bool:
    """Whether the news of the end has arrived; nothing is taken."""
    assert device._socket is not None
    try:
        return not device._socket.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_device_that_returns_is_controlled_once_an_episode_begins(peer: Peer):
    device, controller = linked(peer), make(max_missing=100_000)
    device.restarted = controller.reset
    stop = threading.Event()
    loop = threading.Thread(
        target=run_loop,
        args=(controller, device),
        kwargs={"rate": 100.0, "duration": 60.0, "stop": stop.is_set},
    )
    peer.observe(0.1, Flag.BEGIN)
    loop.start()
    try:
        until(lambda: tuple(peer.receive().numbers) != SAFE)
        peer.drop()
        peer.accept()
        assert all(tuple(peer.receive().numbers) == SAFE for _ in range(5))
        assert "was lost" in str(controller.fault)
        peer.observe(0.1, Flag.BEGIN)
        until(lambda: tuple(peer.receive().numbers) != SAFE)
        assert controller.fault is None
    finally:
        stop.set()
        loop.join(timeout=30.0)
    assert not loop.is_alive()
    while tuple(peer.receive().numbers) != SAFE:  # The last one is.
        pass
    device.close()


def test_in_lock_step_each_message_is_answered_and_heartbeats_are_missing_observations():
    peer = Peer(Hello(5, 2, 0.02, (-2.0, 0.5), (1.0, 3.5), is_lockstep=True))
    device = linked(peer)
    assert device.is_lockstep
    controller = Controller(FILTER, engine="numpy", clock=device.clock)
    device.restarted = controller.reset
    cycles: list[int] = []
    loop = threading.Thread(
        target=lambda: cycles.append(run_in_step(controller, device, cycles=100))
    )
    loop.start()
    answers = []
    plan = [Flag.BEGIN, None, 0, None, None, Flag.TERMINAL, Flag.BEGIN, 0]
    for index, flags in enumerate(plan):
        if flags is None:
            peer.beat()
        else:
            peer.observe(0.1 * index, flags, time=index)
        answers.append(peer.receive())
    assert controller.num_missing == 3
    peer.drop()
    loop.join(timeout=30.0)
    assert not loop.is_alive()
    assert cycles == [len(plan)]
    assert controller.num_steps == len(plan) - 1  # None at the end of the episode.
    assert "was lost" in str(controller.fault)
    np.testing.assert_array_equal(answers[5].numbers, controller.safe_action)
    # The same as without a socket.
    again = Controller(FILTER, engine="numpy")
    expected = [again.step(x if x is None else np.full(5, x)) for x in (0.0, None, 0.2, None, None)]
    again.reset()
    expected += [again.step(np.full(5, x)) for x in (0.6, 0.7)]
    found = [answer.numbers for index, answer in enumerate(answers) if index != 5]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    peer.close()
    device.close()


# By name


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("env:Pendulum-v1", DeviceSpec("env", "Pendulum-v1")),
        ("env:my_module:Mine-v0", DeviceSpec("env", "my_module:Mine-v0")),
        ("socket:127.0.0.1:5005", DeviceSpec("socket", "127.0.0.1", 5005)),
        ("socket:[::1]:80", DeviceSpec("socket", "[::1]", 80)),
        ("dds", DeviceSpec("dds")),
        ("dds:7", DeviceSpec("dds", number=7)),
    ],
)
def test_devices_have_names(text: str, spec: DeviceSpec):
    assert DeviceSpec.parse(text) == spec
    assert DeviceSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    "text", ["", "env:", "socket:here", "socket:h:0", "socket:h:65536", "dds:233", "usb:1", "dds:x"]
)
def test_other_names_are_refused(text: str):
    with pytest.raises(ValueError, match="Expected a device to be env:ID, socket:HOST:PORT"):
        DeviceSpec.parse(text)
