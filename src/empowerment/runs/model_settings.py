"""Settings of a model in manifests, also of earlier versions, and a tiny budget for tests."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from empowerment.files import convert
from empowerment.model import ModelSettings

SOURCE = "the settings in the manifest"
"""Where settings are from, in error messages."""

_VERSION_1 = {
    "model_width": "width",
    "model_depth": "depth",
    "num_first": "num_initial",
    "printed": "as_published",
    "stray": "outlier_probability",
    "model_updates": "updates",
    "model_batch": "batch_size",
    "model_learning_rate": "learning_rate",
}
"""Names of model settings in version 1, and today's."""


class ModelFacts(msgspec.Struct):
    """What the description of a stored model says among others: all that its shapes need."""

    settings: dict[str, Any]
    observation_size: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]
    action_size: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]


def model_from_json(settings: Any, source: Path | str = SOURCE) -> ModelSettings:
    """Read the hyperparameters of a model, also of version 1; see `from_json`."""
    what = "the settings of a model"
    given = convert(settings, dict[str, Any], what=what, source=source)
    given = {_VERSION_1.get(name, name): value for name, value in given.items()}
    return convert(asdict(ModelSettings()) | given, ModelSettings, what=what, source=source)


def smoke_model(settings: ModelSettings) -> ModelSettings:
    """Return the settings of a model with a tiny budget."""
    return replace(settings, updates=100, batch_size=16, width=32)
