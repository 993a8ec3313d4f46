"""Logs of any system: collected, imported, checked, mended, and cut for learning."""

from empowerment.data.agents import apart
from empowerment.data.checks import Channel, Description, check, describe, refuse
from empowerment.data.collection import Report, collect
from empowerment.data.crew import Lost
from empowerment.data.door import make_environment, spaces_of
from empowerment.data.episodes import Actor, Idle, Uniform
from empowerment.data.imports import from_arrays, from_minari, read_minari
from empowerment.data.mending import Mending, mend
from empowerment.data.spaces import Spaces
from empowerment.data.tables import from_table
from empowerment.data.trajectories import Episode, Trajectories, join
from empowerment.data.vector import from_vector
from empowerment.data.windows import Windows, windows

__all__ = [
    "Actor",
    "Channel",
    "Description",
    "Episode",
    "Idle",
    "Lost",
    "Mending",
    "Report",
    "Spaces",
    "Trajectories",
    "Uniform",
    "Windows",
    "apart",
    "check",
    "collect",
    "describe",
    "from_arrays",
    "from_minari",
    "from_table",
    "from_vector",
    "join",
    "make_environment",
    "mend",
    "read_minari",
    "refuse",
    "spaces_of",
    "windows",
]
