"""What the systems that run in the page of a report have in common."""

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import jax

from empowerment.environments import WorldEnv
from empowerment.report import Live, Parameters

_ASSETS = Path(__file__).parent / "assets"


def scripts(name: str) -> tuple[Path, ...]:
    """Return the script of a system, after what all systems share."""
    return _ASSETS / "shared.js", _ASSETS / name


def live_world(name: str, script: str) -> Live:
    """Describe the system in the page of environments that observe a world as it is.

    Args:
        name: Its name in the script.
        script: File of the script.
    """
    return Live(name, scripts(script), world_parameters)


def world_parameters(environment: gymnasium.Env) -> Parameters:
    """Return the parameters of the world of an environment."""
    inner = environment.unwrapped
    assert isinstance(inner, WorldEnv)
    fields = dataclasses.fields(inner.world)
    return {field.name: _plain(getattr(inner.world, field.name)) for field in fields}


def _plain(value: Any) -> Any:
    """Return a number or a list of numbers; single precision has seven digits."""
    if isinstance(value, jax.Array):
        return float(f"{float(value):.7g}")
    return list(value) if isinstance(value, tuple) else value
