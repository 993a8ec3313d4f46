"""The controller that a run writes says what it is for, and how fast it is to run."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from empowerment.agent import TrainedAgent
from empowerment.channel import make_channel
from empowerment.controller import read_bundle
from empowerment.data import Episode, Spaces, Trajectories
from empowerment.policy import Policy
from empowerment.runs import Experiment
from empowerment.runs.pipeline import _write_controller
from empowerment.worlds import WORLDS, AbstractWorld, Bounded


@pytest.mark.parametrize(
    ("settings", "environment", "interval"),
    [
        ({"world": "pendulum"}, "empowerment/Pendulum-v0", 0.05),
        ({"world": "ball"}, "empowerment/Ball-v0", None),
        ({"env": "Pendulum-v1", "action_repeat": 2}, "Pendulum-v1", 0.1),
        ({"env": "BipedalWalker-v3"}, "BipedalWalker-v3", None),  # It does not state its own.
        ({"env": "empowerment/Balls-v0", "action_repeat": 2, "agents": 4}, None, 0.1),
        ({"data": "log.npz"}, None, 0.02),
    ],
)
def test_a_controller_has_the_interval_of_its_environment(
    settings: dict[str, Any], environment: str | None, interval: float | None, tmp_path: Path
):
    known = WORLDS[settings.get("world", "pendulum")]()
    assert isinstance(known, AbstractWorld)
    world = Bounded(known)
    policy = Policy(world.states, world.actions.size, width=4, depth=1, key=jax.random.key(0))
    channel = make_channel(world, family="paper", steps=1, width=4, depth=1, key=jax.random.key(1))
    agent = TrainedAgent(world, channel, None, policy)
    episode = Episode(np.zeros((2, 2)), np.zeros((1, 1)), terminated=False, truncated=True)
    spaces = Spaces(-np.ones(2), np.ones(2), -np.ones(1), np.ones(1), ("a", "b"), ("u",))
    Trajectories((episode,), spaces, {"interval": 0.02}).save(tmp_path / "data.npz")
    chosen = Experiment(**{"action_repeat": 1, **settings})  # By then, auto has become a number.
    _write_controller(chosen, agent, tmp_path, number=0, seed=0)
    about = read_bundle(tmp_path).description
    assert about.environment == environment
    assert about.interval == (None if interval is None else pytest.approx(interval))
    assert about.action_repeat == settings.get("action_repeat", 1)
