"""Line charts as vector graphics in the colours of the page, light or dark; needs no matplotlib."""

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

NUM_COLOURS = 8
"""Number of colours of lines; styles beyond it are dashed, then dotted."""

_DASHES = ("", "7 3", "2 3")

NUM_STYLES = NUM_COLOURS * len(_DASHES)
"""Number of lines that can be told apart."""

_WIDTH, _HEIGHT = 340, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 22, 8, 34
_NUM_TICKS = 4
_MOST_POINTS = 300
"""Points of a line that are drawn; of more, evenly spaced ones and the last."""

Number = int | float

Point = tuple[Number, Number]
"""A place in a chart: along the axis from left to right, and the value."""


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes:
        label: What it is called.
        points: Its points, from left to right.
        style: Number of its colour and dashes.
        mark: Text at its end.
        is_faint: Whether it stands back behind the others.
        has_dots: Whether its points are marked.
    """

    label: str
    points: Sequence[Point]
    style: int = 0
    mark: str = ""
    is_faint: bool = False
    has_dots: bool = False


def chart(
    title: str,
    lines: Sequence[Line],
    *,
    across: str,
    unit: str = "",
    logarithmic: bool = False,
    whole: bool = False,
    height: int = _HEIGHT,
    cursor: bool = False,
) -> str:
    """Draw lines over a common axis, as a figure of a page.

    Args:
        title: What is drawn, in plain words.
        lines: The lines; what cannot be drawn of them is left out, such as what is not finite.
        across: What the axis from left to right is, with its unit.
        unit: Unit of the values.
        logarithmic: Whether the values are drawn on a logarithmic scale.
        whole: Whether only whole numbers are marked on the axis from left to right.
        height: Height of the picture, where its width is 340.
        cursor: Whether a script of the page moves a cursor along it.

    Returns:
        The figure; an empty text if there is nothing to draw.
    """
    drawn = [(line, _drawable(line.points, logarithmic=logarithmic)) for line in lines]
    drawn = [(line, points) for line, points in drawn if points]
    if not drawn:
        return ""
    low_x, high_x = _limits(x for _, points in drawn for x, _ in points)
    values = [y for _, points in drawn for _, y in points]
    low_y, high_y = _logarithmic_limits(values) if logarithmic else _limits(values, margin=0.05)
    scale: Callable[[Number], float] = math.log if logarithmic else float
    floor = height - _BOTTOM

    def right(x: Number) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (x - low_x) / (high_x - low_x)

    def down(y: Number) -> float:
        share = (scale(y) - scale(low_y)) / (scale(high_y) - scale(low_y))
        return floor - (floor - _TOP) * share

    parts = [f"<rect class='frame' x='{_LEFT}' y='{_TOP}' {_size(floor)}/>"]
    ticks = logarithmic_ticks(low_y, high_y) if logarithmic else ticks_between(low_y, high_y)
    for value in ticks:
        y = down(value)
        parts.append(f"<path class='grid' d='M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}'/>")
        parts.append(f"<text x='{_LEFT - 4}' y='{y + 4:.1f}' class='end'>{_number(value)}</text>")
    for value in ticks_between(low_x, high_x):
        if whole and value != int(value):
            continue
        text = f"<text x='{right(value):.1f}' y='{floor + 14}' class='middle'>{_number(value)}"
        parts.append(f"{text}</text>")
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f"<text x='{middle}' y='{height - 4}' class='middle'>{html.escape(across)}</text>")
    for line, points in sorted(drawn, key=lambda each: not each[0].is_faint):
        parts.append(_line(line, [(right(x), down(y)) for x, y in points]))
    if cursor:
        parts.append(f"<path class='cursor' d='M{_LEFT} {_TOP}V{floor}'/>")
    place = f" data-left='{_LEFT}' data-right='{_WIDTH - _RIGHT}' data-from='{low_x:.6g}'"
    place = f"{place} data-to='{high_x:.6g}'" if cursor else ""
    last = "; ".join(f"{line.label}: {_number(points[-1][1])}" for line, points in drawn)
    words = html.escape(f"{title}. At the end {last}.", quote=True)
    caption = html.escape(f"{title}{f' / {unit}' if unit else ''}")
    return (
        f"<figure class='chart'><figcaption>{caption}</figcaption><svg viewBox='0 0 {_WIDTH} "
        f"{height}' role='img' aria-label='{words}'{place}>{''.join(parts)}</svg></figure>"
    )


def swatch(style: int) -> str:
    """Draw a piece of a line, for a legend."""
    return (
        "<svg class='swatch' viewBox='0 0 30 10' aria-hidden='true'>"
        f"<path {_stroke(style)} d='M1 5H29'/></svg>"
    )


def ticks_between(low: Number, high: Number, count: int = _NUM_TICKS) -> list[float]:
    """Choose about as many round numbers within limits."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def thinned(points: Sequence[Point], most: int = _MOST_POINTS) -> list[Point]:
    """Return at most so many of the points, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    places = np.linspace(0, len(points) - 1, most).round().astype(int)
    return [points[place] for place in places]


def _drawable(points: Sequence[Point], *, logarithmic: bool) -> list[Point]:
    finite = [each for each in points if math.isfinite(each[0]) and math.isfinite(each[1])]
    return thinned([(x, y) for x, y in finite if y > 0 or not logarithmic])


def _limits(values: Iterable[Number], margin: float = 0.0) -> tuple[Number, Number]:
    """Return limits around values, that are apart."""
    found = list(values)
    low, high = min(found), max(found)
    if not high - low > 1e-9 * max(abs(low), abs(high), 1e-9):
        half = 0.5 * abs(low) or 0.5
        return low - half, high + half
    return low - margin * (high - low), high + margin * (high - low)


def _logarithmic_limits(values: Sequence[Number]) -> tuple[Number, Number]:
    """Return limits around positive values, with room at both ends."""
    low, high = min(values), max(values)
    return (low / 3, high * 3) if high < 3 * low else (low / 1.5, high * 1.5)


def logarithmic_ticks(low: Number, high: Number) -> list[float]:
    """Choose powers of ten within limits; where there is hardly one, also their multiples."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    if last - first < 1:
        powers = [10.0**power for power in range(first - 1, last + 1)]
        every = [float(f"{factor * power:.3g}") for power in powers for factor in (1, 2, 5)]
        return [value for value in every if low <= value <= high]
    step = math.ceil((last - first + 1) / _NUM_TICKS)
    return [float(f"1e{power}") for power in range(first, last + 1, step)]


