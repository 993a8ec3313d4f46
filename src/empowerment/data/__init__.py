"""Logs of any system: collected, imported, checked, mended, and cut for learning."""

from empowerment.data.spaces import Spaces
from empowerment.data.trajectories import Episode, Trajectories, join
from empowerment.data.windows import Windows, windows

__all__ = ["Episode", "Spaces", "Trajectories", "Windows", "join", "windows"]
