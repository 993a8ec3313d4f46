"""The grid: what is swept over, and one sentence for every mistake."""

import dataclasses

import pytest

from empowerment.runs import PRESETS, Experiment
from empowerment.runs.experiment import from_json
from empowerment.sweep.grid import Grid, parse_seeds, parse_settings, points

GRID = Grid(
    "pendulum", (), parse_settings(("horizon=8,16", "model.updates=50")), (0, 3), "full", 5, 1
)


def test_every_point_is_an_experiment_of_its_own():
    found = points(GRID)
    assert [point.name for point in found] == [
        "pendulum/horizon=8/seed-0",
        "pendulum/horizon=8/seed-3",
        "pendulum/horizon=16/seed-0",
        "pendulum/horizon=16/seed-3",
    ]
    base = PRESETS["pendulum"].experiment
    wanted = dataclasses.replace(
        base,
        agent=dataclasses.replace(base.agent, horizon=16),
        model=dataclasses.replace(base.model, updates=50),
    )
    assert found[3].experiment == wanted
    assert from_json(found[3].settings) == (wanted, 3)


def test_environments_are_learnt_and_their_names_can_be_folders():
    envs = ("Pendulum-v1", "empowerment/Ball-v0", "mine:Own-v0")
    found = points(dataclasses.replace(GRID, preset=None, envs=envs, settings={}))
    assert [point.name for point in found[::2]] == [
        "Pendulum-v1/seed-0",
        "empowerment-Ball-v0/seed-0",
        "mine-Own-v0/seed-0",
    ]
    assert found[-1].experiment == Experiment(env="mine:Own-v0")


def test_settings_go_before_the_budget():
    found = points(dataclasses.replace(GRID, budget="smoke"))
    assert [point.experiment.agent.horizon for point in found] == [8, 8, 16, 16]
    assert found[0].experiment.agent.width == 32


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-3", (0, 1, 2, 3)), ("5", (5,)), ("7,0-1, 4", (7, 0, 1, 4))]
)
def test_seeds(text: str, seeds: tuple[int, ...]):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "-1", "3-1", "1,,2", "0-2,1", "1.5", "0-999999999"])
def test_seeds_that_are_none(text: str):
    with pytest.raises(ValueError, match=r"Expected .* got "):
        parse_seeds(text)


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("rounds=auto,0,2", ("auto", 0, 2)),
        ("--learning-rate=1e-3,0.01", (1e-3, 0.01)),
        ("critic=true,false", (True, False)),
        ("resolution=none,0.5", (None, 0.5)),
        ("perceive=latent", ("latent",)),
        ("family=codebook", ("codebook",)),
    ],
)
def test_values_have_the_type_of_their_setting(word: str, values: tuple):
    ((found, kinds),) = [(each, list(map(type, each))) for each in parse_settings((word,)).values()]
    assert (found, kinds) == (values, list(map(type, values)))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("horison=8",), "Did you mean horizon"),
        (("quux=8",), "See empower train --help"),
        (("seed=8",), "Expected --set to name a setting"),
        (("env=a",), "Expected --set to name a setting"),
        (("horizon",), "to be NAME=VALUE"),
        (("horizon=",), "to be NAME=VALUE"),
        (("horizon=8.5",), "Expected values of horizon to be int; got '8.5'"),
        (("perceive=all",), "Expected values of perceive"),
        (("horizon=8,8",), "every value of horizon once"),
        (("horizon=8", "horizon=9"), "got it twice"),
    ],
)
def test_settings_that_are_none(words: tuple[str, ...], match: str):
    with pytest.raises(ValueError, match=match):
        parse_settings(words)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"settings": {"horizon": (0,)}}, "horizon to be at least 1"),
        ({"preset": None, "envs": ("a/b", "a-b")}, "own folder; got a-b/horizon=8/seed-0 twice"),
        ({"seeds": tuple(range(60_000))}, "1 to 100000 runs; got 120000"),
    ],
)
def test_grids_that_cannot_be(change: dict, match: str):
    with pytest.raises(ValueError, match=match):
        points(dataclasses.replace(GRID, **change))
