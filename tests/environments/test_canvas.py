"""The rasteriser: shapes have their areas, and pictures show what they should."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from empowerment.environments import painters, rod_painters
from empowerment.environments.canvas import ACCENT, INK, PAPER, Canvas


def painted_area(paint: Callable[[Canvas], None]) -> float:
    """The area that a shape covers, in units of the world: partly covered counts partly."""
    canvas = Canvas(320, 480, view_height=4.0)
    before = canvas.frame()[..., 0].astype(float)
    paint(canvas)
    darkness = before - canvas.frame()[..., 0]
    return darkness.sum() / (255 * (PAPER[0] - INK[0])) * (4.0 / 320) ** 2


@pytest.mark.parametrize(
    ("paint", "area"),
    [
        (lambda canvas: canvas.disc((0.3, -0.2), 0.7, INK), math.pi * 0.49),
        (lambda canvas: canvas.rectangle((-1, -0.5), (1.5, 0.5), INK), 2.5),
        (
            lambda canvas: canvas.rectangle((0, 0), (1, 1), INK, corner=0.25),
            1 - (4 - math.pi) * 0.0625,
        ),
        (
            lambda canvas: canvas.line([(-1, -1), (1, 0.5)], 0.2, INK),
            2.5 * 0.2 + math.pi * 0.01,
        ),
        (lambda canvas: canvas.line([(1, 1), (1, 1)], 0.6, INK), math.pi * 0.09),
        # Half of it is out of the picture, the other all of it.
        (lambda canvas: canvas.disc((0, 2), 0.7, INK), math.pi * 0.49 / 2),
        (lambda canvas: canvas.disc((50, 50), 0.7, INK), 0),
    ],
)
def test_shapes_have_their_areas(paint: Callable[[Canvas], None], area: float):
    assert painted_area(paint) == pytest.approx(area, rel=0.005, abs=1e-3)


def test_edges_are_smooth():
    canvas = Canvas(64, 64, view_height=2.0)
    canvas.disc((0, 0), 0.7, INK)
    assert len(np.unique(canvas.frame()[..., 0])) > 10


def test_up_is_up_and_right_is_right():
    canvas = Canvas(32, 64, view_height=2.0, centre=(10.0, 5.0))
    canvas.disc((11.5, 5.5), 0.2, INK)
    rows, columns = np.nonzero(canvas.frame()[..., 0] < 128)
    assert rows.mean() == pytest.approx(7.5)  # of 32, the first on top
    assert columns.mean() == pytest.approx(55.5)  # of 64


@pytest.mark.parametrize("sides", [(100, 64), (64, 100), (0, 64)])
def test_odd_sides_are_refused(sides: tuple[int, int]):
    with pytest.raises(ValueError, match=f"multiples of 16; got {sides[0]} and"):
        Canvas(*sides, view_height=1.0)


def accent(frame: np.ndarray) -> tuple[float, float]:
    """Where the accent colour is, in parts of the frame from its middle, y upwards."""
    distance = np.abs(frame - np.rint(255 * np.array(ACCENT))).max(axis=2)
    rows, columns = np.nonzero(distance < 2)
    height, width, _ = frame.shape
    return columns.mean() / width - 0.5, 0.5 - rows.mean() / height


@pytest.mark.parametrize(
    ("angle", "side", "up"),
    [(0.0, 0, 1), (math.pi, 0, -1), (math.pi / 2, -1, 0), (-math.pi / 2, 1, 0)],
)
def test_pendulum_is_up_at_zero_and_leans_left_at_positive_angles(angle: float, side: int, up: int):
    """As Gymnasium draws it: positive angles are anticlockwise."""
    frame = painters.pendulum(np.array([angle, 0.0]), None, max_torque=2.0)
    expected = (side / 2.9, up / 2.9)  # the rod has length one, the view 2.9
    assert accent(frame) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("torque", [-2.0, 2.0])
def test_torque_turns_the_way_it_pushes(torque: float):
    """A positive torque is anticlockwise: from the top the arc goes to the left."""
    state = np.array([0.0, 0.0])
    frame = painters.pendulum(state, np.array([torque]), max_torque=2.0)
    assert math.copysign(1, accent(frame)[0]) == -math.copysign(1, torque)


@pytest.mark.parametrize("corner", [(0.0, 0.0), (10.0, 10.0), (0.0, 10.0)])
def test_ball_in_a_corner_touches_the_walls_and_is_whole(corner: tuple[float, float]):
    whole = painters.ball(np.array([5.0, 5.0]), None, side=10.0)
    frame = painters.ball(np.array(corner), None, side=10.0)

    def num_accent(frame: np.ndarray) -> int:
        distance = np.abs(frame - np.rint(255 * np.array(ACCENT))).max(axis=2)
        return int((distance < 2).sum())

    assert num_accent(frame) == pytest.approx(num_accent(whole), rel=0.03)
    assert accent(frame) == pytest.approx([(c - 5) / 13.2 for c in corner], abs=0.01)


@pytest.mark.parametrize("position", [-40.0, -1.0, 0.0, 1.0, 40.0])
def test_cart_is_always_in_view(position: float):
    frame = painters.cart(np.array([position, 0.0]), None)
    body = frame[70:110]  # without the mark of the origin
    assert accent(body)[0] == pytest.approx(np.clip(position, -1, 1) / 3, abs=0.01)


@pytest.mark.parametrize("angles", [(0.0, 0.0), (2.0, -1.0), (-1.0, 2.5)])
def test_tip_of_a_chain_is_where_its_angles_lead(angles: tuple[float, float]):
    state = np.array([*angles, 0.0, 0.0])
    frame = rod_painters.chain(state, None, driven=(0,), max_torque=1.0)
    directions = np.pi / 2 + np.cumsum(angles)
    tip = np.array([np.cos(directions).sum(), np.sin(directions).sum()])
    assert accent(frame) == pytest.approx(tip / 4.6, abs=0.01)


def test_pole_leans_to_the_right_of_its_cart():
    state = np.array([0.5, 0.3, 0.0, 0.0])
    frame = rod_painters.cart_pole(state, None, rail=2.4, length=1.0, max_force=1.0)
    tip = np.array([0.5 + np.sin(0.3), np.cos(0.3)])
    assert accent(frame) == pytest.approx(tip / np.array([5.2, 2.6]), abs=0.01)


def test_sliders_go_from_end_to_end_and_not_beyond():
    low, high = np.array([0.0, -np.inf]), np.array([2.0, np.inf])

    def place(value: float) -> float:
        frame = painters.sliders(np.array([value, 0.0]), None, low=low, high=high)
        return accent(frame[: frame.shape[0] // 2])[0]

    assert place(1.0) == pytest.approx(0, abs=0.01)
    assert place(-1.0) == place(0.0) < place(0.5) < place(2.0) == place(9.0)
