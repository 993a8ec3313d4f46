"""Datasets of observations and actions in episodes, and their file format."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, final

import msgspec
import numpy as np

from empowerment.data.archive import MAX_BYTES, READ_ERRORS, read_arrays, write_arrays
from empowerment.data.spaces import Spaces, SpacesRecord, from_json, single, to_json
from empowerment.files import convert, decode

_FORMAT = "empowerment trajectories, version 1"

_KINDS = {  # The arrays of a file: their type, and how many axes they have
    "observations": ("float32", 2),
    "actions": ("float32", 2),
    "lengths": ("int64", 1),
    "terminated": ("bool", 1),
    "truncated": ("bool", 1),
    "description": ("uint8", 1),
}
_REWARDS = {"rewards": ("float32", 1)}  # A file may have them, too.


class _About(msgspec.Struct):
    """What has a meaning in the metadata, among others."""

    environment: str | None = None
    interval: Annotated[float, msgspec.Meta(gt=0)] | None = None
    gaps: int = 0
    ignored: list[str] = []
    unseen_ends: int = 0
    delay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    delay_resolution: Annotated[float, msgspec.Meta(gt=0)] | None = None


class _Description(TypedDict):
    """The JSON in a file."""

    format: Literal["empowerment trajectories, version 1"]
    spaces: SpacesRecord
    about: dict[str, Any]


@final
@dataclass(frozen=True, eq=False)
class Episode:
    """Observations and actions of one episode of $T$ steps, in single precision.

    Numbers may be not finite; `check` finds them.

    Attributes:
        observations: $T + 1$ rows; the last one follows the last action.
        actions: $T$ rows; each was taken at the observation of its row.
        terminated: Whether it ended in a terminal state.
        truncated: Whether it was cut before a terminal state.
        rewards: What each action was paid, $T$ numbers; none if that was not recorded.
    """

    observations: np.ndarray
    actions: np.ndarray
    terminated: bool
    truncated: bool
    rewards: np.ndarray | None = None

    def __post_init__(self):
        """Check that observations and actions are aligned."""
        observations, actions = single(self.observations), single(self.actions)
        if observations.ndim != 2 or actions.ndim != 2:
            raise ValueError(
                "Expected observations and actions of an episode to be rows of numbers; got the "
                f"shapes {observations.shape} and {actions.shape}."
            )
        if len(observations) != len(actions) + 1:
            raise ValueError(
                "Expected an episode to have one observation more than actions; got "
                f"{len(observations)} observations and {len(actions)} actions."
            )
        object.__setattr__(self, "observations", observations)
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "terminated", bool(self.terminated))
        object.__setattr__(self, "truncated", bool(self.truncated))
        if self.rewards is not None:
            rewards = single(self.rewards)
            if rewards.shape != (len(actions),):
                raise ValueError(
                    f"Expected an episode of {len(actions)} actions to have as many rewards; got "
                    f"the shape {rewards.shape}."
                )
            object.__setattr__(self, "rewards", rewards)

    @property
    def length(self) -> int:
        """The number of transitions, $T$."""
        return len(self.actions)

    def part(self, start: int, stop: int) -> "Episode":
        """Return the transitions from `start` to before `stop`; truncated if it is not the end.

        Args:
            start: The row of the first observation.
            stop: The row of the last observation.
        """
        is_last = stop == self.length
        return Episode(
            self.observations[start : stop + 1],
            self.actions[start:stop],
            terminated=self.terminated and is_last,
            truncated=self.truncated or not is_last,
            rewards=None if self.rewards is None else self.rewards[start:stop],
        )


@final
@dataclass(frozen=True, eq=False)
class Trajectories:
    """Dataset: episodes of one system.

    Attributes:
        episodes: At least one; they may differ in length. All have rewards, or none has.
        spaces: Bounds and names of observations and actions.
        about: Metadata in JSON: `environment` (its id), `seed`, `interval` in seconds if known,
            and how the data were made.
    """

    episodes: tuple[Episode, ...]
    spaces: Spaces
    about: dict[str, Any]

    def __post_init__(self):
        """Check that the episodes fit the spaces."""
        object.__setattr__(self, "episodes", tuple(self.episodes))
        if not self.episodes:
            raise ValueError("Expected trajectories to have at least one episode; got none.")
        sizes = (self.observation_size, self.action_size)
        for index, episode in enumerate(self.episodes):
            own = (episode.observations.shape[1], episode.actions.shape[1])
            if own != sizes:
                raise ValueError(
                    f"Expected every episode to have {sizes[0]} numbers in an observation and "
                    f"{sizes[1]} in an action; episode {index} has {own[0]} and {own[1]}."
                )
        if len({episode.rewards is None for episode in self.episodes}) > 1:
            raise ValueError("Expected all episodes to have rewards, or none; got both kinds.")

    def has_same_numbers(self, other: "Trajectories") -> bool:
        """Return whether another dataset has the same observations and actions."""
        return len(self.episodes) == len(other.episodes) and all(
            np.array_equal(mine.observations, its.observations, equal_nan=True)
            and np.array_equal(mine.actions, its.actions, equal_nan=True)
            for mine, its in zip(self.episodes, other.episodes, strict=True)
        )

    @property
    def has_rewards(self) -> bool:
        """Whether the rewards of actions were recorded."""
        return self.episodes[0].rewards is not None

    @property
    def rewards(self) -> np.ndarray:
        """The rewards of all actions, one episode after the other."""
        found = [episode.rewards for episode in self.episodes if episode.rewards is not None]
        if not found:
            raise ValueError("Expected trajectories with rewards; got some without.")
        return np.concatenate(found)

    @property
    def num_transitions(self) -> int:
        """The number of actions in all episodes."""
        return sum(episode.length for episode in self.episodes)

    @property
    def observation_size(self) -> int:
        """The number of axes of an observation."""
        return len(self.spaces.observation_names)

    @property
    def action_size(self) -> int:
        """The number of axes of an action."""
        return len(self.spaces.action_names)

    def save(self, path: Path) -> None:
        """Write everything to one `.npz` file, atomically; equal data give identical files.

        Args:
            path: The file.
        """
        description = {"format": _FORMAT, "spaces": to_json(self.spaces), "about": self.about}
        text = json.dumps(description, allow_nan=False, sort_keys=True)
        arrays = {
            "observations": np.concatenate([each.observations for each in self.episodes]),
            "actions": np.concatenate([each.actions for each in self.episodes]),
            "lengths": np.array([each.length for each in self.episodes], np.int64),
            "terminated": np.array([each.terminated for each in self.episodes]),
            "truncated": np.array([each.truncated for each in self.episodes]),
            "description": np.frombuffer(text.encode(), np.uint8),
        }
        if self.has_rewards:
            arrays["rewards"] = self.rewards
        write_arrays(Path(path), arrays)

    @classmethod
    def load(cls, path: Path, *, max_bytes: int = MAX_BYTES) -> "Trajectories":
        """Read a file that `save` has written.

        Args:
            path: The file.
            max_bytes: The largest size, checked before memory is allocated.

        Raises:
            ValueError: If the file has another format, is damaged, or is too large.
        """
        what = "a file of trajectories, as `empower collect` writes them"
        try:
            arrays = read_arrays(Path(path), _KINDS, _REWARDS, max_bytes=max_bytes)
            episodes = _cut(arrays)
        except READ_ERRORS as error:
            reason = str(error) or type(error).__name__
            raise ValueError(f"Expected {path} to be {what}; got {reason.rstrip('.')}.") from error
        text = arrays["description"].tobytes()
        description: _Description = decode(text, _Description, what=what, source=path)
        convert(description["about"], _About, what=what, source=path)
        try:
            return cls(episodes, from_json(description["spaces"]), description["about"])
        except ValueError as error:
            raise ValueError(f"Expected {path} to be {what}; it is invalid. {error}") from error

    def split(self, fraction: float, *, seed: int) -> tuple["Trajectories", "Trajectories"]:
        """Split off a validation set: whole episodes, or the tail if there is only one.

        Args:
            fraction: The approximate fraction of transitions to hold out, above 0 and below 1.
            seed: Random seed of the choice of episodes.

        Returns:
            The training set and the validation set; both have at least one transition.
        """
        if not 0 < fraction < 1:
            raise ValueError(f"Expected fraction to be above 0 and below 1; got {fraction}.")
        if len(self.episodes) == 1:
            return self._split_only(fraction)
        order = np.random.default_rng(seed).permutation(len(self.episodes))
        lengths = np.array([episode.length for episode in self.episodes])
        before = np.cumsum(lengths[order]) - lengths[order]
        count = int(np.searchsorted(before, fraction * self.num_transitions))
        count = min(max(count, 1), len(order) - 1)
        kept, held = np.sort(order[count:]), np.sort(order[:count])
        parts = [[self.episodes[index] for index in indices] for indices in (kept, held)]
        return self._with(parts[0]), self._with(parts[1])

    def _split_only(self, fraction: float) -> tuple["Trajectories", "Trajectories"]:
        """Cut the only episode in two; both parts have the observation at the cut."""
        (whole,) = self.episodes
        if whole.length < 2:
            raise ValueError(
                "Expected data to split to have two episodes or two transitions; got one episode "
                f"of length {whole.length}."
            )
        cut = min(max(round((1 - fraction) * whole.length), 1), whole.length - 1)
        return self._with([whole.part(0, cut)]), self._with([whole.part(cut, whole.length)])

    def _with(self, episodes: list[Episode]) -> "Trajectories":
        return Trajectories(tuple(episodes), self.spaces, self.about)


def join(first: Trajectories, *others: Trajectories) -> Trajectories:
    """Concatenate datasets with equal spaces.

    Args:
        first: Its episodes come first.
        *others: The datasets that follow.

    Returns:
        All episodes, with the metadata that all parts agree on, and with rewards if all have.
    """
    for other in others:
        if other.spaces != first.spaces:
            raise ValueError(
                "Expected trajectories to join to have the same spaces; got "
                f"{to_json(first.spaces)} and {to_json(other.spaces)}."
            )
    parts = (first, *others)
    common = {
        key: value
        for key, value in first.about.items()
        if all(key in part.about and part.about[key] == value for part in others)
    }
    episodes = tuple(episode for part in parts for episode in part.episodes)
    if not all(part.has_rewards for part in parts):
        episodes = tuple(replace(episode, rewards=None) for episode in episodes)
    about = {**common, "parts": [part.about for part in parts]} if others else first.about
    return Trajectories(episodes, first.spaces, about)


def _cut(arrays: dict[str, np.ndarray]) -> tuple[Episode, ...]:
    """Cut concatenated arrays into episodes."""
    lengths, ends = arrays["lengths"], (arrays["terminated"], arrays["truncated"])
    counts = {len(lengths), *map(len, ends)}
    steps, count = len(arrays["actions"]), len(lengths)
    fits = np.all((lengths >= 0) & (lengths <= steps)) and int(lengths.sum()) == steps
    if len(counts) > 1 or not fits or len(arrays["observations"]) != steps + count:
        raise ValueError("lengths of episodes that do not add up")
    actions = np.split(arrays["actions"], np.cumsum(lengths)[:-1])
    observations = np.split(arrays["observations"], np.cumsum(lengths + 1)[:-1])
    rewards: list[np.ndarray | None] = [None] * count
    if "rewards" in arrays:
        if len(arrays["rewards"]) != steps:
            raise ValueError("rewards that are not as many as actions")
        rewards = list(np.split(arrays["rewards"], np.cumsum(lengths)[:-1]))
    return tuple(map(Episode, observations, actions, *(e.tolist() for e in ends), rewards))
