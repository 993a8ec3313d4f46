"""Logs of any system: collected, imported, checked, mended, and cut for learning."""

from empowerment.data.collection import Report, collect
from empowerment.data.crew import Lost
from empowerment.data.door import make_environment, spaces_of
from empowerment.data.episodes import Actor, Uniform
from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Episode, Trajectories, join
from empowerment.data.windows import Windows, windows

__all__ = [
    "Actor",
    "Episode",
    "Lost",
    "Report",
    "Spaces",
    "Trajectories",
    "Uniform",
    "Windows",
    "collect",
    "join",
    "make_environment",
    "spaces_of",
    "windows",
]
