"""What is read from an environment: its control interval; and that this needs no JAX."""

import subprocess
import sys

import gymnasium
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from empowerment.data import collect, interval_of, make_environment
from empowerment.environments import (
    BALLS,
    PENDULUM_DIRECTION,
    ActionRepeat,
    EnvFactory,
    action_repeat_of,
)


@pytest.mark.parametrize(
    ("maker", "expected"),
    [
        ("Pendulum-v1", 0.05),
        (EnvFactory("Pendulum-v1", 2), 0.1),
        (lambda: TimeLimit(EnvFactory("Pendulum-v1", 3)(), 9), 0.15),
        ("empowerment/Pendulum-v0", 0.05),
        (EnvFactory("empowerment/Pendulum-v0", 2), 0.1),
        (PENDULUM_DIRECTION, 0.05),
        (BALLS, 0.05),
        ("empowerment/Ball-v0", None),
        ("MountainCarContinuous-v0", None),  # its render_fps is not a control rate
    ],
)
def test_the_interval_is_that_between_actions(maker, expected: float | None):
    environment = make_environment(maker)
    assert interval_of(environment) == (None if expected is None else pytest.approx(expected))
    environment.close()


def test_the_interval_is_kept_with_the_data():
    data, _ = collect(EnvFactory("Pendulum-v1", 2), steps=3, seed=0)
    assert data.about["interval"] == 0.1


def test_action_repeat_is_found_in_any_wrapper():
    plain = gymnasium.make("Pendulum-v1")
    assert action_repeat_of(plain) == 1
    wrapped = RecordEpisodeStatistics(TimeLimit(ActionRepeat(plain, 4), 10))
    assert action_repeat_of(wrapped) == 4
    assert action_repeat_of(ActionRepeat(wrapped, 2)) == 8


WITHOUT_JAX = """
import sys
import empowerment.data, empowerment.environments

assert not {"jax", "equinox", "Box2D"} & set(sys.modules)
sys.modules["jax"] = sys.modules["equinox"] = sys.modules["Box2D"] = None  # as if not installed
from empowerment.data import interval_of, make_environment
from empowerment.environments import ActionRepeat

env = ActionRepeat(make_environment("Pendulum-v1"), 2)
env.reset(seed=0)
env.step(env.action_space.sample())
assert interval_of(env) == 0.1
for env_id, extra in (("empowerment/Ball-v0", "train"), ("empowerment/Balls-v0", "box2d")):
    try:
        make_environment(env_id)
    except ValueError as error:
        assert f"pip install 'empowerment[{extra}]'" in str(error), error
    else:
        raise AssertionError(env_id)
"""


def test_environments_of_others_need_no_jax():
    subprocess.run([sys.executable, "-c", WITHOUT_JAX], check=True)
