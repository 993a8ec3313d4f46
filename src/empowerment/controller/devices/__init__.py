"""Devices: what a controller reads observations from and writes actions to."""

from empowerment.controller.devices.base import (
    Device as Device,
    LostDeviceError as LostDeviceError,
    RemoteDevice as RemoteDevice,
)
from empowerment.controller.devices.environment import EnvironmentDevice as EnvironmentDevice
from empowerment.controller.devices.socket_device import SocketDevice as SocketDevice
from empowerment.controller.devices.spec import DeviceSpec as DeviceSpec
