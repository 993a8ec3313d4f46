"""Removal of invalid rows from datasets."""

from typing import Literal, get_args

import numpy as np

from empowerment.data.summary import outside
from empowerment.data.trajectories import Episode, Trajectories

RepairMode = Literal["reject", "trim", "split"]
"""reject: drop episodes with bad rows. trim: cut them before the first. split: cut the rows out."""


def repair(trajectories: Trajectories, how: RepairMode) -> Trajectories:
    """Remove bad rows: those with numbers that are not finite, or actions beyond their limits.

    No transition of the result spans a removed row, and an episode that was cut before its end
    counts as truncated. Episodes without a transition are dropped. The removed transitions are
    counted in `about["repaired"]`.

    Args:
        trajectories: The data.
        how: `reject` drops episodes with bad rows, `trim` cuts them before the first bad row,
            `split` keeps all good segments as separate episodes.

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
    num_dropped = trajectories.num_transitions - sum(part.length for part in kept)
    if not kept:
        raise ValueError(
            f"Expected something to be left after repair by {how}; all {num_dropped} transitions "
            "are bad. Try split, or leave out the bad columns."
        )
    count = {
        "how": how,
        "transitions_dropped": num_dropped,
        "episodes_before": len(trajectories.episodes),
    }
    about = {**trajectories.about, "repaired": [*trajectories.about.get("repaired", []), count]}
    return Trajectories(tuple(kept), trajectories.spaces, about)


def _good_parts(episode: Episode, how: RepairMode, trajectories: Trajectories) -> list[Episode]:
    """Return the segments of an episode whose transitions are all good."""
    observed = np.asarray(np.isfinite(episode.observations).all(axis=1))
    spaces = trajectories.spaces
    inside = ~outside(episode.actions, spaces.action_low, spaces.action_high)
    acted = (np.isfinite(episode.actions) & inside).all(axis=1)
    good = observed[:-1] & acted & observed[1:]
    if how == "reject" and not good.all():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]))).reshape(-1, 2)
    if how == "trim":
        edges = edges[:1] if good[:1].any() else edges[:0]
    return [episode.part(start, stop) for start, stop in edges.tolist()]
