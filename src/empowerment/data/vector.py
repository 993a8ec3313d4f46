"""Logs of Gymnasium's vector environments, which go on by themselves after an end."""

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
    spaces: Spaces | None = None,
    about: dict[str, Any] | None = None,
) -> Trajectories:
    """Cut the log of a `gymnasium.vector` environment into episodes.

    Args:
        observations: Of the reset, then of every step: (times + 1, environments, size).
        actions: Of every step: (times, environments, size).
        terminated: Of every step: (times, environments).
        truncated: Of every step: (times, environments).
        autoreset_mode: Of the environment. With `NEXT_STEP` the step after an end resets and
            ignores its action; with `SAME_STEP` the observation of an end is that of the next
            start already; with `DISABLED` you have reset what had ended.
        final_observations: With `SAME_STEP`: `infos.get("final_obs")` of every step.
        first_observations: With `DISABLED`: for every step what your reset gave after it, or
            None where there was no reset.
        spaces: What observations and actions may be; without limits if not given.
        about: What is known about the data.

    Returns:
        The episodes, environment by environment.
    """
    observations, actions = np.asarray(observations), np.asarray(actions)
    terminated, truncated = np.asarray(terminated, bool), np.asarray(truncated, bool)
    if (
        observations.ndim != 3
        or actions.ndim != 3
        or observations.shape[:2] != (len(actions) + 1, actions.shape[1])
        or terminated.shape != actions.shape[:2]
        or truncated.shape != actions.shape[:2]
    ):
        raise ValueError(
            "Expected observations of shape (times + 1, environments, size), actions (times, "
            "environments, size) and flags (times, environments); got "
            f"{observations.shape}, {actions.shape}, {terminated.shape} and {truncated.shape}."
        )
    is_same_step = autoreset_mode == AutoresetMode.SAME_STEP
    extra = final_observations if is_same_step else first_observations
    episodes = []
    for place in range(actions.shape[1]):
        episodes += _cut(
            observations[:, place],
            actions[:, place],
            terminated[:, place],
            truncated[:, place],
            autoreset_mode,
            [_at(extra, time, place) for time in range(len(actions))],
        )
    spaces = spaces or numbered_spaces(observations.shape[2], actions.shape[2])
    return Trajectories(tuple(episodes), spaces, dict(about or {}))


def _cut(
    seen: np.ndarray,
    done: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    mode: AutoresetMode,
    extra: list[np.ndarray | None],
) -> list[Episode]:
    """Cut the log of one environment; what is under way at its end was cut there."""
    episodes = []
    start, first = 0, seen[0]
    for stop in np.flatnonzero(terminated | truncated).tolist():
        if stop < start:
            continue
        at_stop = seen[stop + 1]
        final = _needed(extra[stop], stop) if mode == AutoresetMode.SAME_STEP else at_stop
        rows = np.concatenate([first[None], seen[start + 1 : stop + 1], final[None]])
        ends = bool(terminated[stop])
        episodes.append(Episode(rows, done[start : stop + 1], terminated=ends, truncated=not ends))
        # Where resets take a step, the one after this is a reset and not a transition.
        start = stop + (2 if mode == AutoresetMode.NEXT_STEP else 1)
        if start >= len(done):
            return episodes
        first = _needed(extra[stop], stop) if mode == AutoresetMode.DISABLED else seen[start]
    rows = np.concatenate([first[None], seen[start + 1 :]])
    return [*episodes, Episode(rows, done[start:], terminated=False, truncated=True)]


def _needed(extra: np.ndarray | None, time: int) -> np.ndarray:
    """Give what was observed beside the log, where the log alone would join two episodes."""
    if extra is None:
        raise ValueError(
            "Expected final_observations (with SAME_STEP) or first_observations (with DISABLED) "
            f"to have an observation for every end of an episode; there is none for step {time}."
        )
    return extra


def _at(extra: Sequence[Any] | None, time: int, place: int) -> np.ndarray | None:
    """Look up what else was observed after a step."""
    row = None if extra is None or len(extra) <= time else extra[time]
    value = None if row is None else row[place]
    return None if value is None else np.asarray(value)
