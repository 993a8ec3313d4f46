"""Datasets of any system: collect, import, check, repair, and cut into windows."""

from empowerment.data.collection import Report, collect
from empowerment.data.environments import interval_of, make_environment, spaces_of
from empowerment.data.episodes import Actor, RandomActor, ZeroActor, run_episode
from empowerment.data.imports import from_arrays, from_minari, read_minari
from empowerment.data.repair import RepairMode, repair
from empowerment.data.spaces import Spaces
from empowerment.data.split_agents import split_agents
from empowerment.data.summary import Column, Summary, check, refuse, summarise
from empowerment.data.tables import from_table
from empowerment.data.trajectories import Episode, Trajectories, join
from empowerment.data.vector import from_vector
from empowerment.data.windows import Windows, windows
from empowerment.data.workers import FailedEpisode

__all__ = [
    "Actor",
    "Column",
    "Episode",
    "FailedEpisode",
    "RandomActor",
    "RepairMode",
    "Report",
    "Spaces",
    "Summary",
    "Trajectories",
    "Windows",
    "ZeroActor",
    "check",
    "collect",
    "from_arrays",
    "from_minari",
    "from_table",
    "from_vector",
    "interval_of",
    "join",
    "make_environment",
    "read_minari",
    "refuse",
    "repair",
    "run_episode",
    "spaces_of",
    "split_agents",
    "summarise",
    "windows",
]
