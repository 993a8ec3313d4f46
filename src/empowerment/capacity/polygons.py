"""Lines and polygons in the plane, as arrays of points."""

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "_ 2"]

_LONGEST_TANGENT = 2.0
"""In units of the chord. Longer tangents are of ends that coincide but for rounding."""


def thin(line: Points, spacing: float) -> Points:
    """Keep points of a dense line about `spacing` apart, both ends among them."""
    travelled = _travelled(line)
    marks = np.linspace(0, travelled[-1], int(np.ceil(travelled[-1] / spacing)) + 1)
    return line[np.unique(np.searchsorted(travelled, marks - 1e-9).clip(max=len(line) - 1))]


def fill(line: Points, spacing: float) -> Points:
    """Add points to the vertices of a line until they are no more than `spacing` apart."""
    travelled = _travelled(line)
    marks = np.arange(0, travelled[-1], spacing)
    between = np.stack([np.interp(marks, travelled, axis) for axis in line.T], axis=1)
    return np.concatenate([line, between])


def split_agents(points: Points, cell: float) -> Points:
    """Keep one point of each cell of a square lattice."""
    return points[np.unique(np.round(points / cell), axis=0, return_index=True)[1]]


def lattice(loop: Points, spacing: float) -> Points:
    """Lay a square lattice over all that a closed line winds around, in either sense."""
    size = np.ptp(loop, axis=0)
    if size[0] < size[1]:  # Few long rows are faster than many short ones.
        return lattice(loop[:, ::-1], spacing)[:, ::-1]
    (ax, ay), (bx, by) = loop.T, np.roll(loop, -1, axis=0).T
    columns = np.arange(ax.min(), ax.max() + spacing, spacing)
    points = [np.empty((0, 2))]
    for row in np.arange(ay.min(), ay.max() + spacing, spacing):
        crosses = (ay <= row) != (by <= row)
        share = (row - ay[crosses]) / (by - ay)[crosses]
        places = ax[crosses] + share * (bx - ax)[crosses]
        order = np.argsort(places)
        winding = np.cumsum(np.where(by > ay, 1, -1)[crosses][order])
        before = np.searchsorted(places[order], columns)
        inside = columns[np.concatenate([[0], winding])[before] != 0]
        points.append(np.stack([inside, np.full_like(inside, row)], axis=1))
    return np.concatenate(points)


def area(loop: Points) -> float:
    """Compute the area that a closed line encloses, by the shoelace formula."""
    (ax, ay), (bx, by) = loop.T, np.roll(loop, -1, axis=0).T
    return abs(float(np.sum(ax * by - bx * ay))) / 2


def circumscribe(ends: Points, normals: Points) -> Points:
    """Draw a polygon around a set: tangents where it bulges, chords where it is hollow.

    Args:
        ends: Points on the border of the set, in the order of their angle.
        normals: At each of them, the unit vector that points out of the set.

    Returns:
        The vertices of the polygon.
    """
    chord = np.roll(ends, -1, axis=0) - ends
    following = np.roll(normals, -1, axis=0)
    turn = normals[:, 0] * following[:, 1] - normals[:, 1] * following[:, 0]
    ahead = -np.einsum("ij,ij->i", normals, chord)
    behind = np.einsum("ij,ij->i", following, chord)
    # How far along the tangent at each end the tangent at the following end is met.
    run = np.where(turn > 0, behind, 0) / np.maximum(turn, np.finfo(float).tiny)
    sane = run <= _LONGEST_TANGENT * np.linalg.norm(chord, axis=1)
    run = np.where((ahead >= 0) & (behind >= 0) & sane, run, 0)
    tangent = np.stack([-normals[:, 1], normals[:, 0]], axis=1)
    return np.stack([ends, ends + run[:, None] * tangent], axis=1).reshape(-1, 2)


def _travelled(line: Points) -> Float[np.ndarray, " _"]:
    """Measure how far along a line each of its points is."""
    return np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
