"""Making environments, and reading their spaces and control interval."""

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from jaxtyping import Float32

from empowerment.data.spaces import Spaces
from empowerment.environments import action_repeat_of
from empowerment.errors import EXTRAS

Maker = str | Callable[[], gymnasium.Env] | EnvSpec
"""An environment by its Gymnasium id (also `module:ID`), by a factory, or by its spec."""

_MOST_COLUMNS = 4096
"""Limit of the numbers in an observation."""


def make_environment(environment: Maker) -> gymnasium.Env:
    """Make an environment; the module of `module:ID` may be in the current folder.

    Observations of other kinds than vectors (dictionaries, tuples, discrete ones) are flattened.

    Args:
        environment: Its id, a factory, or its spec.

    Returns:
        The environment, not yet reset.

    Raises:
        ValueError: If it cannot be made.
    """
    try:
        _find_module_here(name_of(environment))
        if isinstance(environment, str | EnvSpec):
            return _flattened(gymnasium.make(environment, disable_env_checker=True))
        return _flattened(environment())
    except (Exception, SystemExit) as error:  # environments raise anything
        reason = describe_error(error).rstrip(".")
        extra = EXTRAS.get(getattr(error, "name", None) or "")
        remedy = f" Install it with `pip install 'empowerment[{extra}]'`." if extra else ""
        raise ValueError(
            f"Expected {name_of(environment)} to be an environment that Gymnasium can make; "
            f"{reason}.{remedy}"
        ) from error


