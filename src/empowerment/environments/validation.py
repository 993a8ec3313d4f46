"""Validation of user input, shared by all environments."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import DTypeLike

LARGEST = float(np.finfo(np.float32).max)
"""Stands for infinity: Gymnasium's checker warns about infinite observation spaces."""


def check_render_mode(render_mode: str | None, known: Sequence[str]) -> None:
    """Check that a render mode is supported.

    Args:
        render_mode: The render mode; None is no rendering.
        known: The supported ones.
    """
    if render_mode is not None and render_mode not in known:
        raise ValueError(
            f"Expected render_mode to be None or one of {list(known)}; got {render_mode!r}."
        )


def start_state(options: Mapping[str, Any] | None) -> Any:
    """Read the start state from the options of `reset`.

    Args:
        options: The options of `reset`.

    Returns:
        The start state, not yet validated, or None if there is none.
    """
    check_options(options, ["state"])
    return (options or {}).get("state")


def check_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> None:
    """Check that the options of `reset` are supported.

    Args:
        options: The options.
        known: The supported ones.
    """
    unknown = sorted(set(options or {}) - set(known))
    if unknown:
        allowed = " and ".join(map(repr, known))
        raise ValueError(f"Expected options to be {allowed} alone; got {unknown}.")


def finite_array(
    what: str, value: Any, shape: tuple[int, ...], dtype: DTypeLike
) -> Float[np.ndarray, "..."]:
    """Convert user input to an array of finite numbers.

    Args:
        what: Its name in the error message.
        value: The input.
        shape: The required shape.
        dtype: The type of the array.

    Returns:
        The array.
    """
    try:
        with np.errstate(over="ignore"):  # overflow becomes infinite, rejected below
            array = np.asarray(value, dtype)
    except (TypeError, ValueError):
        array = None
    if array is None or array.shape != shape or not np.isfinite(array).all():
        count = math.prod(shape)
        raise ValueError(
            f"Expected {what} to be {count} finite number{'s' * (count > 1)} in "
            f"an array of shape {shape}; got {value!r}."
        )
    return array
