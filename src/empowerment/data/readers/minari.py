"""Datasets of Minari."""

from typing import Any

import numpy as np

from empowerment.data.archive import MAX_BYTES
from empowerment.data.environments import vector_spaces
from empowerment.data.readers.base import LogOptions, optional
from empowerment.data.repair import RepairMode, repair
from empowerment.data.summary import check
from empowerment.data.trajectories import Episode, Trajectories

PREFIX = "minari:"


def read_minari(source: str, options: LogOptions) -> Trajectories:
    """Read a Minari dataset by its id, without a check of its numbers."""
    return _read(source.removeprefix(PREFIX))


def from_minari(dataset: Any, *, repair_mode: RepairMode | None = None) -> Trajectories:
    """Read a Minari dataset, and check or repair it.

    Args:
        dataset: Its id, or the dataset itself.
        repair_mode: How to repair bad rows; if None, they are an error.

    Returns:
        The episodes.

    Raises:
        ValueError: If Minari is not installed, spaces are not vectors of numbers, or episodes
            are not aligned or have numbers that are not finite.
    """
    trajectories = _read(dataset)
    if repair_mode is not None:
        return repair(trajectories, repair_mode)
    check(trajectories)
    return trajectories


def _read(dataset: Any) -> Trajectories:
    """Read a Minari dataset without a check of its numbers.

    Args:
        dataset: Its id, or the dataset itself.

    Returns:
        The episodes.
    """
    if isinstance(dataset, str):
        dataset = optional("minari", dataset).load_dataset(dataset)
    name = str(dataset.spec.dataset_id)
    spaces = vector_spaces(dataset.observation_space, dataset.action_space, name)
    size = 4 * int(dataset.total_steps) * (len(spaces.observation_names) + len(spaces.action_names))
    if size > MAX_BYTES:
        raise ValueError(f"Expected {name} to have at most {MAX_BYTES} bytes; got {size}.")
    episodes = tuple(_from_minari(each, name) for each in dataset.iterate_episodes())
    spec = dataset.spec.env_spec
    about = {"environment": None if spec is None else spec.id, "dataset": name, "interval": None}
    return Trajectories(episodes, spaces, about)


def _from_minari(episode: Any, name: str) -> Episode:
    """Convert one episode; Minari itself checks hardly anything."""
    observations, actions = np.asarray(episode.observations), np.asarray(episode.actions)
    terminations, truncations = np.asarray(episode.terminations), np.asarray(episode.truncations)
    steps = len(actions)
    if (
        len(observations) != steps + 1
        or (len(terminations), len(truncations)) != (steps, steps)
        or (terminations[:-1] | truncations[:-1]).any()
    ):
        raise ValueError(
            f"Expected episode {episode.id} of {name} to have one observation more than actions, "
            f"and to end at its last step only; got {len(observations)} observations, {steps} "
            f"actions and ends at {np.flatnonzero(terminations | truncations).tolist()[:5]}."
        )
    ends = steps > 0 and bool(terminations[-1])
    if actions.ndim == 1:  # Of a discrete space: one number each.
        actions = actions[:, None]
    return Episode(observations, actions, ends, not ends, np.asarray(episode.rewards, float))