def describe_error(error: BaseException) -> str:
    """Format an error in one line, even if it cannot describe itself."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # of an environment's own making
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def close_environment(environment: gymnasium.Env) -> None:
    """Close an environment; an error there is no more than a warning, since its work is done."""
    try:
        environment.close()
    except (Exception, SystemExit) as error:
        warnings.warn(
            f"The environment could not be closed: {describe_error(error)}.",
            RuntimeWarning,
            stacklevel=2,
        )


def check_named(environment_id: str, named: str | None) -> None:
    """Refuse an id that a file says if Gymnasium would import a module for it.

    Args:
        environment_id: The id.
        named: The id that the user named, if any.
    """
    module, colon, _ = environment_id.partition(":")
    if colon and environment_id != named:
        raise ValueError(
            f"Expected the environment {environment_id} to be named by you, since it imports the "
            f"module {module}; it is only named in a file. Allow it with --env {environment_id}."
        )


def name_of(environment: Maker) -> str:
    """Return the id of an environment, or the name of its factory."""
    if isinstance(environment, str):
        return environment
    name = getattr(environment, "id", None) or getattr(environment, "__qualname__", None)
    return str(name or environment)


def spaces_of(environment: gymnasium.Env, name: str) -> Spaces:
    """Return the spaces of an environment with vector observations and actions.

    Args:
        environment: The environment.
        name: Its name in error messages.

    Returns:
        The spaces; Gymnasium has no names for axes, so they are numbered.

    Raises:
        ValueError: If observations are an image, text or a dictionary, or actions are unbounded.
    """
    spaces = vector_spaces(environment.observation_space, environment.action_space, name)
    if not np.isfinite([spaces.action_low, spaces.action_high]).all():
        raise ValueError(
            f"Expected the actions of {name} to have limits; got {environment.action_space}. Give "
            "it an action space with limits, such as by gymnasium.wrappers.TransformAction."
        )
    return spaces


def check_same_spaces(spaces: Spaces, environment_id: str) -> None:
    """Refuse data of another system than an environment."""
    environment = make_environment(environment_id)
    own = spaces_of(environment, environment_id)
    close_environment(environment)
    sizes = [
        f"{len(each.observation_names)} observed columns and {len(each.action_names)} actions"
        for each in (own, spaces)
    ]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"Expected the data to be of {environment_id}, with {sizes[0]}; got {sizes[1]}."
        )


def vector_spaces(
    observation_space: gymnasium.Space, action_space: gymnasium.Space, name: str
) -> Spaces:
    """Convert a pair of Gymnasium spaces: vectors of numbers, or discrete actions.

    Args:
        observation_space: The observation space.
        action_space: The action space.
        name: The name of their owner in error messages.

    Returns:
        The spaces; Gymnasium has no names for axes, so they are numbered.

    Raises:
        ValueError: If observations are not vectors, or actions neither vectors nor discrete.
    """
    observations = _box(observation_space, "observation", name)
    if observations.shape[0] > _MOST_COLUMNS:
        raise ValueError(
            f"Expected observations of {name} to have at most {_MOST_COLUMNS} numbers; got "
            f"{observations.shape[0]}. Choose some of them by gymnasium.wrappers."
            "TransformObservation."
        )
    choices = _choices(action_space)
    if choices:
        low, high = np.zeros(len(choices)), np.array(choices) - 1
    else:
        actions = _box(action_space, "action", name)
        if not np.issubdtype(actions.dtype, np.floating):
            raise ValueError(
                f"Expected the action space of {name} to have real numbers, or to be discrete; got "
                f"{actions}."
            )
        low, high = actions.low, actions.high
    return Spaces(
        observations.low,
        observations.high,
        low,
        high,
        tuple(f"observation_{axis}" for axis in range(observations.shape[0])),
        tuple(f"action_{axis}" for axis in range(len(low))),
        choices,
    )


def _choices(space: gymnasium.Space) -> tuple[int, ...]:
    """Return the number of choices on each axis of a discrete space; none if it is another."""
    if isinstance(space, Discrete):
        return (int(space.n),)
    if isinstance(space, MultiDiscrete) and space.nvec.ndim == 1:
        return tuple(map(int, space.nvec))
    if isinstance(space, MultiBinary) and len(space.shape) == 1:
        return (2,) * space.shape[0]
    return ()


def to_space(action: Float32[np.ndarray, " action"], space: gymnasium.Space) -> Any:
    """Convert an action to the type of its space, whose bounds may be tighter in that type."""
    if isinstance(space, Box):
        return np.clip(action.astype(space.dtype), space.low, space.high)
    if isinstance(space, Discrete):
        return space.start + space.dtype.type(action[0])
    start = space.start if isinstance(space, MultiDiscrete) else 0
    return action.astype(space.dtype) + start


def _flattened(environment: gymnasium.Env) -> gymnasium.Env:
    """Wrap an environment such that observations are vectors, if they can be."""
    space = environment.observation_space
    if (isinstance(space, Box) and len(space.shape) == 1) or not _is_plain(space):
        return environment
    return gymnasium.wrappers.FlattenObservation(environment)


def _is_plain(space: gymnasium.Space) -> bool:
    """Return whether a space can be flattened to numbers that mean something by themselves."""
    if isinstance(space, gym_spaces.Dict):
        return all(map(_is_plain, space.spaces.values()))
    if isinstance(space, gym_spaces.Tuple):
        return all(map(_is_plain, space.spaces))
    is_image = isinstance(space, Box) and len(space.shape) > 1 and space.dtype == np.uint8
    return isinstance(space, Box | Discrete | MultiDiscrete | MultiBinary) and not is_image


def interval_of(environment: gymnasium.Env) -> float | None:
    """Return the control interval: the seconds from one action to the next.

    It is the `dt` of the unwrapped environment, or the `interval` of its world, times the count
    of action repeats. The `render_fps` is a drawing speed and not used.

    Args:
        environment: The environment, with its wrappers.

    Returns:
        The interval, or None where the environment does not define it.
    """
    bare = environment.unwrapped
    seconds = getattr(bare, "dt", getattr(getattr(bare, "world", None), "interval", None))
    try:
        interval = action_repeat_of(environment) * float(seconds)  # pyright: ignore[reportArgumentType] (any attribute)
    except (TypeError, ValueError):
        return None
    return interval if np.isfinite(interval) and interval > 0 else None


def _box(space: gymnasium.Space, what: str, name: str) -> Box:
    """Check that a space is a vector of numbers."""
    if not isinstance(space, Box):
        hint = (
            "Wrap it by gymnasium.wrappers.TransformAction, such that actions are a vector, or one "
            "or several discrete choices."
            if what == "action"
            else "gymnasium.wrappers.TransformObservation can make vectors of it."
        )
        raise ValueError(  # noqa: TRY004 (invalid input, not a programming error)
            f"Expected the {what} space of {name} to be a Box of numbers; got {space}. {hint}"
        )
    if len(space.shape) != 1 or space.shape[0] == 0:
        image = ""
        if len(space.shape) > 1 and what == "observation":
            image = (
                ", such as an image. Reduce it to a vector of features first, by "
                "gymnasium.wrappers.TransformObservation"
            )
        raise ValueError(
            f"Expected the {what} space of {name} to be vectors, of shape (n,); got the shape "
            f"{space.shape}{image}."
        )
    return space


def _find_module_here(environment_id: str) -> None:
    """Add the current folder to the path if the module of `module:ID` is not found elsewhere."""
    module, colon, _ = environment_id.partition(":")
    if not colon or not all(part.isidentifier() for part in module.split(".")):
        return
    here, root = os.getcwd(), module.split(".")[0]
    if importlib.util.find_spec(root) is None and here not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
