"""A device behind DDS, with the topics and types of ROS 2; it needs the package cyclonedds."""

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl.types import float64, int32, sequence, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from jaxtyping import Float

from empowerment.controller.devices.base import LostDeviceError
from empowerment.controller.devices.socket_device import CONNECT_TIMEOUT, SILENCE

STATES, COMMANDS = "rt/joint_states", "rt/commands"
"""Topics: those that ROS 2 calls /joint_states and /commands."""

_MOST = 64
"""Messages that are taken in one call of `read`."""


def _struct(package: str, kind: str, /, **fields: Any) -> Any:
    """Build a type of messages; with classes of our own, checks of types at run time disagree."""
    return make_idl_struct(kind, f"{package}::msg::dds_::{kind}_", fields)


Time = _struct("builtin_interfaces", "Time", sec=int32, nanosec=uint32)
Header = _struct("std_msgs", "Header", stamp=Time, frame_id=str)
JointState = _struct(
    "sensor_msgs",
    "JointState",
    header=Header,
    name=sequence[str],
    position=sequence[float64],
    velocity=sequence[float64],
    effort=sequence[float64],
)
MultiArrayDimension = _struct(
    "std_msgs", "MultiArrayDimension", label=str, size=uint32, stride=uint32
)
MultiArrayLayout = _struct(
    "std_msgs", "MultiArrayLayout", dim=sequence[MultiArrayDimension], data_offset=uint32
)
Float64MultiArray = _struct(
    "std_msgs", "Float64MultiArray", layout=MultiArrayLayout, data=sequence[float64]
)


class DdsDevice:
    """Reads joint states, and writes commands.

    An observation is the positions of all joints and then their velocities or, if the controller
    observes half as many numbers, the positions alone. Joints are in the order of the first
    message, and are told by their names from then on. There are no episodes: a fault stays.

    Args:
        domain: The DDS domain, as in ROS_DOMAIN_ID.
        observation_size: Numbers in an observation.
        silence: Seconds without a message after which the device counts as dead.

    Attributes:
        restarted: Not called.
        is_idle: Whether nothing has been observed yet.
        ended: None.
        num_episodes: 1 from the first message on.
        num_lost: How often it was silent for too long.
        interval: None: messages do not say it.
        limits: None, likewise.
        is_lockstep: False.
    """

    interval = None
    limits = None
    is_lockstep = False

    def __init__(self, domain: int, *, observation_size: int, silence: float = SILENCE):
        self._size, self._silence = observation_size, silence
        self._participant = DomainParticipant(domain)
        newest = Policy.History.KeepLast(1)
        self._reader = DataReader(
            self._participant,
            Topic(self._participant, STATES, JointState),
            qos=Qos(Policy.Reliability.BestEffort, newest),
        )
        # A subscriber of ROS 2 asks for reliable messages by default.
        self._writer = DataWriter(
            self._participant,
            Topic(self._participant, COMMANDS, Float64MultiArray),
            qos=Qos(Policy.Reliability.Reliable(duration(milliseconds=0)), newest),
        )
        self._names: list[str] | None = None
        self._heard: float | None = None
        self._is_lost = False
        self.restarted: Callable[[], None] = lambda: None
        self.is_idle = True
        self.ended: Literal["terminated", "truncated"] | None = None
        self.num_episodes = self.num_lost = 0

    def connect(self, *, timeout: float | None = None) -> None:
        """Wait for the first message, and for somebody who takes commands.

        Raises:
            ValueError: If none comes, or it has other sizes than the controller, or nobody does.
        """
        timeout = CONNECT_TIMEOUT if timeout is None else timeout
        end, found, fits = time.monotonic() + timeout, "none came", False
        while time.monotonic() < end:
            for state in self._reader.take(N=_MOST):
                if not isinstance(state, JointState):
                    continue
                fits = self._numbers(state) is not None
                positions, velocities = len(state.position), len(state.velocity)
                found = f"one has {positions} positions and {velocities} velocities"
            if fits and self._writer.get_matched_subscriptions():
                self._heard, self.is_idle, self.num_episodes = time.monotonic(), False, 1
                return
            time.sleep(0.005)
        if fits:
            raise ValueError(
                f"Expected somebody to take commands at {COMMANDS} within {timeout:g} s; nobody "
                "does. Start what moves the robot first, in the same DDS domain."
            )
        raise ValueError(
            f"Expected joint states of {self._size} numbers at {STATES} within {timeout:g} s; "
            f"{found}. Start the device first, in the same DDS domain."
        )

    def read(self) -> Float[np.ndarray, " observation"] | None:
        """Return the newest observation, or None if there is no new one.

        Raises:
            LostDeviceError: If there was none for too long.
        """
        numbers = None
        for state in self._reader.take(N=_MOST):
            if isinstance(state, JointState):  # Else it says that its writer is gone.
                found = self._numbers(state)
                numbers = numbers if found is None else found
        now = time.monotonic()
        if numbers is not None:
            self._heard, self._is_lost = now, False
        if self._heard is not None and now - self._heard > self._silence:
            self.num_lost += not self._is_lost
            self._is_lost = True
            raise LostDeviceError(
                f"the device at {STATES} was lost: silent for {self._silence:g} s"
            )
        return numbers

    def write(self, action: Float[np.ndarray, " action"]) -> None:
        """Publish an action."""
        layout = MultiArrayLayout(dim=[], data_offset=0)
        self._writer.write(Float64MultiArray(layout=layout, data=np.asarray(action).tolist()))

    def clock(self) -> int:
        """Return the time of this machine in nanoseconds."""
        return time.monotonic_ns()

    def close(self) -> None:
        """Leave it to the garbage collector: DDS says goodbye when its objects go."""
        self.is_idle = True

    def _numbers(self, state: Any) -> Float[np.ndarray, " observation"] | None:
        """Return the numbers of a message in the order of the first, or None if they do not fit."""
        columns = [state.position, state.velocity]
        if len(state.position) == self._size:
            columns = [state.position]
        joints = len(state.position)
        if sum(map(len, columns)) != self._size or any(len(each) != joints for each in columns):
            return None
        names = list(state.name)
        if names and (len(names) != joints or len(set(names)) != joints):
            return None
        if self._names is None:
            self._names = names
        if names == self._names:
            order = range(joints)
        elif sorted(names) == sorted(self._names):
            order = [names.index(name) for name in self._names]
        else:
            return None
        with np.errstate(over="ignore"):
            return np.array([each[i] for each in columns for i in order], np.float32)
