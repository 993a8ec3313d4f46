"""A device behind DDS in a process of its own: it adds up the commands it gets.

Joint states are published at 100 Hz; from the first command on the joints are in the other order
in every other message. A device takes the order of the first message that it hears.
With the third argument `once` it falls silent after two seconds.
"""

import sys
import time

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from empowerment.controller.devices.dds_device import (
    COMMANDS,
    STATES,
    Float64MultiArray,
    Header,
    JointState,
    Time,
)


def main(domain: int, seconds: float) -> None:
    participant = DomainParticipant(domain)
    best = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(1))
    writer = DataWriter(participant, Topic(participant, STATES, JointState), qos=best)
    commands = Topic(participant, COMMANDS, Float64MultiArray)
    reader = DataReader(participant, commands)
    total, last, count = 0.0, [0.0, 0.0], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for command in reader.take(N=100):
            if isinstance(command, Float64MultiArray):
                total, last = total + 1, list(command.data)
        names, position, velocity = ["hip", "knee"], [last[0], total], [last[1], 7.0]
        if total and count % 2:
            names, position, velocity = names[::-1], position[::-1], velocity[::-1]
        header = Header(stamp=Time(sec=count, nanosec=0), frame_id="")
        writer.write(
            JointState(header=header, name=names, position=position, velocity=velocity, effort=[])
        )
        count += 1
        time.sleep(0.01)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
