"""Rods on hinges: the height of their tips, from episodes to sentences."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from empowerment.cli import main
from empowerment.data import Episode
from empowerment.environments import ENVIRONMENTS, EnvFactory
from empowerment.systems import system_of

NAMES = "cart-pole", "double-pendulum", "triple-pendulum"
SIZES = {"cart-pole": 4, "double-pendulum": 4, "triple-pendulum": 6}
ANGLE = {"cart-pole": 1, "double-pendulum": 0, "triple-pendulum": 0}


def episode_of(name: str, angles: np.ndarray) -> Episode:
    """Build an episode in which the first rod turns and the others stay in line with it."""
    observations = np.zeros((len(angles), SIZES[name]))
    observations[:, ANGLE[name]] = angles
    actions = np.zeros((len(angles) - 1, 1))
    return Episode(observations, actions, terminated=False, truncated=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_height_is_that_of_the_last_tenth(name: str):
    identifier = ENVIRONMENTS[name]
    rises = np.full(101, math.pi)
    rises[-10:] = 0.0
    falls = np.zeros(101)
    falls[-10:] = math.pi
    level = np.full(101, math.pi / 2)
    episodes = [episode_of(name, angles) for angles in (rises, falls, level, rises)]
    found = system_of(identifier).metrics(episodes, EnvFactory(identifier)(), ())
    assert found["height_mean"] == pytest.approx((1 + 0 + 0.5 + 1) / 4, abs=1e-6)
    assert found["height_lowest"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_random_actions_do_not_swing_up(name: str):
    environment = EnvFactory(ENVIRONMENTS[name])()
    environment.action_space.seed(0)
    seen = [environment.reset(seed=0)[0]]
    for _ in range(100):
        seen.append(environment.step(environment.action_space.sample())[0])
    episode = Episode(np.stack(seen), np.zeros((100, 1)), terminated=False, truncated=True)
    found = system_of(ENVIRONMENTS[name]).metrics([episode], environment, ())
    assert 0 <= found["height_mean"] < 0.9


@pytest.mark.slow
def test_the_preset_runs_from_training_to_report(tmp_path: Path, capsys):
    run = tmp_path / "run"
    main(f"train double-pendulum --out {run} --budget smoke".split())
    main(f"evaluate {run} --episodes 2".split())
    assert "of its height on average" in capsys.readouterr().out
    assert 0 <= json.loads((run / "evaluation.json").read_text())["height_mean"] <= 1
    main(["report", str(run)])
    assert (run / "report.html").exists()
