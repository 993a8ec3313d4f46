"""Training windows of consecutive observations and actions."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int

from empowerment.data.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Windows:
    """Concatenated rows of all episodes, and the starts of the windows.

    A window is `observations[start : start + length]` with
    `actions[start : start + length - 1]`; it is within one episode.

    Attributes:
        observations: Of all episodes.
        actions: Each was taken at the observation of its row, encoded if it is discrete; the last
            row of an episode is zero padding, which no window contains.
        recorded: Whether a row was recorded; the others are copies of the last observation of a
            terminated episode.
        starts: The first row of each window.
        length: The number of observations of a window.
        skipped: The number of episodes that are shorter than a window.
        rewards: What the action of each row was paid, nothing past an end; none if not recorded.
    """

    observations: Float32[np.ndarray, "rows observation"]
    actions: Float32[np.ndarray, "rows action"]
    recorded: Bool[np.ndarray, " rows"]
    starts: Int[np.ndarray, " windows"]
    length: int
    skipped: int
    rewards: Float32[np.ndarray, " rows"] | None = None


def windows(trajectories: Trajectories, length: int, *, seed: int) -> Windows:
    """Cut trajectories into all windows of a length.

    Terminal states are absorbing: the observation stays constant under any action, so a
    terminated episode is extended by as many rows as a window needs, with uniformly random
    actions within their bounds (those of the data, where unbounded). Every window starts at a
    recorded observation. Windows do not extend beyond a truncation.

    Args:
        trajectories: Finite numbers only.
        length: The number of observations of a window, two or more.
        seed: Random seed of the actions after termination.

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
                "are not. Repair it with `empower data FILE --repair split --out NEW`."
            )
    random, (low, high) = np.random.default_rng(seed), action_bounds(trajectories)
    spaces = trajectories.spaces
    observations, actions, recorded, starts, rewards = [], [], [], [], []
    first = skipped = 0
    for episode in trajectories.episodes:
        rows, taken = episode.observations, spaces.encode(episode.actions)
        if episode.terminated:
            rows = np.concatenate([rows, np.repeat(rows[-1:], length - 1, axis=0)])
            if spaces.action_choices:
                drawn = spaces.encode(spaces.sample_actions(length - 1, random))
            else:
                drawn = random.uniform(low, high, (length - 1, len(low))).astype(np.float32)
            taken = np.concatenate([taken, drawn])
        num_windows = len(rows) - length + 1
        if num_windows < 1:
            skipped += 1
            continue
        observations.append(rows)
        actions.append(np.concatenate([taken, np.zeros_like(taken, shape=(1, len(low)))]))
        recorded.append(np.arange(len(rows)) < len(episode.observations))
        starts.append(np.arange(first, first + num_windows))
        if episode.rewards is not None:
            rewards.append(np.zeros(len(rows), np.float32))
            rewards[-1][: episode.length] = episode.rewards
        first += len(rows)
    if not starts:
        longest = max(len(episode.observations) for episode in trajectories.episodes)
        raise ValueError(
            f"Expected an episode to have at least {length} observations; the longest of "
            f"{len(trajectories.episodes)} has {longest}."
        )
    return Windows(
        *map(np.concatenate, (observations, actions, recorded, starts)),
        length=length,
        skipped=skipped,
        rewards=np.concatenate(rewards) if rewards else None,
    )


def action_bounds(trajectories: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of encoded actions; those of the data where they are unbounded."""
    spaces = trajectories.spaces
    if spaces.action_choices:
        size = len(spaces.encoded_names)
        return np.zeros(size, np.float32), np.ones(size, np.float32)
    bounds = np.stack([spaces.action_low, spaces.action_high])
    actions = np.concatenate([episode.actions for episode in trajectories.episodes])
    if np.isfinite(bounds).all() or not len(actions):
        return bounds[0], bounds[1]
    low, high = np.where(
        np.isfinite(bounds), bounds, np.stack([actions.min(axis=0), actions.max(axis=0)])
    )
    return low, high
