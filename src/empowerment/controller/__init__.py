"""Real-time control without JAX: filter and policy, safety, control loop, export."""

from empowerment.controller.bundle import Bundle as Bundle, Description as Description
from empowerment.controller.bundle_io import (
    read_bundle as read_bundle,
    write_bundle as write_bundle,
)
from empowerment.controller.controller import Controller as Controller
from empowerment.controller.safety import Safety as Safety
