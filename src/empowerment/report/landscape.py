"""Landscapes on disk: a CSV with the empowerment of many states, a JSON that describes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from jaxtyping import Float

from empowerment.files import (
    convert,
    encode,
    read_columns,
    read_header,
    read_json,
    to_csv,
    write_atomic,
)


@dataclass(frozen=True)
class Landscape:
    """The empowerment of many states.

    Attributes:
        names: Names of the coordinates of a state.
        states: The states.
        empowerment: Empowerment of each state, in nats.
        lower: Lower bound, if the estimator proves one.
        upper: Upper bound, if the estimator proves one.
        about: World, noise, constraint, estimator, steps, seed, versions, units of coordinates,
            and which coordinates are angles.
    """

    names: tuple[str, ...]
    states: Float[np.ndarray, "states axes"]
    empowerment: Float[np.ndarray, " states"]
    lower: Float[np.ndarray, " states"] | None
    upper: Float[np.ndarray, " states"] | None
    about: dict[str, Any]

    def to_csv(self) -> str:
        """Return the text of a CSV file: a column for each coordinate, then nats."""
        columns = {name: self.states[:, axis] for axis, name in enumerate(self.names)}
        columns["empowerment"] = self.empowerment
        if self.lower is not None and self.upper is not None:
            columns |= {"lower": self.lower, "upper": self.upper}
        return to_csv(columns)

    def summary(self) -> str:
        """Describe in one sentence where empowerment is highest and lowest."""
        value = self.empowerment
        if len(value) == 1:
            return f"Empowerment is {value[0]:.3f} nats."

        def at(index: int) -> str:
            pairs = zip(self.names, self.states[index], strict=True)
            return ", ".join(f"{name} {coordinate:.3g}" for name, coordinate in pairs)

        low, high = int(np.argmin(value)), int(np.argmax(value))
        sentence = (
            f"Empowerment of {len(value)} states: from {value[low]:.3f} nats at {at(low)} "
            f"to {value[high]:.3f} nats at {at(high)}"
        )
        if self.lower is not None and self.upper is not None:
            sentence += f"; bounds at most {np.nanmax(self.upper - self.lower):.3f} apart"
        if self.about.get("at_ceiling"):
            sentence += (
                f". {self.about['at_ceiling']:.0%} of them are at the ceiling of the codebook, "
                f"{self.about['ceiling']:.2f} nats: there may be more"
            )
        return f"{sentence}."


def write_landscape(landscape: Landscape, path: Path) -> None:
    """Write a landscape to a CSV file, and its description to a JSON file beside it."""
    if path.suffix == ".json":
        raise ValueError(f"Expected the table's file not to end in .json; got {str(path)!r}.")
    write_atomic(path, landscape.to_csv().encode())
    write_atomic(path.with_suffix(".json"), encode(landscape.about))


class _Noise(msgspec.Struct):
    perception: list[float]


class _About(msgspec.Struct):
    """What has to be known to draw a landscape, among others."""

    steps: int
    estimator: str
    world: str = ""
    noise: _Noise | None = None
    angles: list[str] = []
    units: dict[str, str] = {}
    drawing: str = ""


def read_landscape(path: Path) -> Landscape:
    """Read a landscape that `write_landscape` wrote."""
    header = read_header(path)
    if "empowerment" not in header:
        raise ValueError(f"Expected {path} to have a column empowerment; it has none.")
    values, place = read_columns(path, header), header.index("empowerment")
    source, what = path.with_suffix(".json"), "the description of a landscape"
    about: dict[str, Any] = read_json(source, dict[str, Any], what=what)
    convert(about, _About, what=what, source=source)
    bounds = {name: values[:, header.index(name)] for name in header[place + 1 :]}
    return Landscape(
        tuple(header[:place]),
        values[:, :place],
        values[:, place],
        bounds.get("lower"),
        bounds.get("upper"),
        about,
    )
