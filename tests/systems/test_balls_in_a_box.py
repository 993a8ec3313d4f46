"""Balls in a box, from data to figures."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from empowerment.cli import main
from empowerment.data import Episode
from empowerment.environments import BALLS, joint
from empowerment.runs import load_agent
from empowerment.systems.balls import contacts
from empowerment.systems.room import Arrows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rooms") / "run"
    main(f"train balls --out {path} --budget smoke".split())
    main(f"evaluate {path} --episodes 2".split())
    return path


@pytest.mark.slow
def test_each_ball_acts_by_itself_through_its_own_filter(run: Path):
    actor = load_agent(run).actor()
    environment = gymnasium.make(BALLS)
    first, _ = environment.reset(seed=0)
    second = environment.step(environment.action_space.sample())[0]
    swap = np.r_[44:88, 0:44, 88:176]  # the first two balls change places
    actor.reset(seed=0)
    straight = [actor(first), actor(second)]
    actor.reset(seed=0)
    crossed = [actor(first[swap]), actor(second[swap])]
    for one, other in zip(straight, crossed, strict=True):
        assert one.shape == (8,)
        np.testing.assert_allclose(one[[2, 3, 0, 1, 4, 5, 6, 7]], other, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_evaluation_and_report_have_the_figures_of_balls(run: Path):
    found = json.loads((run / "evaluation.json").read_text())
    names = "wall_touch_fraction", "mean_wall_distance", "contacts_per_step", "mean_pair_distance"
    for who in (found, found["sampled"], found["uniform"]):
        for name in (*names, "close_fraction"):
            assert who[name] >= 0
    assert found["uniform"]["wall_touch_fraction"] > 0
    assert 0 <= found["inward_fraction"] <= 1
    main(["report", str(run)])
    for name in ("positions", "arrows", "distances", "snapshots", "training"):
        assert (run / "figures" / f"{name}.png").stat().st_size > 5_000
    shares = np.loadtxt(run / "positions.csv", delimiter=",", skiprows=1)[:, 2:]
    np.testing.assert_allclose(shares.sum(0) * 0.25, 1, rtol=1e-4)  # squares of half a metre


def test_distances_are_those_that_the_environment_tells():
    environment = gymnasium.make(BALLS)
    environment.action_space.seed(0)
    seen, told = [environment.reset(seed=3)[0]], []
    for _ in range(60):
        observation, *_, info = environment.step(environment.action_space.sample())
        seen.append(observation)
        told.append(info)
    episode = Episode(np.stack(seen), np.zeros((60, 8)), terminated=False, truncated=True)
    late = episode.part(1, 60)
    found = contacts([late], environment, ())
    assert found["mean_wall_distance"] == pytest.approx(
        np.mean([info["wall_distances"] for info in told]), rel=1e-5
    )
    assert found["mean_pair_distance"] == pytest.approx(
        np.mean([info["pair_distances"] for info in told]), rel=1e-5
    )


def test_balls_that_touch_are_counted():
    environment = gymnasium.make(BALLS)
    apart = np.array([[0.66, 5, 0, 0], [3, 5, 0, 0], [4.3, 5, 0, 0], [8, 8, 0, 0]])
    rows = np.concatenate([apart, np.ones((4, 40))], axis=1)
    episode = Episode(np.stack([joint(rows)] * 2), np.zeros((1, 8)), False, True)  # noqa: FBT003
    found = contacts([episode], environment, ())
    assert found["wall_touch_fraction"] == 0.25
    assert found["contacts_per_step"] == 1
    assert found["close_fraction"] == pytest.approx(1 / 6)


@pytest.mark.parametrize(("sign", "share"), [(1, 1.0), (-1, 0.0)])
def test_pushes_toward_the_middle_are_inward(sign: int, share: float):
    ticks = (np.arange(12) + 0.5) / 12 * 10
    places = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    assert Arrows(places, sign * (5 - places), 10.0).inward == share


@pytest.mark.slow
def test_one_ball_is_drawn_beside_the_truth(tmp_path: Path):
    main(f"train ball --out {tmp_path / 'run'} --budget smoke".split())
    main(["report", str(tmp_path / "run"), "--grid", "3x3"])
    for name in ("positions", "arrows", "landscape", "landscapes"):
        assert (tmp_path / "run" / "figures" / f"{name}.png").stat().st_size > 5_000
