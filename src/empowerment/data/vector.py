"""Import of logs of Gymnasium's vector environments, which reset themselves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from empowerment.data.spaces import Spaces, numbered_spaces
from empowerment.data.trajectories import Episode, Trajectories


def from_vector(
    observations: Any,
    actions: Any,
    terminated: Any,
    truncated: Any,
    *,
    autoreset_mode: AutoresetMode,
    final_observations: Sequence[Any] | None = None,
    first_observations: Sequence[Any] | None = None,
    rewards: Any = None,
    spaces: Spaces | None = None,
    about: dict[str, Any] | None = None,
) -> Trajectories:
    """Cut the log of a `gymnasium.vector` environment into episodes.

    Args:
        observations: Of the reset, then of every step: (times + 1, environments, size).
        actions: Of every step: (times, environments, size).
        terminated: Of every step: (times, environments).
        truncated: Of every step: (times, environments).
        autoreset_mode: Of the environment. With `NEXT_STEP` the step after the end of an episode
            resets and ignores its action; with `SAME_STEP` the last step of an episode returns
            the first observation of the next one; with `DISABLED` the caller resets.
        final_observations: With `SAME_STEP`: `infos.get("final_obs")` of every step.
        first_observations: With `DISABLED`: for every step the observation of the reset after
            it, or None if there was none.
        rewards: Of every step: (times, environments).
        spaces: Bounds and names of observations and actions; unbounded by default.
        about: Metadata.

    Returns:
        The episodes, environment by environment.
    """
    observations, actions = np.asarray(observations), np.asarray(actions)
    terminated, truncated = np.asarray(terminated, bool), np.asarray(truncated, bool)
    paid = None if rewards is None else np.asarray(rewards, float)
    if (
        observations.ndim != 3
        or actions.ndim != 3
        or observations.shape[:2] != (len(actions) + 1, actions.shape[1])
        or terminated.shape != actions.shape[:2]
        or truncated.shape != actions.shape[:2]
        or (paid is not None and paid.shape != actions.shape[:2])
    ):
        raise ValueError(
            "Expected observations of shape (times + 1, environments, size), actions (times, "
            "environments, size), flags and rewards (times, environments); got "
            f"{observations.shape}, {actions.shape}, {terminated.shape}, {truncated.shape}"
            f"{'' if paid is None else f' and {paid.shape}'}."
        )
    is_same_step = autoreset_mode == AutoresetMode.SAME_STEP
    extra = final_observations if is_same_step else first_observations
    episodes = []
    for env in range(actions.shape[1]):
        episodes += _cut(
            observations[:, env],
            actions[:, env],
            terminated[:, env],
            truncated[:, env],
            None if paid is None else paid[:, env],
            autoreset_mode,
            [_at(extra, time, env) for time in range(len(actions))],
        )
    spaces = spaces or numbered_spaces(observations.shape[2], actions.shape[2])
    return Trajectories(tuple(episodes), spaces, dict(about or {}))


def _cut(
    observations: np.ndarray,
    actions: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    rewards: np.ndarray | None,
    mode: AutoresetMode,
    extra: list[np.ndarray | None],
) -> list[Episode]:
    """Cut the log of one environment; the last episode is truncated by the end of the log."""
    episodes = []
    start, first = 0, observations[0]
    for stop in np.flatnonzero(terminated | truncated).tolist():
        if stop < start:
            continue
        is_same_step = mode == AutoresetMode.SAME_STEP
        final = _required(extra[stop], stop) if is_same_step else observations[stop + 1]
        rows = np.concatenate([first[None], observations[start + 1 : stop + 1], final[None]])
        ends, taken = bool(terminated[stop]), actions[start : stop + 1]
        paid = None if rewards is None else rewards[start : stop + 1]
        episodes.append(Episode(rows, taken, ends, not ends, paid))
        # With NEXT_STEP the step after this one is a reset and not a transition.
        start = stop + (2 if mode == AutoresetMode.NEXT_STEP else 1)
        if start >= len(actions):
            return episodes
        is_disabled = mode == AutoresetMode.DISABLED
        first = _required(extra[stop], stop) if is_disabled else observations[start]
    rows = np.concatenate([first[None], observations[start + 1 :]])
    paid = None if rewards is None else rewards[start:]
    return [
        *episodes,
        Episode(rows, actions[start:], terminated=False, truncated=True, rewards=paid),
    ]


def _required(extra: np.ndarray | None, time: int) -> np.ndarray:
    """Return an observation that the log alone lacks at the end of an episode."""
    if extra is None:
        raise ValueError(
            "Expected final_observations (with SAME_STEP) or first_observations (with DISABLED) "
            f"to have an observation for every end of an episode; there is none for step {time}."
        )
    return extra


def _at(extra: Sequence[Any] | None, time: int, env: int) -> np.ndarray | None:
    row = None if extra is None or len(extra) <= time else extra[time]
    value = None if row is None else row[env]
    return None if value is None else np.asarray(value)
