"""Windows of consecutive observations to learn from."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int

from empowerment.data.trajectories import Episode, Trajectories


@dataclass(frozen=True, eq=False)
class Windows:
    """Rows of all episodes one after the other, and where windows begin.

    A window is `observations[start : start + length]` with
    `actions[start : start + length - 1]`; it is of one episode.

    Attributes:
        observations: Of all episodes.
        actions: Each was taken upon the observation of its row; the last row of an episode
            has zeros that are not of any window.
        starts: The first row of each window.
        length: How many observations a window has.
        skipped: How many episodes were too short to have a window.
    """

    observations: Float32[np.ndarray, "rows observation"]
    actions: Float32[np.ndarray, "rows action"]
    starts: Int[np.ndarray, " windows"]
    length: int
    skipped: int


def windows(trajectories: Trajectories, length: int, *, seed: int) -> Windows:
    """Cut trajectories into all windows of a length.

    Termination is absorbing: after it the observation stays as it is whatever is done, so an
    episode that terminated is extended by as many rows as a window needs, with random actions
    within their limits (within those of the data, where there is no limit). Every window starts
    at an observation that was made. Truncation is not an end: no window goes past it.

    Args:
        trajectories: Finite numbers only.
        length: How many observations a window has, two or more.
        seed: Of the actions after termination.

    Returns:
        The windows.

    Raises:
        ValueError: If a number is not finite, or no episode is long enough.
    """
    if length < 2:
        raise ValueError(f"Expected a window to have two or more observations; got {length}.")
    for index, episode in enumerate(trajectories.episodes):
        if not (np.isfinite(episode.observations).all() and np.isfinite(episode.actions).all()):
            raise ValueError(
                f"Expected observations and actions to be finite; episode {index} has some that "
                "are not. Mend it with `empower data FILE --repair split --out NEW`."
            )
    random, (low, high) = np.random.default_rng(seed), _allowed(trajectories)
    observations, actions, starts = [], [], []
    first = skipped = 0
    for episode in trajectories.episodes:
        seen, done = episode.observations, episode.actions
        if episode.terminated:
            seen = np.concatenate([seen, np.repeat(seen[-1:], length - 1, axis=0)])
            drawn = random.uniform(low, high, (length - 1, len(low))).astype(np.float32)
            done = np.concatenate([done, drawn])
        num_windows = len(seen) - length + 1
        if num_windows < 1:
            skipped += 1
            continue
        observations.append(seen)
        actions.append(np.concatenate([done, np.zeros_like(done, shape=(1, len(low)))]))
        starts.append(np.arange(first, first + num_windows))
        first += len(seen)
    if not starts:
        raise ValueError(
            f"Expected an episode to have at least {length} observations; the longest of "
            f"{len(trajectories.episodes)} has {max(map(_num_rows, trajectories.episodes))}."
        )
    rows = (np.concatenate(observations), np.concatenate(actions), np.concatenate(starts))
    return Windows(*rows, length=length, skipped=skipped)


def _num_rows(episode: Episode) -> int:
    return len(episode.observations)


def _allowed(trajectories: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Give the limits of actions; those of the data where there are none."""
    spaces = trajectories.spaces
    limits = np.stack([spaces.action_low, spaces.action_high])
    done = [each.actions for each in trajectories.episodes if each.length > 0]
    if np.isfinite(limits).all() or not done:
        return limits[0], limits[1]
    found = np.stack(
        [np.min([a.min(axis=0) for a in done], 0), np.max([a.max(axis=0) for a in done], 0)]
    )
    low, high = np.where(np.isfinite(limits), limits, found)
    return low, high
