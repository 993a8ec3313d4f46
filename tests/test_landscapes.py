"""Landscapes by name: which states, which worlds, and what is said about them."""

import itertools
import json

import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.capacity import gaussian_empowerment
from empowerment.landscapes import compute_landscape, grid_states, make_world, state_names
from empowerment.worlds import WORLDS, Grid, Pendulum


@pytest.mark.parametrize(
    ("name", "grid", "axes"),
    [
        ("pendulum", "3x2", ([-np.pi, 0.0, np.pi], [-8.0, 8.0])),
        ("pendulum", "2X5", ([-np.pi, np.pi], [-8.0, -4.0, 0.0, 4.0, 8.0])),
        ("ball", "1x3", ([5.0], [0.0, 5.0, 10.0])),
        ("cart", "1x1", ([0.0], [0.0])),
    ],
)
def test_grid_covers_the_region(name: str, grid: str, axes: tuple[list[float], list[float]]):
    found = grid_states(make_world(name), grid)
    np.testing.assert_allclose(found, list(itertools.product(*axes)), rtol=1e-6)


def test_grid_need_not_be_given():
    assert grid_states(make_world("pendulum")).shape == (41 * 61, 2)
    world = make_world("maze")
    assert isinstance(world, Grid)
    np.testing.assert_array_equal(grid_states(world), world.cells)


@pytest.mark.parametrize(
    "grid", ["", "3", "4y5", "0x3", "3x", "x", "3x4x5", "-3x4", "2.5x2", "1001x1000", "²x2"]
)
def test_bad_grid_is_refused(grid: str):
    sentence = f"2 whole numbers of at least 1 joined by x, .*1000000 states; got '{grid}'"
    with pytest.raises(ValueError, match=sentence):
        grid_states(make_world("pendulum"), grid)


def test_grid_of_a_discrete_world_is_refused():
    with pytest.raises(ValueError, match=r"no grid for a discrete world: .*; got '3x3'"):
        grid_states(make_world("maze"), "3x3")


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_has_names_for_its_states(name: str):
    world = make_world(name)
    assert len(state_names(world)) == grid_states(world).shape[1]


def test_world_is_made_with_its_resolution():
    world = make_world("pendulum", resolution=0.2)
    assert isinstance(world, Pendulum)
    assert float(world.resolution) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "resolution", "sentence"),
    [
        ("pendulums", None, "WORLD to be one of pendulum, .*; got 'pendulums'"),
        ("pendulum", 0.0, "resolution to be a number above zero; got 0.0. Without noise"),
        ("pendulum", -1.0, "above zero; got -1.0"),
        ("pendulum", float("nan"), "above zero; got nan"),
        ("pendulum", float("inf"), "above zero; got inf"),
        ("maze", 0.1, "no resolution for maze: .*; got 0.1"),
    ],
)
def test_bad_worlds_are_refused(name: str, resolution: float | None, sentence: str):
    with pytest.raises(ValueError, match=f"^Expected .*{sentence}"):
        make_world(name, resolution=resolution)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"estimator": "exactly"}, "one of exact, gaussian, variational; got 'exactly'"),
        ({"steps": 0}, "steps to be at least 1; got 0"),
        ({"seed": -1}, "seed to be from 0 to 4294967295; got -1"),
        ({"seed": 2**64}, "seed to be from 0 to 4294967295; got 18446744073709551616"),
    ],
)
def test_bad_settings_are_refused(changes: dict, sentence: str):
    settings = {"estimator": "gaussian", "steps": 1} | changes
    with pytest.raises(ValueError, match=f"^Expected .*{sentence}"):
        compute_landscape("pendulum", make_world("pendulum"), np.zeros((1, 2)), **settings)


def test_gaussian_landscape_is_that_of_each_state(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("empowerment.landscapes.estimators._GAUSSIAN_BATCH", 4)
    world, done = make_world("pendulum", resolution=0.1), []
    states = np.random.default_rng(0).normal(size=(10, 2))
    found = compute_landscape(
        "pendulum",
        world,
        states,
        estimator="gaussian",
        steps=3,
        progress=lambda *counts: done.append(counts),
    )
    assert not isinstance(world, Grid)
    for state, value in zip(states[::3], found.empowerment[::3], strict=True):
        expected = gaussian_empowerment(world, jnp.asarray(state, float), steps=3)
        assert value == pytest.approx(float(expected), rel=1e-5)
    assert done == [("computing", count, 10) for count in (4, 8, 10)]
    assert found.lower is found.upper is None


def test_landscape_says_how_it_was_made():
    world = make_world("pendulum", resolution=0.1)
    states = np.zeros((1, 2))
    about = compute_landscape("pendulum", world, states, estimator="gaussian", steps=2).about
    assert json.loads(json.dumps(about)) == about
    assert about["world"] == "pendulum"
    assert about["estimator"] == "gaussian"
    assert about["constraint"].startswith("power")
    assert about["steps"] == 2
    assert about["unit"] == "nats"
    assert about["limits"] == [[-2.0], [2.0]]
    np.testing.assert_allclose(about["noise"]["perception"], [0.1, 0.1])
    assert about["noise"]["process"] == [0.0, 0.0]
    maze = make_world("maze")
    about = compute_landscape("maze", maze, states, estimator="exact", steps=1).about
    assert about["constraint"].startswith("none")


def test_cells_must_be_cells():
    states = np.array([[0.0, 0.0], [0.5, 3.0]])
    with pytest.raises(ValueError, match=r"to be the x,y of a cell; got 0.5,3\."):
        compute_landscape("maze", make_world("maze"), states, estimator="exact", steps=1)
    with pytest.raises(
        ValueError, match="to be exact or variational for a discrete world; got 'gaussian'"
    ):
        compute_landscape("maze", make_world("maze"), states, estimator="gaussian", steps=1)
