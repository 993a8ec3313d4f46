"""Environments at the door: made by their id, and taken only where data can be had of them."""

import importlib.util
import os
import sys
from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box

from empowerment.data.spaces import Spaces
from empowerment.environments import register

register()  # so that our own are known by their ids

Maker = str | Callable[[], gymnasium.Env] | EnvSpec
"""An environment by its Gymnasium id (also `module:ID`), by what makes it, or by its spec."""


def make_environment(environment: Maker) -> gymnasium.Env:
    """Make an environment; a module of an id may be a file in the current folder.

    Args:
        environment: Its id, what makes it, or its spec.

    Returns:
        The environment, not yet reset.

    Raises:
        ValueError: If it cannot be made.
    """
    try:
        if isinstance(environment, str):
            _find_module_here(environment)
        elif not isinstance(environment, EnvSpec):
            return environment()
        return gymnasium.make(environment, disable_env_checker=True)
    except Exception as error:  # whatever the makers of environments raise
        said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ValueError(
            f"Expected {name_of(environment)} to be an environment that Gymnasium can make; {said}."
        ) from error


def name_of(environment: Maker) -> str:
    """Give the id of an environment, or the name of what makes it.

    Args:
        environment: Its id, what makes it, or its spec.
    """
    if isinstance(environment, str):
        return environment
    name = getattr(environment, "id", None) or getattr(environment, "__qualname__", None)
    return str(name or environment)


def spaces_of(environment: gymnasium.Env, name: str) -> Spaces:
    """Give the spaces of an environment, if both are vectors of numbers.

    Args:
        environment: The environment.
        name: What to call it where it is refused.

    Returns:
        The spaces; Gymnasium has no names for axes, so they are numbered.

    Raises:
        ValueError: If a space is discrete, an image or a dictionary, or actions have no limits.
    """
    spaces = vector_spaces(environment.observation_space, environment.action_space, name)
    if not np.isfinite([spaces.action_low, spaces.action_high]).all():
        raise ValueError(
            f"Expected the actions of {name} to have limits; got {environment.action_space}. Give "
            "it an action space with limits, such as by gymnasium.wrappers.TransformAction."
        )
    return spaces


def vector_spaces(
    observation_space: gymnasium.Space, action_space: gymnasium.Space, name: str
) -> Spaces:
    """Read Gymnasium's spaces, if both are vectors of numbers.

    Args:
        observation_space: Of the observations.
        action_space: Of the actions.
        name: What to call their owner where they are refused.

    Returns:
        The spaces; Gymnasium has no names for axes, so they are numbered.

    Raises:
        ValueError: If a space is discrete, an image or a dictionary.
    """
    observations = _box(observation_space, "observation", name)
    actions = _box(action_space, "action", name)
    if not np.issubdtype(actions.dtype, np.floating):
        raise ValueError(
            f"Expected the action space of {name} to have real numbers; got {actions}. Only "
            "continuous actions can be learnt from."
        )
    return Spaces(
        observations.low,
        observations.high,
        actions.low,
        actions.high,
        tuple(f"observation_{axis}" for axis in range(observations.shape[0])),
        tuple(f"action_{axis}" for axis in range(actions.shape[0])),
    )


def interval_of(environment: gymnasium.Env) -> float | None:
    """Give the seconds that a step of an environment takes, if it says so.

    Args:
        environment: Gymnasium's own have a `dt`; those of ours have a world with an `interval`.
    """
    bare = environment.unwrapped
    said = getattr(bare, "dt", getattr(getattr(bare, "world", None), "interval", None))
    try:
        interval = float(said)  # pyright: ignore[reportArgumentType] (anything may be there)
    except (TypeError, ValueError):
        return None
    return interval if np.isfinite(interval) and interval > 0 else None


def _box(space: gymnasium.Space, what: str, name: str) -> Box:
    """Refuse all but vectors of numbers."""
    if not isinstance(space, Box):
        hint = (
            "Only continuous actions can be learnt from."
            if what == "action"
            else "gymnasium.wrappers.FlattenObservation makes vectors of many spaces."
        )
        raise ValueError(  # noqa: TRY004 (it is the user's choice that is wrong, not our call)
            f"Expected the {what} space of {name} to be a Box of numbers; got {space}. {hint}"
        )
    if len(space.shape) != 1 or space.shape[0] == 0:
        image = ", such as an image" if len(space.shape) > 1 and what == "observation" else ""
        raise ValueError(
            f"Expected the {what} space of {name} to be vectors, of shape (n,); got the shape "
            f"{space.shape}{image}."
        )
    return space


def _find_module_here(environment_id: str) -> None:
    """Let the module of `module:ID` be found in the current folder, where it is nowhere else."""
    module, colon, _ = environment_id.partition(":")
    if not colon or not all(part.isidentifier() for part in module.split(".")):
        return
    here, root = os.getcwd(), module.split(".")[0]
    if importlib.util.find_spec(root) is None and here not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
