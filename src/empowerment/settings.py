"""Checks that settings of all kinds have in common."""

from typing import Any


def check_at_least(settings: Any, **limits: int) -> None:
    """Raise a `ValueError` if a setting is below its limit."""
    for name, least in limits.items():
        if getattr(settings, name) < least:
            raise ValueError(
                f"Expected {name} to be at least {least}; got {getattr(settings, name)}."
            )


def check_positive(settings: Any, *names: str) -> None:
    """Raise a `ValueError` if a setting is not positive and finite."""
    for name in names:
        if not 0 < getattr(settings, name) < float("inf"):
            raise ValueError(
                f"Expected {name} to be positive and finite; got {getattr(settings, name)}."
            )
