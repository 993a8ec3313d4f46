"""Bounds and names of observations and actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import numpy as np
from jaxtyping import Float32

_LARGEST = np.finfo(np.float32).max
"""Stands for infinity in many Gymnasium spaces."""

_MOST_CHOICES = 4096
"""Limit of the number of choices of all discrete actions together."""


@dataclass(frozen=True, eq=False)
class Spaces:
    """Bounds and a name for each axis of observations and actions.

    Bounds are kept in single precision, as the data are, and are infinite where an axis is
    unbounded; the largest number of single precision counts as infinite.

    Attributes:
        observation_low: The lower bound of each axis of an observation.
        observation_high: The upper bound of each axis of an observation.
        action_low: The lower bound of each axis of an action.
        action_high: The upper bound of each axis of an action.
        observation_names: A name for each axis of an observation.
        action_names: A name for each axis of an action.
        action_choices: The number of choices of each axis of a discrete action, whose numbers are
            0, 1, ... up to the choice before the last; empty if actions are continuous.
    """

    observation_low: np.ndarray
    observation_high: np.ndarray
    action_low: np.ndarray
    action_high: np.ndarray
    observation_names: tuple[str, ...]
    action_names: tuple[str, ...]
    action_choices: tuple[int, ...] = ()

    def __post_init__(self):
        """Check that the bounds fit the names and each other."""
        object.__setattr__(self, "action_choices", tuple(map(int, self.action_choices)))
        for what in ("observation", "action"):
            names = tuple(getattr(self, f"{what}_names"))
            object.__setattr__(self, f"{what}_names", names)
            limits = [_limit(getattr(self, f"{what}_{end}")) for end in ("low", "high")]
            for end, limit in zip(("low", "high"), limits, strict=True):
                object.__setattr__(self, f"{what}_{end}", limit)
                if limit.shape != (len(names),):
                    raise ValueError(
                        f"Expected {what}_{end} to have a number for each of {len(names)} names; "
                        f"got the shape {limit.shape}."
                    )
            low, high = limits
            if not names or len(set(names)) < len(names):
                raise ValueError(
                    f"Expected {what}_names to be one or more different words; got {names}."
                )
            if not (np.all(low <= high) and np.all(low < np.inf) and np.all(high > -np.inf)):
                raise ValueError(
                    f"Expected {what}_low to be at most {what}_high; got {low.tolist()} and "
                    f"{high.tolist()}."
                )

        choices = np.array(self.action_choices)
        if len(choices) and not (
            len(choices) == len(self.action_names)
            and choices.min() >= 2
            and choices.sum() <= _MOST_CHOICES
            and not np.any(self.action_low)
            and np.array_equal(self.action_high, choices - 1)
        ):
            raise ValueError(
                "Expected discrete actions to have two choices or more on each axis, counted from "
                f"0, and at most {_MOST_CHOICES} in all; got {self.action_choices}, from "
                f"{self.action_low.tolist()} to {self.action_high.tolist()}."
            )

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """A name for each axis of an encoded action."""
        pairs = zip(self.action_names, self.action_choices, strict=False)
        names = (f"{name}={choice}" for name, count in pairs for choice in range(count))
        return tuple(names) or self.action_names

    def encode(self, actions: Float32[np.ndarray, "rows action"]) -> np.ndarray:
        """Encode actions as a model takes them: discrete ones one-hot, axis after axis.

        Raises:
            ValueError: If a discrete action is not one of its choices.
        """
        if not self.action_choices:
            return actions
        parts = []
        for column, count in zip(actions.T, self.action_choices, strict=True):
            if not np.isin(column, np.arange(count)).all():
                odd = column[~np.isin(column, np.arange(count))][0]
                raise ValueError(
                    f"Expected discrete actions to be whole numbers from 0 to {count - 1}; got "
                    f"{odd:g}."
                )
            parts.append(np.eye(count, dtype=np.float32)[column.astype(int)])
        return np.concatenate(parts, axis=1)

    def sample_actions(
        self, count: int, random: np.random.Generator
    ) -> Float32[np.ndarray, "rows action"]:
        """Sample actions uniformly; they must have limits."""
        shape = count, len(self.action_names)
        if self.action_choices:
            return random.integers(0, self.action_choices, shape).astype(np.float32)
        return random.uniform(self.action_low, self.action_high, shape).astype(np.float32)

    def __eq__(self, other: object) -> bool:
        """Return whether bounds and names are equal."""
        return isinstance(other, Spaces) and to_json(self) == to_json(other)


class SpacesRecord(TypedDict):
    """Spaces in JSON, which has no infinity: it is null."""

    observation_names: list[str]
    observation_low: list[float | None]
    observation_high: list[float | None]
    action_names: list[str]
    action_low: list[float | None]
    action_high: list[float | None]
    action_choices: NotRequired[list[int]]


def free_spaces(
    observation_names: Sequence[str],
    action_names: Sequence[str],
    *,
    action_low: Any = None,
    action_high: Any = None,
) -> Spaces:
    """Build unbounded spaces, such as those of a log.

    Args:
        observation_names: A name for each axis of an observation.
        action_names: A name for each axis of an action.
        action_low: The lower bound of each axis of an action, if known.
        action_high: The upper bound of each axis of an action, if known.

    Returns:
        The spaces.
    """
    observation = np.full(len(observation_names), np.inf)
    action = np.full(len(action_names), np.inf)
    return Spaces(
        -observation,
        observation,
        -action if action_low is None else single(action_low),
        action if action_high is None else single(action_high),
        tuple(observation_names),
        tuple(action_names),
    )


def numbered_spaces(observation_size: int, action_size: int) -> Spaces:
    """Build unbounded spaces with numbered axes.

    Args:
        observation_size: The number of axes of an observation.
        action_size: The number of axes of an action.
    """
    return free_spaces(
        [f"observation_{axis}" for axis in range(observation_size)],
        [f"action_{axis}" for axis in range(action_size)],
    )


def single(values: Any) -> np.ndarray:
    """Convert numbers to single precision; those too large become infinite.

    Args:
        values: Anything that NumPy accepts as numbers.

    Returns:
        An array of single precision.
    """
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32)


def _limit(values: Any) -> np.ndarray:
    """Convert bounds; the largest numbers become infinite."""
    limit = single(values)
    return np.where(np.abs(limit) >= _LARGEST, np.copysign(np.float32(np.inf), limit), limit)


def to_json(spaces: Spaces) -> dict[str, Any]:
    """Encode spaces for JSON, which has no infinity: it becomes null.

    Args:
        spaces: The spaces.

    Returns:
        The input of `from_json`.
    """
    fields: dict[str, Any] = {}
    for what in ("observation", "action"):
        fields[f"{what}_names"] = list(getattr(spaces, f"{what}_names"))
        for end in ("low", "high"):
            limit = getattr(spaces, f"{what}_{end}").tolist()
            fields[f"{what}_{end}"] = [v if np.isfinite(v) else None for v in limit]
    if spaces.action_choices:
        fields["action_choices"] = list(spaces.action_choices)
    return fields


def from_json(fields: SpacesRecord) -> Spaces:
    """Decode spaces.

    Args:
        fields: The output of `to_json`.

    Returns:
        The spaces.
    """
    limits = {
        f"{what}_{end}": single([none if v is None else v for v in fields[f"{what}_{end}"]])
        for what in ("observation", "action")
        for end, none in (("low", -np.inf), ("high", np.inf))
    }
    observation, action = fields["observation_names"], fields["action_names"]
    return Spaces(
        **limits,
        observation_names=tuple(observation),
        action_names=tuple(action),
        action_choices=tuple(fields.get("action_choices", ())),
    )
