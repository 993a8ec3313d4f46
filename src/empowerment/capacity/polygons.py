"""Lines and polygons in the plane, as arrays of points."""

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "_ 2"]

_LONGEST_TANGENT = 2.0
"""In units of the chord. Longer tangents come from ends that coincide up to rounding."""


def thin(line: Float[np.ndarray, "_ axes"], spacing: float) -> Float[np.ndarray, "_ axes"]:
    """Thin a dense line to points about `spacing` apart, both ends included."""
    travelled = _travelled(line)
    marks = np.linspace(0, travelled[-1], int(np.ceil(travelled[-1] / spacing)) + 1)
    return line[np.unique(np.searchsorted(travelled, marks - 1e-9).clip(max=len(line) - 1))]


def fill(line: Points, spacing: float) -> Points:
    """Add points to the vertices of a line until they are no more than `spacing` apart."""
    travelled = _travelled(line)
    marks = np.arange(0, travelled[-1], spacing)
    between = np.stack([np.interp(marks, travelled, axis) for axis in line.T], axis=1)
    return np.concatenate([line, between])


def one_per_cell(points: Points, cell: float) -> Points:
    """Keep one point of each cell of a square lattice."""
    return points[np.unique(np.round(points / cell), axis=0, return_index=True)[1]]


def beyond(points: Points, known: Points, cell: float) -> Points:
    """Keep one point of each cell of a square lattice that has no known point."""
    points = one_per_cell(points, cell)
    taken = {tuple(place) for place in np.round(known / cell).astype(int).tolist()}
    places = np.round(points / cell).astype(int).tolist()
    return points[[tuple(place) not in taken for place in places]]


def lattice(loop: Points, spacing: float) -> Points:
    """Return the points of a square lattice with non-zero winding number in a closed line."""
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
    """Circumscribe a polygon: tangents where the set is convex, chords where it is concave.

    Args:
        ends: Points on the boundary of the set, ordered by angle.
        normals: The outward unit normal at each of them.

    Returns:
        The vertices of the polygon.
    """
    chord = np.roll(ends, -1, axis=0) - ends
    following = np.roll(normals, -1, axis=0)
    turn = normals[:, 0] * following[:, 1] - normals[:, 1] * following[:, 0]
    ahead = -np.einsum("ij,ij->i", normals, chord)
    behind = np.einsum("ij,ij->i", following, chord)
    # The distance along the tangent at each end to the tangent at the following end.
    run = np.where(turn > 0, behind, 0) / np.maximum(turn, np.finfo(float).tiny)
    sane = run <= _LONGEST_TANGENT * np.linalg.norm(chord, axis=1)
    run = np.where((ahead >= 0) & (behind >= 0) & sane, run, 0)
    tangent = np.stack([-normals[:, 1], normals[:, 0]], axis=1)
    return np.stack([ends, ends + run[:, None] * tangent], axis=1).reshape(-1, 2)


def _travelled(line: Float[np.ndarray, "_ axes"]) -> Float[np.ndarray, " _"]:
    """Compute the arc length of a line at each of its points."""
    return np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
