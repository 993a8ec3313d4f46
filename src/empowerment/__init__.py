"""Empowerment: how much a system can do about its own future, and proof of the number."""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from empowerment.public import *  # noqa: F403
    from empowerment.public import __all__ as __all__


def __getattr__(name: str) -> Any:
    """Import a part, or all public names, when it is asked for.

    A controller runs where JAX is not installed: importing `empowerment.controller`, which
    imports this module first, must not ask for it.
    """
    own = f"{__name__}.{name}"
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec(own) is not None:
        return importlib.import_module(own)
    found = globals()[name] = getattr(importlib.import_module("empowerment.public"), name)
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return [*globals(), *importlib.import_module("empowerment.public").__all__]
