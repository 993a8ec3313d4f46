"""The live section of a report: the policy and its system run in the page itself."""

import base64
import html
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import matplotlib as mpl
import msgspec
import numpy as np
from msgspec import Meta

from empowerment.controller import Bundle, read_bundle
from empowerment.files import encode, read_json, write_atomic
from empowerment.report.elements import ASSETS, to_script
from empowerment.report.figures import colour_limits
from empowerment.report.landscape import Landscape, read_landscape

LIVE = "live.json"
"""File in a run folder that describes the system that runs in the page."""

_BEFORE, _AFTER = ("controller.js",), ("simulation.js", "painting.js", "live.js")
"""Scripts of every page, before and after those of its system."""

_NUM_COLOURS = 64

Parameters = dict[str, bool | int | float | list[int | float]]


@dataclass(frozen=True)
class Live:
    """A system that can run in the page.

    Attributes:
        name: Its name in its scripts.
        scripts: JavaScript with its equations and its picture.
        parameters: Reads the parameters of its equations from its environment.
        noise: Turns the noise of each perceived coordinate of its world to that of each observed
            number.
    """

    name: str
    scripts: tuple[Path, ...]
    parameters: Callable[[gymnasium.Env], Parameters]
    noise: Callable[[list[float]], list[float]] = list


class StoredArray(msgspec.Struct):
    """Numbers in single precision, little-endian, as base64."""

    shape: list[int]
    data: str


class StoredLive(msgspec.Struct):
    """What the page has to know beside the controller and the landscape.

    Attributes:
        system: Name of the system in its scripts.
        parameters: Those of its equations.
        noise: Noise of each observed number that training assumed.
        interval: Seconds from one action to the next.
        repeat: Number of steps of the system in an interval.
        units: Units of coordinates.
    """

    system: str
    parameters: Parameters
    noise: list[float]
    interval: Annotated[float, Meta(gt=0)]
    repeat: Annotated[int, Meta(ge=1)]
    units: dict[str, str]


def write_stored_live(stored: StoredLive, folder: Path) -> None:
    """Write the description of the system to a run folder."""
    write_atomic(folder / LIVE, encode(msgspec.to_builtins(stored)))


def to_stored(array: np.ndarray) -> StoredArray:
    """Encode an array for the page."""
    data = np.ascontiguousarray(array, "<f4").tobytes()
    return StoredArray(list(array.shape), base64.b64encode(data).decode())


def live_data(folder: Path) -> dict[str, Any]:
    """Read everything that the page runs from a run folder."""
    stored: StoredLive = read_json(folder / LIVE, StoredLive, what="the description of a system")
    paths = [folder / "landscape.csv", *sorted(folder.glob("exact-*.csv"))]
    grids = [_grid(read_landscape(path)) for path in paths if path.exists()]
    colours = mpl.colormaps["viridis"](np.linspace(0, 1, _NUM_COLOURS))
    return {
        **msgspec.to_builtins(stored),
        "bundle": bundle_data(read_bundle(folder)),
        "landscapes": [grid for grid in grids if grid is not None],
        "colours": (255 * colours[:, :3]).round().astype(int).tolist(),
    }


def bundle_data(bundle: Bundle) -> dict[str, Any]:
    """Return a controller bundle as the page reads it."""
    about = bundle.description
    fields = ("latent_size", "num_initial", "residual", "scales", "least_scale")
    return {
        "description": {
            **{name: getattr(about, name) for name in fields},
            "names": list(about.observation_names),
            "choices": list(about.choices),
            "low": bundle.limits[0].tolist(),
            "high": bundle.limits[1].tolist(),
            "angles": list(about.angles),
            "networks": {name: list(layers) for name, layers in about.networks.items()},
        },
        "arrays": {
            name: msgspec.to_builtins(to_stored(array)) for name, array in bundle.arrays.items()
        },
    }


def _grid(landscape: Landscape) -> dict[str, Any] | None:
    """Return a landscape over a full grid of two coordinates; none if it is another one."""
    if len(landscape.names) != 2:
        return None
    x, y = (np.unique(column) for column in landscape.states.T)
    if min(len(x), len(y)) < 2 or len(x) * len(y) != len(landscape.states):
        return None
    order = np.lexsort((landscape.states[:, 1], landscape.states[:, 0]))
    steps = landscape.about["steps"]
    return {
        "names": list(landscape.names),
        "x": x.tolist(),
        "y": y.tolist(),
        "values": landscape.empowerment[order].tolist(),
        "limits": list(colour_limits(landscape)),
        "about": f"{steps} step{'s' * (steps > 1)}, {landscape.about['estimator']}",
    }


def live_section(folder: Path, live: Live) -> str:
    """Return the section of the page with the scripts and numbers that it needs."""
    data = live_data(folder)
    words = "Empowerment over two coordinates; the others are those of the policy's system."
    if data["landscapes"]:
        words = "Empowerment of each state. Drag in it to move the policy's disc."
    section = string.Template((ASSETS / "live.html").read_text("utf-8")).substitute(
        MAP=html.escape(words),
        COLOURS=", ".join(f"rgb({r}, {g}, {b})" for r, g, b in data["colours"][::9]),
    )
    scripts = "\n".join(path.read_text("utf-8") for path in live_scripts(live))
    return (
        f"{section}<script type='application/json' id='live-data'>{to_script(data)}</script>"
        f"<script>\n{scripts}</script>"
    )


def live_scripts(live: Live) -> list[Path]:
    """Return the scripts of the page in their order; the last one starts it."""
    before, after = ([ASSETS / name for name in names] for names in (_BEFORE, _AFTER))
    return [*before, *live.scripts, *after]
