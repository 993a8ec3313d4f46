"""Lines and polygons against slow and obvious code."""

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from empowerment.capacity.polygons import area, circumscribe, fill, lattice, one_per_cell, thin

seeds = st.integers(0, 2**32 - 1)
SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])


def winding(point: np.ndarray, loop: np.ndarray) -> int:
    """How often a closed line winds around a point: the sum of the angles it is seen under."""
    total = 0.0
    for start, end in zip(loop - point, np.roll(loop, -1, axis=0) - point, strict=True):
        total += math.atan2(start[0] * end[1] - start[1] * end[0], start @ end)
    return round(total / (2 * math.pi))


def star(seed: int, corners: int = 9) -> np.ndarray:
    """A polygon around the origin, seldom convex, longer on either axis."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * (np.arange(corners) + rng.uniform(0, 1, corners)) / corners
    spokes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return rng.uniform(0.5, 4, (corners, 1)) * spokes * rng.uniform(0.3, 2, 2)


def curve(times: np.ndarray) -> np.ndarray:
    return np.stack([3 * np.cos(times), np.sin(2 * times)], axis=1)


def gaps(line: np.ndarray) -> np.ndarray:
    return np.linalg.norm(np.diff(line, axis=0), axis=1)


@given(seeds)
def test_lattice_is_what_the_loop_winds_around(seed: int):
    loop, spacing = star(seed), 0.31
    found = lattice(loop, spacing)
    low, high = loop.min(axis=0), loop.max(axis=0)
    axes = [np.arange(a, b + spacing, spacing) for a, b in zip(low, high, strict=True)]
    expected = [[x, y] for x in axes[0] for y in axes[1] if winding(np.array([x, y]), loop)]
    # Points on the line itself may fall to either side: one corner is always the first.
    on_line = {tuple(np.round(point, 9)) for point in loop}
    ours, theirs = ({tuple(np.round(p, 9)) for p in points} for points in (found, expected))
    assert ours - on_line == theirs - on_line
    assert len(found) == len(ours)


def test_what_is_wound_around_twice_or_backwards_is_inside():
    times = np.linspace(0, 4 * np.pi, 80, endpoint=False)
    twice = (2 + np.cos(times / 2))[:, None] * np.stack([np.cos(times), np.sin(times)], axis=1)
    assert winding(np.array([0.1, 0.1]), twice) == 2
    for loop in (twice, twice[::-1]):
        found = lattice(loop, 0.25)
        assert np.linalg.norm(found, axis=1).min() < 0.25
        assert all(winding(point, loop) for point in found)
    eight = curve(np.linspace(0, 2 * np.pi, 80, endpoint=False))
    found = lattice(eight, 0.1)
    for side in (-2.0, 2.0):  # one half is wound around in either sense
        assert np.linalg.norm(found - [side, 0.0], axis=1).min() < 0.1
    assert np.linalg.norm(found - [0.0, 0.5], axis=1).min() > 0.2


def test_hole_that_is_not_wound_around_is_left_out():
    ring = np.array(
        [[0, 0], [6, 0], [6, 6], [0, 6], [0, 0], [2, 2], [2, 4], [4, 4], [4, 2], [2, 2]]
    )
    found = lattice(ring.astype(float), 0.5)
    inside = (found > 2.01).all(axis=1) & (found < 3.99).all(axis=1)
    assert not inside.any()
    assert 0.25 * len(found) == pytest.approx(36 - 4, rel=0.2)


@given(seeds)
def test_lattice_counts_the_area(seed: int):
    loop = star(seed)
    assert 0.03**2 * len(lattice(loop, 0.03)) == pytest.approx(area(loop), rel=0.05, abs=0.02)


@pytest.mark.parametrize(
    ("loop", "expected"),
    [(SQUARE, 16.0), (SQUARE[::-1], 16.0), (SQUARE[:3], 8.0), (SQUARE[:2], 0.0)],
)
def test_area(loop: np.ndarray, expected: float):
    assert area(loop) == pytest.approx(expected)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert area(loop @ turn.T + [5.0, -3.0]) == pytest.approx(expected, abs=1e-9)


@given(seeds)
def test_area_is_the_sum_of_triangles(seed: int):
    loop = star(seed)
    total = 0.0
    for (ax, ay), (bx, by) in zip(loop, np.roll(loop, -1, axis=0), strict=True):
        total += 0.5 * (ax * by - ay * bx)
    assert area(loop) == pytest.approx(abs(total))


@pytest.mark.parametrize("spacing", [0.1, 0.4, 1.7])
def test_thin_keeps_true_points_at_the_distance(spacing: float):
    line = curve(np.linspace(0, 3, 5000))
    found = thin(line, spacing)
    rows = {tuple(point) for point in line}
    assert all(tuple(point) in rows for point in found)
    np.testing.assert_array_equal(found[[0, -1]], line[[0, -1]])
    assert gaps(found).max() <= spacing + 1e-2  # the line itself has steps of 2e-3
    assert len(found) == math.ceil(gaps(line).sum() / spacing) + 1


def test_thin_copes_with_a_line_that_stands_still():
    still = np.tile([[1.0, 2.0]], (7, 1))
    np.testing.assert_array_equal(thin(still, 0.5), still[:1])
    stuck = np.concatenate([still, [[4.0, 2.0]], [[4.0, 2.0]]])
    found = thin(stuck, 0.5)
    assert {tuple(point) for point in found} == {(1.0, 2.0), (4.0, 2.0)}


@given(seeds, st.sampled_from([0.05, 0.3, 2.0]))
def test_fill_leaves_no_gap_and_stays_on_the_line(seed: int, spacing: float):
    line = star(seed)
    found = fill(line, spacing)
    np.testing.assert_array_equal(found[: len(line)], line)
    for start, end in itertools.pairwise(line):
        along = end - start
        share = np.clip((found - start) @ along / (along @ along), 0, 1)
        on = np.linalg.norm(found - start - share[:, None] * along, axis=1) < 1e-9
        places = np.sort(share[on]) * np.linalg.norm(along)
        assert np.diff(places).max() <= spacing + 1e-9
    travelled = np.concatenate([[0], np.cumsum(gaps(line))])
    for point in found[len(line) :]:
        distances = []
        for start, end in itertools.pairwise(line):
            along = end - start
            share = np.clip((point - start) @ along / (along @ along), 0, 1)
            distances.append(np.linalg.norm(point - start - share * along))
        assert min(distances) < 1e-9
    assert len(found) <= len(line) + travelled[-1] / spacing + 1


@given(seeds)
def test_one_per_cell_keeps_a_true_point_near_every_point(seed: int):
    points, cell = np.random.default_rng(seed).uniform(-2, 2, (200, 2)), 0.5
    found = one_per_cell(points, cell)
    rows = {tuple(point) for point in points}
    assert all(tuple(point) in rows for point in found)
    distance = np.abs(points[:, None] - found[None]).max(axis=2).min(axis=1)
    assert distance.max() <= cell
    assert len({tuple(np.round(point / cell)) for point in found}) == len(found)


def circle(count: int) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize("count", [3, 8, 96])
def test_tangents_enclose_a_circle(count: int):
    ends = circle(count)
    polygon = circumscribe(ends, ends)
    # Every edge of the polygon is at least as far from the middle as the circle.
    for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        length = np.linalg.norm(end - start)
        if length > 1e-9:
            assert (start[0] * end[1] - start[1] * end[0]) / length >= 1 - 1e-9
    assert area(polygon) == pytest.approx(count * math.tan(math.pi / count))


@given(seeds)
def test_tangents_enclose_an_ellipse_and_its_chords(seed: int):
    rng = np.random.default_rng(seed)
    stretch = np.linalg.qr(rng.normal(size=(2, 2)))[0] * rng.uniform(0.1, 5, 2)
    normals = circle(40)
    normals = normals @ np.linalg.inv(stretch)
    ends = circle(40) @ stretch.T
    order = np.argsort(np.arctan2(ends[:, 1], ends[:, 0]))
    ends, normals = ends[order], normals[order] / np.linalg.norm(normals[order], axis=1)[:, None]
    polygon = circumscribe(ends, normals)
    dense = 0.999 * circle(1000) @ stretch.T
    assert all(winding(point, polygon) == 1 for point in dense[::20])
    exact = math.pi * abs(np.linalg.det(stretch))
    assert exact <= area(polygon) <= 1.01 * exact


def test_hollow_arcs_become_chords():
    """A square whose lower side is bent inwards: no tangent may cut into the outside of it."""
    ends = np.array([[2.0, -2.0], [2.0, 2.0], [-2.0, 2.0], [-2.0, -2.0], [-1.0, -1.0], [1.0, -1.0]])
    outwards = [[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [0.7, -1.0], [-0.7, -1.0]]
    normals = np.array(outwards) / np.linalg.norm(outwards, axis=1)[:, None]
    polygon = circumscribe(ends, normals)
    pairs = polygon.reshape(-1, 2, 2)
    np.testing.assert_array_equal(pairs[:, 0], ends)
    for index in (3, 5):  # into the hollow and out of it
        np.testing.assert_array_equal(pairs[index, 1], ends[index])
    bulging = pairs[[0, 1, 2], 1]
    np.testing.assert_allclose(bulging, [[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0]], atol=1e-12)


def test_ends_that_coincide_but_for_rounding_make_no_spike():
    ends = circle(8)
    doubled = np.insert(ends, 1, ends[0] + [0.0, 1e-9], axis=0)
    normals = np.insert(ends, 1, ends[0], axis=0)
    normals[1] = [math.cos(1e-12), math.sin(1e-12)]
    polygon = circumscribe(doubled, normals)
    assert np.linalg.norm(polygon, axis=1).max() <= 1 / math.cos(math.pi / 8) + 1e-6
