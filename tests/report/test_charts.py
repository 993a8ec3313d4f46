"""Charts of a page: lines are where their numbers are, in words too, whatever the numbers."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from empowerment.report.charts import Line, chart, logarithmic_ticks, thinned, ticks_between

EVIL = "</svg><script>alert('&')</script>"


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def ways(text: str) -> list[np.ndarray]:
    """Points of each line, in the order in which they are drawn, in units of the picture."""
    found = re.findall(r"class='stroke[^>]* d='M([^']*)'", text)
    return [np.array([list(map(float, each.split())) for each in way.split("L")]) for way in found]


def test_points_are_where_the_marks_of_the_axes_say():
    text = chart("A", [Line("one", [(0, 0), (10, 4), (20, 2)])], across="updates")
    (way,) = ways(text)
    texts = parsed(text).findall(".//text")
    across = {
        each.text: float(each.get("x", "")) for each in texts if each.get("class") == "middle"
    }
    up = {each.text: float(each.get("y", "")) - 4 for each in texts if each.get("class") == "end"}
    assert way[:, 0] == pytest.approx([across["0"], across["10"], across["20"]], abs=0.1)
    assert way[:, 1] == pytest.approx([up["0"], up["4"], up["2"]], abs=0.1)


def test_a_logarithmic_axis_is_even_in_factors():
    (way,) = ways(
        chart("A", [Line("one", [(1, 0.01), (2, 0.1), (3, 1)])], across="", logarithmic=True)
    )
    assert np.diff(way[:, 1]) == pytest.approx(2 * [way[1, 1] - way[0, 1]], abs=0.1)


@pytest.mark.parametrize("scale", ["linear", "logarithmic"])
def test_what_cannot_be_drawn_is_left_out(scale: str):
    logarithmic = scale == "logarithmic"
    values = [math.nan, 1.0, math.inf, -1.0, 0.0, 3.0]
    (way,) = ways(
        chart("A", [Line("one", [*enumerate(values)])], across="", logarithmic=logarithmic)
    )
    assert len(way) == (2 if logarithmic else 4)
    empty = Line("one", [(0.0, math.nan)])
    assert chart("A", [empty, Line("two", [])], across="", logarithmic=logarithmic) == ""


@pytest.mark.parametrize("values", [[5.0], [0.0, 0.0], [1e-300, 1e300], [3.0, 3.0 + 1e-12], [-1e9]])
@pytest.mark.parametrize("scale", ["linear", "logarithmic"])
def test_any_numbers_have_limits(values: list[float], scale: str):
    logarithmic = scale == "logarithmic"
    text = chart("A", [Line("one", [*enumerate(values)])], across="", logarithmic=logarithmic)
    if text:
        assert np.isfinite(np.concatenate(ways(text))).all()
        assert parsed(text) is not None


def test_names_are_text_and_the_last_values_are_said():
    text = chart(EVIL, [Line(EVIL, [(0, 1), (1, 12345.6)], mark=EVIL)], across=EVIL, unit=EVIL)
    tree = parsed(text)
    assert tree.findall(".//script") == []
    assert str(tree.find(".//svg").get("aria-label")).endswith(f"At the end {EVIL}: 12,346.")  # pyright: ignore[reportOptionalMemberAccess]
    assert EVIL in [each.text for each in tree.findall(".//title")]


def test_styles_can_be_told_apart():
    lines = [Line(str(n), [(0, n), (1, n)], style=n) for n in range(24)]
    text = chart("A", lines, across="")
    looks = set(re.findall(r"class='stroke (colour-\d)' stroke-dasharray='([^']*)'", text))
    assert len(looks) == 24


def test_ticks_are_round():
    assert ticks_between(0, 10) == [0, 5, 10]
    assert ticks_between(-0.31, 0.3) == [-0.2, 0, 0.2]
    assert logarithmic_ticks(0.02, 300) == [0.1, 1, 10, 100]
    assert logarithmic_ticks(0.03, 0.4) == [0.05, 0.1, 0.2]


def test_long_lines_are_thinned_and_keep_their_ends():
    points = [(float(n), float(n)) for n in range(10001)]
    few = thinned(points)
    assert len(few) == 300
    assert (few[0], few[-1]) == (points[0], points[-1])
    assert np.ptp(np.diff([x for x, _ in few])) <= 1
