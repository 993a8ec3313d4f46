"""What is asked of a device, and how it says that it is gone."""

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from empowerment.errors import EmpowermentError


class LostDeviceError(EmpowermentError):
    """The device cannot be reached any more; a control loop answers with the safe action."""


@runtime_checkable
class Device(Protocol):
    """Real or simulated hardware: two methods, neither of which should block.

    A device may also have a property `is_idle`, whether it is between two episodes: a control loop
    then sends the safe action, and makes no step. `read` may raise a `LostDeviceError`, which is a
    fault, and be called again.
    """

    def read(self) -> Any:
        """Return the latest observation, or None if there is no new one."""
        ...

    def write(self, action: Float[np.ndarray, " action"]) -> None:
        """Apply an action."""
        ...


@runtime_checkable
class RemoteDevice(Device, Protocol):
    """A device that may be gone, and that says when episodes begin and end.

    Attributes:
        restarted: Callback at the beginning of each episode but the first.
        is_idle: Whether it is between two episodes.
        ended: `terminated` or `truncated` in the cycle in which `read` returned the last
            observation of an episode, else None.
        num_episodes: Episodes so far.
        num_lost: How often the connection was lost.
    """

    restarted: Callable[[], None]
    is_idle: bool
    ended: Literal["terminated", "truncated"] | None
    num_episodes: int
    num_lost: int

    @property
    def interval(self) -> float | None:
        """Return the seconds between observations, if they are known."""
        ...

    @property
    def limits(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Return the lower and the upper limits of its actions, if they are known."""
        ...

    @property
    def is_lockstep(self) -> bool:
        """Return whether the device waits in each cycle."""
        ...

    def connect(self) -> None:
        """Wait until it is there.

        Raises:
            ValueError: If it does not appear.
        """
        ...

    def clock(self) -> int:
        """Return the time of a monotonic clock in nanoseconds; that of the device in lock-step."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


def is_idle(device: Device) -> bool:
    """Return whether a device is between two episodes."""
    return bool(getattr(device, "is_idle", False))
