"""Figures, drawn from tables."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from empowerment.report.tables import Landscape

_COLOURS = "viridis"
_DARKEST = 0.2
"""The share of a map that may be darker than the scale: a few states without any power
would otherwise take all colours."""

_FLAT = 0.02
"""Nats below which differences are not worth a colour."""

_UNITS = {"angle": "rad", "velocity": "rad/s"}

_FINENESS = 8
"""Points that are drawn for each state along an axis of a map."""

Limits = tuple[float, float]
"""The least and the most that the colours tell apart, in nats."""


def draw_landscape(landscape: Landscape, path: Path) -> None:
    """Draw a landscape over one or two coordinates to a picture file.

    A full grid of states becomes a map, cells of a discrete world become tiles with their
    walls, other states become dots.

    Args:
        landscape: What to draw.
        path: The file; its ending says the format (png, pdf, svg).
    """
    check_drawable(landscape.names, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    try:
        paint_landscape(figure, axes, landscape)
        axes.set_title(_title(landscape.about), fontsize=10)
        figure.savefig(path, dpi=160)
    finally:
        plt.close(figure)


def check_drawable(names: tuple[str, ...], path: Path) -> None:
    """Raise a `ValueError` if there is no picture of so many axes or in such a file."""
    if len(names) > 2:
        raise ValueError(f"Expected at most two coordinates for a figure; got {', '.join(names)}.")
    formats = plt.figure().canvas.get_supported_filetypes()
    plt.close()
    if path.suffix.removeprefix(".") not in formats:
        raise ValueError(
            f"Expected the figure's file to end in one of {', '.join(sorted(formats))}; "
            f"got {str(path)!r}."
        )


def paint_landscape(
    figure: Figure, axes: Axes, landscape: Landscape, *, limits: Limits | None = None
) -> None:
    """Put the empowerment into the axes, in the way that suits the states.

    Args:
        figure: Where there is room for a bar of colours.
        axes: Where to draw.
        landscape: What to draw.
        limits: Of the colours of a map; chosen to suit the landscape if not given.
    """
    value = landscape.empowerment
    labels = [_label(name) for name in landscape.names]
    axes.set_xlabel(labels[0])
    if len(labels) == 1:
        order = np.argsort(landscape.states[:, 0])
        axes.plot(landscape.states[order, 0], value[order])
        axes.set_ylabel("empowerment / nats")
        return
    axes.set_ylabel(labels[1])
    x, y = landscape.states.T
    if "drawing" in landscape.about:
        image = _paint_cells(axes, x, y, value, landscape.about["drawing"])
    elif len(np.unique(x)) * len(np.unique(y)) == len(value) > 3:
        image = _paint_map(axes, x, y, value, limits or colour_limits(landscape))
    else:
        image = axes.scatter(x, y, c=value, cmap=_COLOURS, s=14)
    beyond = "min" if value.min() < image.norm.vmin else "neither"
    figure.colorbar(image, ax=axes, label="empowerment / nats", extend=beyond)


def colour_limits(landscape: Landscape) -> Limits:
    """Choose what the colours of a map tell apart; a flat one is all of the middle colour."""
    value = landscape.empowerment
    low, high = float(np.quantile(value, _DARKEST)), float(value.max())
    if high - low < _FLAT:
        return high - _FLAT, high + _FLAT
    return low, high


def _paint_map(
    axes: Axes,
    x: Float[np.ndarray, " states"],
    y: Float[np.ndarray, " states"],
    value: Float[np.ndarray, " states"],
    limits: Limits,
) -> Any:
    """Draw a full grid as a smooth map with lines of equal empowerment."""
    order = np.lexsort((y, x))
    columns, rows = np.unique(x), np.unique(y)
    table = value[order].reshape(len(columns), len(rows)).T
    low, high = limits
    # Values are made finer, not colours: those between yellow and blue are not on the scale.
    fine = _finer(_finer(table).T).T
    image = axes.pcolormesh(
        _finer(columns),
        _finer(rows),
        fine,
        cmap=_COLOURS,
        shading="gouraud",
        vmin=low,
        vmax=high,
        rasterized=True,
    )
    is_flat = table.max() - np.quantile(table, _DARKEST) < _FLAT
    if min(table.shape) > 1 and not is_flat:
        levels = np.linspace(low, high, 12)[1:-1]
        axes.contour(columns, rows, table, levels=levels, colors="white", linewidths=0.5, alpha=0.6)
    return image


def _finer(values: Float[np.ndarray, "... points"]) -> Float[np.ndarray, "... finer"]:
    """Put points between points, on straight lines, along the last axis."""
    count = values.shape[-1]
    places = np.linspace(0, count - 1, _FINENESS * (count - 1) + 1)
    before = np.minimum(places.astype(int), max(count - 2, 0))
    share = places - before
    after = np.minimum(before + 1, count - 1)
    return (1 - share) * values[..., before] + share * values[..., after]


def _paint_cells(
    axes: Axes,
    x: Float[np.ndarray, " states"],
    y: Float[np.ndarray, " states"],
    value: Float[np.ndarray, " states"],
    drawing: str,
) -> Any:
    """Draw the cells of a discrete world as tiles, and the walls between them."""
    lines = drawing.strip("\n").split("\n")
    height, width = (len(lines) + 1) // 2, (max(map(len, lines)) + 1) // 2
    table = np.full((height, width), np.nan)
    table[y.astype(int), x.astype(int)] = value
    image = axes.imshow(table, origin="lower", cmap=_COLOURS)
    style = {"color": "black", "linewidth": 2.5, "solid_capstyle": "round"}
    for row, line in enumerate(lines):
        for column, mark in enumerate(line):
            left, top = column // 2 - 0.5, height - 1 - row // 2 + 0.5
            if mark == "|":
                axes.plot([left + 1, left + 1], [top - 1, top], **style)
            elif mark == "-":
                axes.plot([left, left + 1], [top - 1, top - 1], **style)
    return image


def _label(name: str) -> str:
    return f"{name} / {_UNITS[name]}" if name in _UNITS else name


def _title(about: dict[str, Any]) -> str:
    """Say what is seen, with the noise it depends on."""
    steps = about["steps"]
    title = f"{about['world']}: {about['estimator']} {steps}-step empowerment"
    if "noise" not in about:
        return title
    scales = ", ".join(f"{scale:g}" for scale in dict.fromkeys(about["noise"]["perception"]))
    return f"{title}, resolution {scales}"
