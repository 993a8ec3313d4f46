"""Datasets of any system: collect, import, check, repair, and cut into windows."""

from empowerment.data.collection import Collect as Collect, collect as collect
from empowerment.data.environments import (
    check_named as check_named,
    check_same_spaces as check_same_spaces,
    close_environment as close_environment,
    interval_of as interval_of,
    make_environment as make_environment,
    spaces_of as spaces_of,
    to_space as to_space,
)
from empowerment.data.episodes import (
    Actor as Actor,
    RandomActor as RandomActor,
    ZeroActor as ZeroActor,
    run_episode as run_episode,
)
from empowerment.data.imports import from_arrays as from_arrays
from empowerment.data.pace import repeat_of as repeat_of
from empowerment.data.readers import (
    READERS as READERS,
    LogOptions as LogOptions,
    from_minari as from_minari,
    read_log as read_log,
    with_limits as with_limits,
)
from empowerment.data.repair import RepairMode as RepairMode, repair as repair
from empowerment.data.spaces import Spaces as Spaces
from empowerment.data.split_agents import split_agents as split_agents
from empowerment.data.summary import (
    Summary as Summary,
    check as check,
    refuse as refuse,
    summarise as summarise,
)
from empowerment.data.trajectories import (
    Episode as Episode,
    Trajectories as Trajectories,
    join as join,
)
from empowerment.data.vector import from_vector as from_vector
from empowerment.data.windows import action_bounds as action_bounds, windows as windows
