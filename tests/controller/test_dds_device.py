"""A device behind DDS in another process, on loopback; its topics and types are those of ROS 2."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controllers_for_tests import filter_bundle
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic
from peers_for_tests import until

from empowerment.cli import main
from empowerment.controller import write_bundle
from empowerment.controller.devices import LostDeviceError, RemoteDevice
from empowerment.controller.devices.dds_device import (
    STATES,
    DdsDevice,
    Float64MultiArray,
    Header,
    JointState,
    Time,
)

LOOPBACK = (
    "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name='lo'/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto"
    "</ParticipantIndex><Peers><Peer address='127.0.0.1'/></Peers></Discovery></Domain>"
    "</CycloneDDS>"
)


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> int:
    """A domain of this process; all of its traffic stays on loopback."""
    monkeypatch.setenv("CYCLONEDDS_URI", LOOPBACK)
    return 1 + os.getpid() % 100


@pytest.fixture
def peer(domain: int) -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).with_name("dds_peer.py")
    process = subprocess.Popen([sys.executable, str(script), str(domain), "60"], text=True)
    yield process
    process.kill()
    process.wait()


def joints(**changes: list[Any]) -> Any:
    parts = {"name": ["a", "b"], "position": [1.0, 2.0], "velocity": [3.0, 4.0], "effort": []}
    return JointState(header=Header(Time(0, 0), ""), **(parts | changes))


def test_types_have_the_names_of_ros_2():
    assert JointState.__idl_typename__.replace(".", "::") == ("sensor_msgs::msg::dds_::JointState_")
    assert Float64MultiArray.__idl_typename__.replace(".", "::") == (
        "std_msgs::msg::dds_::Float64MultiArray_"
    )


def test_states_arrive_by_name_and_commands_are_heard(domain: int, peer: subprocess.Popen[str]):
    device = DdsDevice(domain, observation_size=4, silence=1.0)
    assert isinstance(device, RemoteDevice)
    device.connect(timeout=60.0)
    assert not device.is_idle
    action = np.array([1.5, -2.0], np.float32)

    def echoed() -> bool:
        device.write(action)
        time.sleep(0.01)
        seen = device.read()
        return seen is not None and seen[0] == 1.5

    until(echoed, seconds=60.0)
    seen = []
    until(lambda: seen.append(device.read()) or sum(x is not None for x in seen) == 20)
    for each in seen:  # In both orders of joints.
        if each is not None:
            assert (each[0], each[2], each[3]) == (1.5, -2.0, 7.0)
            assert each[1] > 0
    peer.kill()
    peer.wait()
    with pytest.raises(LostDeviceError, match="silent for 1 s"):
        until(lambda: device.read() is not None and False)
    assert device.num_lost == 1
    device.close()


def test_the_command_controls_it(
    domain: int,
    peer: subprocess.Popen[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("empowerment.controller.devices.dds_device.CONNECT_TIMEOUT", 60.0)
    write_bundle(filter_bundle(seen=4), tmp_path)
    words = f"control {tmp_path} --device dds:{domain} --rate 50 --duration 1 --engine numpy"
    main([*words.split(), "--json", "--no-monitor"])
    found = json.loads(capsys.readouterr().out)
    assert found["device"] == f"dds:{domain}"
    assert found["cycles"] > 0
    assert found["episodes"] == 1
    assert found["missing"] < found["cycles"]
    device = DdsDevice(domain, observation_size=4)
    device.connect(timeout=60.0)
    # The safe action was the last of the commands that it counts.
    last: list[Any] = []
    until(lambda: last.append(device.read()) or last[-1] is not None)
    assert last[-1][:2].max() > 1  # It may have begun with either order.
    device.close()


def test_what_does_not_fit_is_no_observation(domain: int):
    device = DdsDevice(domain, observation_size=4)
    assert device._numbers(joints(position=[1.0])) is None
    assert device._numbers(joints(velocity=[1.0])) is None
    assert device._numbers(joints(name=["a"])) is None
    assert device._numbers(joints(name=["a", "a"])) is None
    np.testing.assert_array_equal(device._numbers(joints()), [1, 2, 3, 4])
    np.testing.assert_array_equal(device._numbers(joints(name=["b", "a"])), [2, 1, 4, 3])
    assert device._numbers(joints(name=["b", "c"])) is None
    large = device._numbers(joints(position=[1e300, 2.0]))
    np.testing.assert_array_equal(large, [np.inf, 2, 3, 4])
    alone = DdsDevice(domain, observation_size=2)
    np.testing.assert_array_equal(alone._numbers(joints(name=[], velocity=[])), [1, 2])
    with pytest.raises(ValueError, match="Expected joint states of 2 numbers at rt/joint_states"):
        alone.connect(timeout=0.05)


def test_states_alone_are_not_enough(domain: int):
    domain += 1  # Nobody of the tests before is thought to be alive there.
    participant = DomainParticipant(domain)
    writer = DataWriter(participant, Topic(participant, STATES, JointState))
    device = DdsDevice(domain, observation_size=4)
    until(lambda: bool(writer.get_matched_subscriptions()), seconds=60.0)
    writer.write(joints())
    with pytest.raises(ValueError, match="Expected somebody to take commands at rt/commands"):
        device.connect(timeout=1.0)
    device.close()
