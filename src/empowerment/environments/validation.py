"""Checks of what comes in from outside, the same for all environments."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import DTypeLike


def check_render_mode(render_mode: str | None, known: Sequence[str]) -> None:
    """Refuse a render mode that is not known.

    Args:
        render_mode: What was asked for; None is no pictures.
        known: What there is.
    """
    if render_mode is not None and render_mode not in known:
        raise ValueError(
            f"Expected render_mode to be None or one of {list(known)}; got {render_mode!r}."
        )


def given_start(options: Mapping[str, Any] | None) -> Any:
    """Take the start state out of the options of a reset.

    Args:
        options: What was given to `reset`.

    Returns:
        The start state as it was given, or None where there is none.
    """
    check_options(options, ["state"])
    return (options or {}).get("state")


def check_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> None:
    """Refuse options of a reset that are not known.

    Args:
        options: What was given to `reset`.
        known: What there is.
    """
    unknown = sorted(set(options or {}) - set(known))
    if unknown:
        allowed = " and ".join(map(repr, known))
        raise ValueError(f"Expected options to be {allowed} alone; got {unknown}.")


def finite_array(
    what: str, value: Any, shape: tuple[int, ...], dtype: DTypeLike
) -> Float[np.ndarray, "..."]:
    """Read an array of finite numbers that came from outside.

    Args:
        what: What it is, for the sentence that refuses it.
        value: What was given.
        shape: What its shape must be.
        dtype: What to read it as.

    Returns:
        The array.
    """
    try:
        with np.errstate(over="ignore"):  # too large becomes infinite: refused below
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
