"""Leave out of data what must not be learnt from."""

from typing import Literal, get_args

import numpy as np

from empowerment.data.summary import outside
from empowerment.data.trajectories import Episode, Trajectories

RepairMode = Literal["reject", "trim", "split"]
"""reject: drop episodes with bad rows. trim: cut them before the first. split: cut the rows out."""


def repair(trajectories: Trajectories, how: RepairMode) -> Trajectories:
    """Leave out what is wrong: rows with numbers that are not finite, or actions beyond limits.

    No transition of the result spans a row that was left out, and what was cut before its end
    counts as truncated. Episodes without a transition are dropped. What was left out is counted
    in `about["mended"]`.

    Args:
        trajectories: The data.
        how: `reject` drops episodes with anything wrong in them, `trim` cuts them before it,
            `split` keeps all good stretches as episodes of their own.

    Returns:
        Data without problems.

    Raises:
        ValueError: If nothing is left.
    """
    if how not in get_args(RepairMode):
        raise ValueError(
            f"Expected how to be one of {', '.join(get_args(RepairMode))}; got {how!r}."
        )
    kept = [
        part
        for episode in trajectories.episodes
        for part in _good_parts(episode, how, trajectories)
    ]
    failed = trajectories.num_transitions - sum(part.length for part in kept)
    if not kept:
        raise ValueError(
            f"Expected something to be left after mending by {how}; all {failed} transitions are "
            "bad. Try split, or leave out the channels that are."
        )
    count = {
        "how": how,
        "transitions_dropped": failed,
        "episodes_before": len(trajectories.episodes),
    }
    about = {**trajectories.about, "mended": [*trajectories.about.get("mended", []), count]}
    return Trajectories(tuple(kept), trajectories.spaces, about)


def _good_parts(episode: Episode, how: RepairMode, trajectories: Trajectories) -> list[Episode]:
    """Give the stretches of an episode whose transitions are all good."""
    seen = np.asarray(np.isfinite(episode.observations).all(axis=1))
    spaces = trajectories.spaces
    inside = ~outside(episode.actions, spaces.action_low, spaces.action_high)
    done = (np.isfinite(episode.actions) & inside).all(axis=1)
    good = seen[:-1] & done & seen[1:]
    if how == "reject" and not good.all():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]))).reshape(-1, 2)
    if how == "trim":
        edges = edges[:1] if good[:1].any() else edges[:0]
    return [episode.part(start, stop) for start, stop in edges.tolist()]
