"""Filter and policy in real time, without JAX: step, safety, timed loop, exports."""

from empowerment.controller.controller import Controller
from empowerment.controller.deployed import Deployed, Description
from empowerment.controller.files import read_deployed, write_deployed
from empowerment.controller.safety import Safety

__all__ = [
    "Controller",
    "Deployed",
    "Description",
    "Safety",
    "read_deployed",
    "write_deployed",
]
