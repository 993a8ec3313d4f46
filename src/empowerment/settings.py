"""What settings of all kinds have in common: checks, flattening, differences."""

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


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings; names of nested ones are joined by dots."""
    pairs: dict[str, Any] = {}
    for name, value in settings.items():
        nested = isinstance(value, dict)
        pairs |= flat(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return pairs


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Describe which settings differ, and how."""
    before, now = flat(before), flat(now)
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return ", ".join(f"{name} was {before.get(name)} and is {now.get(name)}" for name in names)
