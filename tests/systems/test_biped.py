"""A robot with two legs, from data to figures."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.cli import main
from empowerment.data import Episode, Spaces, ZeroActor
from empowerment.environments import EnvFactory
from empowerment.runs import load_run
from empowerment.systems import biped
from empowerment.systems.biped import ENVIRONMENT, hull_height, posture, push


def an_episode(steps: int, *, angle: float = 0.0, terminated: bool = True) -> Episode:
    seen = np.zeros((steps + 1, 24))
    seen[:, 0] = angle
    return Episode(seen, np.zeros((steps, 4)), terminated=terminated, truncated=not terminated)


def test_a_robot_that_has_fallen_does_not_stand():
    environment = EnvFactory(ENVIRONMENT, 3)()
    tall, kneeling = np.full(10, 5.2), np.full(534, 4.7)
    found = posture([an_episode(10)], environment, [tall])
    assert found["standing_fraction"] == pytest.approx(10 / 534)  # of 1600 steps, three at a time
    assert found["steps_to_end_median"] == 30
    assert found["mean_height"] == pytest.approx(5.2)
    whole = an_episode(534, terminated=False)
    found = posture([whole], environment, [kneeling])
    assert found["standing_fraction"] == 0
    assert found["steps_to_end_median"] == 1600
    tilted = an_episode(534, angle=-0.5, terminated=False)
    found = posture([tilted, whole], environment, [kneeling + 0.5, kneeling + 0.5])
    assert found["standing_fraction"] == 0.5
    assert found["mean_abs_angle"] == pytest.approx(0.25)


def test_a_robot_that_leaves_the_terrain_has_not_fallen():
    environment = EnvFactory(ENVIRONMENT, 3)()
    fallen, gone, stays = an_episode(100), an_episode(100), an_episode(100, terminated=False)
    for each, metres in ((fallen, -4.0), (gone, -4.6), (stays, -5.0)):
        each.observations[:, 2] = metres / 300 * 6  # 300 steps of 0.02 s, in units of 8.3 m/s
    found = posture([fallen, gone, stays, gone], environment, [np.full(100, 5.0)] * 4)
    assert found["left_terrain_fraction"] == 0.5


def test_a_push_changes_the_speed_of_the_hull_by_its_strength():
    environment = EnvFactory(ENVIRONMENT, 3)()
    environment.reset(seed=0)
    hull = environment.unwrapped.hull  # pyright: ignore[reportAttributeAccessIssue]
    before = hull.linearVelocity.x
    push(environment, 2.0)
    assert hull.linearVelocity.x - before == pytest.approx(2.0 / hull.mass, rel=1e-4)
    assert 5 < hull_height(environment) < 6


def test_to_do_nothing_is_the_closest_that_is_allowed():
    low, high = np.array([-1.0, 0.5, -3.0]), np.array([1.0, 2.0, -1.0])
    spaces = Spaces(np.zeros(1), np.ones(1), low, high, ("x",), ("a", "b", "c"))
    np.testing.assert_array_equal(ZeroActor(spaces)(np.zeros(1, np.float32)), [0.0, 0.5, -1.0])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("biped") / "run"
    main(f"train biped --out {path} --budget smoke".split())
    return path


@pytest.mark.slow
def test_a_robot_is_evaluated_and_drawn(run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(biped, "STRENGTHS", np.array([0.0, 200.0]))
    monkeypatch.setattr(biped, "_NUM_PUSHED", 1)
    main(f"evaluate {run} --episodes 1".split())
    found = json.loads((run / "evaluation.json").read_text())
    for who in (found, found["sampled"], found["uniform"], found["zero"]):
        assert 0 <= who["standing_fraction"] <= 1
        assert 4 < who["mean_height"] < 6.5
        assert 0 < who["steps_to_end_median"] <= 1600
    assert found["zero"]["survived_fraction"] == 0
    main(["report", str(run)])
    for name in ("survival", "pushes", "fall", "snapshots"):
        assert (run / "figures" / f"{name}.png").stat().st_size > 5_000
    survived = np.loadtxt(run / "pushes.csv", delimiter=",", skiprows=1)[:, 1:]
    assert survived.shape == (2, 2)  # no push and a hard one, forwards and backwards
    np.testing.assert_array_equal(survived[1], 0)  # nobody could stand that
    over = np.loadtxt(run / "fall.csv", delimiter=",", skiprows=1)[:, -1]
    assert over[0] == 0
    assert over[-1] == 1


@pytest.mark.slow
def test_the_agent_of_an_earlier_round_can_be_read(run: Path):
    first, last = load_run(run, rounds=0), load_run(run, rounds=1)
    assert (first.number, last.number) == (0, 1)
    state = jnp.zeros(first.agent.world.states.size)
    assert not np.allclose(first.agent.policy(state).mean, last.agent.policy(state).mean)
    with pytest.raises(ValueError, match="a round from 0 to 1"):
        load_run(run, rounds=2)
