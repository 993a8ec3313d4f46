"""What the report draws, where it is easily drawn wrong."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from empowerment.report.figures import colour_limits
from empowerment.report.landscape import Landscape
from empowerment.report.run_figures import _turns, draw_rounds, draw_training


def landscape(names: tuple[str, str], empowerment: np.ndarray) -> Landscape:
    return Landscape(
        names, np.zeros((len(empowerment), 2)), empowerment, None, None, {"angles": ["angle"]}
    )


def test_an_angle_that_leaves_on_one_side_comes_in_on_the_other():
    """Every step of the path is a line of ordinary length in each of its drawings."""
    angle = np.array([2.8, 3.1, -2.9, -2.5, -2.9, 3.1])
    turns = _turns(landscape(("angle", "velocity"), np.ones(4)), angle)
    assert len(turns) == 2
    for turn in turns:
        assert np.all(np.abs(np.diff(turn)) < 0.5)
        np.testing.assert_allclose(np.cos(turn), np.cos(angle))
    inside = np.abs(np.stack(turns)) <= np.pi
    assert np.array_equal(inside.sum(axis=0), np.ones(len(angle)))


def test_what_is_no_angle_is_drawn_once():
    path = np.array([0.0, 9.0])
    assert _turns(landscape(("x", "y"), np.ones(4)), path) == [path]


def test_a_flat_landscape_is_of_the_middle_colour():
    low, high = colour_limits(landscape(("x", "y"), np.full(9, 1.3) + 1e-3 * np.arange(9)))
    assert low < 1.3 < high
    low, high = colour_limits(landscape(("x", "y"), np.linspace(0.0, 1.0, 11)))
    assert (low, high) == (0.2, 1.0)


def test_training_of_an_earlier_version_is_drawn():
    figure = draw_training(Path(__file__).parents[1] / "runs" / "version1" / "learnt")
    assert figure is not None
    model = figure.axes[0]
    assert model.get_title() == "Model: validation data"
    assert np.asarray(model.lines[0].get_ydata()).tolist() == [-7.566105365753174]
    plt.close(figure)


def test_rounds_are_drawn_with_the_one_that_is_kept(tmp_path: Path):
    real = [{"empowerment": e, "length": n} for e, n in ((1.0, 40.0), (2.5, 90.0))]
    rounds = [{"imagined": {"empowerment": 2.6, "length": 100.0}, "real": real[:1]}]
    rounds += [{"imagined": {"empowerment": 2.7, "length": 95.0}, "real": real}]
    (tmp_path / "rounds.json").write_text(json.dumps({"kept": 1, "rounds": rounds}))
    figure = draw_rounds(tmp_path)
    assert figure is not None
    empowerment, length = figure.axes
    imagined, happened = (np.asarray(line.get_ydata()) for line in empowerment.lines[:2])
    assert (imagined.tolist(), happened.tolist()) == ([2.6, 2.7], [1.0, 2.5])
    assert np.asarray(length.lines[1].get_ydata()).tolist() == [40.0, 90.0]
    assert np.asarray(length.lines[2].get_xdata()).tolist() == [1, 1]
    plt.close(figure)
