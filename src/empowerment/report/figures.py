"""Figures, drawn from tables."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from empowerment.report.landscape import Landscape

_COLOURS = "viridis"
_DARKEST = 0.2
"""Fraction of a map that may be darker than the colour scale: a few states with hardly any
empowerment would otherwise use up all colours."""

_FLAT = 0.02
"""Difference in nats below which a landscape counts as flat."""

_FINENESS = 8
"""Points drawn for each state along an axis of a map."""

Limits = tuple[float, float]
"""Limits of the colour scale, in nats."""


def draw_landscape(landscape: Landscape, path: Path) -> None:
    """Draw a landscape over one or two coordinates to a picture file.

    A full grid of states becomes a map, cells of a discrete world become tiles with their
    walls, other states become dots.

    Args:
        landscape: The landscape.
        path: The file; its suffix determines the format (png, pdf, svg).
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
    """Raise a `ValueError` if so many axes, or such a file, cannot be drawn."""
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
    """Draw a landscape into axes: as a map, tiles, dots or a line, whatever suits its states.

    Args:
        figure: Gets the colour bar.
        axes: Where to draw.
        landscape: The landscape.
        limits: Limits of the colour scale; by default chosen to suit the landscape.
    """
    value = landscape.empowerment
    units = landscape.about.get("units", {})
    labels = [f"{name} / {units[name]}" if name in units else name for name in landscape.names]
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
    """Choose the limits of the colour scale; a flat landscape gets the middle colour."""
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
    """Draw a full grid as a smooth map with contour lines."""
    order = np.lexsort((y, x))
    columns, rows = np.unique(x), np.unique(y)
    table = value[order].reshape(len(columns), len(rows)).T
    low, high = limits
    # Interpolate values, not colours: those between yellow and blue are not on the scale.
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
    """Interpolate linearly along the last axis."""
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
    """Draw the cells of a discrete world as tiles, with the walls between them."""
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


def _title(about: dict[str, Any]) -> str:
    """Return a title that names the noise, on which every figure depends."""
    steps = about["steps"]
    title = f"{about['world']}: {about['estimator']} {steps}-step empowerment"
    if "noise" not in about:
        return title
    scales = ", ".join(f"{scale:g}" for scale in dict.fromkeys(about["noise"]["perception"]))
    return f"{title}, resolution {scales}"
