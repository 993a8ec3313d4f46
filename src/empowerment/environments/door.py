"""Checks of what comes in from outside, the same for all environments."""

from collections.abc import Mapping, Sequence
from typing import Any


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
    unknown = sorted(set(options or {}) - {"state"})
    if unknown:
        raise ValueError(f"Expected options to be 'state' alone; got {unknown}.")
    return (options or {}).get("state")
