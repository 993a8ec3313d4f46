"""Devices by name, as on the command line."""

from dataclasses import dataclass
from typing import Literal, final

Kind = Literal["env", "socket", "dds"]

FORMS = "env:ID, socket:HOST:PORT, or dds[:DOMAIN]"


@final
@dataclass(frozen=True)
class DeviceSpec:
    """Names a device.

    Attributes:
        kind: What it is.
        name: Id of the environment, or host.
        number: Port, or DDS domain.
    """

    kind: Kind
    name: str = ""
    number: int = 0

    @classmethod
    def parse(cls, text: str) -> "DeviceSpec":
        """Read `env:ID`, `socket:HOST:PORT` or `dds[:DOMAIN]`.

        Raises:
            ValueError: If it is none of them.
        """
        kind, _, rest = text.partition(":")
        if kind == "env" and rest:
            return cls("env", rest)
        if kind == "socket":
            host, _, port = rest.rpartition(":")
            if host and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16:
                return cls("socket", host, int(port))
        if kind == "dds" and (not rest or (rest.isascii() and rest.isdigit() and int(rest) <= 232)):
            return cls("dds", number=int(rest or 0))
        raise ValueError(f"Expected a device to be {FORMS}; got {text!r}.")

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        if self.kind == "socket":
            return f"socket:{self.name}:{self.number}"
        return f"env:{self.name}" if self.kind == "env" else f"dds:{self.number}"
