"""Real-time control without JAX: filter and policy, safety, control loop, export."""

from empowerment.controller.bundle import Bundle, Description
from empowerment.controller.bundle_io import read_bundle, write_bundle
from empowerment.controller.controller import Controller
from empowerment.controller.safety import Safety

__all__ = ["Bundle", "Controller", "Description", "Safety", "read_bundle", "write_bundle"]