def _size(floor: Number) -> str:
    return f"width='{_WIDTH - _LEFT - _RIGHT}' height='{floor - _TOP}'"


def _line(line: Line, places: Sequence[Point]) -> str:
    """Draw a line with its name, which shows when it is pointed at, and what is at its end."""
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f"<path {_stroke(line.style)} d='M{way}'/>"]
    dots = places if line.has_dots or len(places) == 1 else places[-1:]
    parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.5'/>" for x, y in dots]
    if line.mark:
        x, y = places[-1]
        parts.append(f"<text x='{x + 5:.1f}' y='{y + 4:.1f}'>{html.escape(line.mark)}</text>")
    faint = " faint" if line.is_faint else ""
    return (
        f"<g class='line colour-{line.style % NUM_COLOURS}{faint}'>"
        f"<title>{html.escape(line.label)}</title>{''.join(parts)}</g>"
    )


def _stroke(style: int) -> str:
    dashes = _DASHES[style // NUM_COLOURS % len(_DASHES)]
    return f"class='stroke colour-{style % NUM_COLOURS}' stroke-dasharray='{dashes or 'none'}'"


def _number(value: Number) -> str:
    """Return a number as short as it can be, with a comma between thousands."""
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1e4 or value == int(value) else f"{value:.4g}"
