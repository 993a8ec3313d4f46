"""Named experiments, read from `presets.toml`."""

import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from empowerment.runs.experiment import Experiment


@dataclass(frozen=True)
class Preset:
    """A named experiment.

    Attributes:
        about: One line for `empower train --help`.
        experiment: Its settings.
    """

    about: str
    experiment: Experiment


def _read() -> dict[str, Preset]:
    presets: dict[str, Preset] = {"": Preset("", Experiment())}
    text = files("empowerment.runs").joinpath("presets.toml").read_text(encoding="utf-8")
    for name, table in tomllib.loads(text).items():
        about, base = table.pop("about"), presets[table.pop("extends", "")].experiment
        nested: dict[str, Any] = {
            part: replace(getattr(base, part), **table.pop(part, {})) for part in ("agent", "model")
        }
        presets[name] = Preset(about, replace(base, **table, **nested))
    return {name: preset for name, preset in presets.items() if preset.about}


PRESETS = _read()
"""Experiments by name; every field is a flag of `empower train`."""
