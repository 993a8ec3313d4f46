"""Pictures: there are some, of every kind of landscape, and they show the data."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from empowerment.report import Landscape, check_drawable, draw_landscape
from empowerment.worlds import MAZE, Grid

ABOUT: dict[str, Any] = {
    "world": "pendulum",
    "estimator": "exact",
    "steps": 5,
    "noise": {"process": [0.0, 0.0], "perception": [0.05, 0.05]},
}


def make(kind: str) -> Landscape:
    rng = np.random.default_rng(0)
    names, about = ("angle", "velocity"), ABOUT
    if kind == "line":
        names, states = ("angle",), rng.normal(size=(20, 1))
    elif kind == "cells":
        names, states = ("x", "y"), np.array(Grid(MAZE).cells, dtype=float)
        about = {"world": "maze", "estimator": "exact", "steps": 5, "drawing": MAZE}
    elif kind == "scattered":
        states = rng.normal(size=(30, 2))
    else:
        columns, rows = map(int, kind.split("x"))
        axes = itertools.product(np.linspace(-3, 3, columns), np.linspace(-8, 8, rows))
        states = np.array(list(axes))
    value = np.cos(states).sum(axis=1)
    return Landscape(names, states, value, None, None, about)


KINDS = ["line", "cells", "scattered", "7x9", "1x5", "5x1", "1x1", "2x2"]


def picture(landscape: Landscape, path: Path) -> np.ndarray:
    draw_landscape(landscape, path)
    assert plt.get_fignums() == []
    assert path.read_bytes().startswith(b"\x89PNG")
    pixels = plt.imread(path)
    assert min(pixels.shape[:2]) > 500
    return pixels


@pytest.mark.parametrize("kind", KINDS)
def test_picture_shows_the_data(tmp_path: Path, kind: str):
    landscape = make(kind)
    first = picture(landscape, tmp_path / "new" / "first.png")
    colours = (255 * first).astype(np.uint8).view(np.uint32)  # Numbers: rows take long to sort.
    assert len(np.unique(colours)) > 20
    if kind == "1x1":
        return
    other = dataclasses.replace(landscape, empowerment=landscape.empowerment[::-1] ** 2)
    assert (picture(other, tmp_path / "other.png") != first).any()


@pytest.mark.parametrize("kind", ["7x9", "scattered", "line"])
def test_order_of_the_states_does_not_matter(tmp_path: Path, kind: str):
    landscape = make(kind)
    order = np.random.default_rng(1).permutation(len(landscape.states))
    shuffled = dataclasses.replace(
        landscape, states=landscape.states[order], empowerment=landscape.empowerment[order]
    )
    first, second = (picture(each, tmp_path / "a.png") for each in (landscape, shuffled))
    if kind == "scattered":  # Dots that overlap lie in another order.
        assert (first != second).any(axis=2).mean() < 0.01
    else:
        np.testing.assert_array_equal(first, second)


def test_walls_are_drawn(tmp_path: Path):
    maze = make("cells")
    room = dataclasses.replace(
        maze, about=maze.about | {"drawing": MAZE.replace("|", " ").replace("-", " ")}
    )
    dark = [
        int((picture(each, tmp_path / "a.png")[..., :3].max(axis=2) < 0.1).sum())
        for each in (maze, room)
    ]
    assert dark[0] > 1.2 * dark[1]


def test_flat_landscape_can_be_drawn(tmp_path: Path):
    flat = dataclasses.replace(make("7x9"), empowerment=np.full(63, 1.354))
    picture(flat, tmp_path / "flat.png")


@pytest.mark.parametrize("ending", ["pdf", "svg"])
def test_ending_says_the_format(tmp_path: Path, ending: str):
    path = tmp_path / f"picture.{ending}"
    draw_landscape(make("7x9"), path)
    assert (b"%PDF" if ending == "pdf" else b"<svg") in path.read_bytes()[:2000]


@pytest.mark.parametrize("name", ["picture.xyz", "picture"])
def test_unknown_ending_is_refused(tmp_path: Path, name: str):
    with pytest.raises(ValueError, match=f"to end in one of .*png.*; got '.*{name}'"):
        draw_landscape(make("7x9"), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert plt.get_fignums() == []


def test_three_coordinates_cannot_be_drawn(tmp_path: Path):
    with pytest.raises(ValueError, match="at most two coordinates for a figure; got a, b, c"):
        check_drawable(("a", "b", "c"), tmp_path / "picture.png")
