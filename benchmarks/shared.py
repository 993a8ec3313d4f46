"""Stages that policies of different tasks have in common."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from empowerment.optimise import SILENT, Callback


@dataclass
class Shared:
    """Keeps channel and surrogate, which no task changes, for all weights of a seed."""

    kept: dict[str, Any] = field(default_factory=dict)

    def stage(self, name: str, like: Any, train: Callable[[Callback], tuple[Any, Any]]) -> Any:
        """Train a policy anew, and all else once."""
        if name == "policy":
            return train(SILENT)[0]
        if name not in self.kept:
            self.kept[name] = train(SILENT)[0]
        return self.kept[name]
