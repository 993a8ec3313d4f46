"""Settings that follow from the environment."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from empowerment.data import Episode, Trajectories
from empowerment.data.collection import Report
from empowerment.data.spaces import free_spaces
from empowerment.runs import Experiment
from empowerment.runs.derived import with_action_repeat
from empowerment.runs.experiment import to_json
from empowerment.runs.folder import open_run

_SLOW = Experiment(env="Slow-v0")


def swing(environment: Any, *, steps: int, seed: int, **options: Any):
    """A column that turns once in 1200 steps, a quarter of a change in 138."""
    assert (environment.id, environment.count) == ("Slow-v0", 1)
    path = np.sin(2 * np.pi * np.arange(steps + 1) / 1200)[:, None]
    episode = Episode(path, np.zeros((steps, 1)), terminated=False, truncated=True)
    data = Trajectories((episode,), free_spaces(["x"], ["u"]), {})
    return data, Report(num_episodes=1, num_transitions=steps, failed=(), restarts=0)


def never(environment: Any, **options: Any):
    pytest.fail("nothing was to be collected")


def test_where_observations_change_slowly_actions_are_repeated(tmp_path: Path):
    said: list[str] = []
    chosen = with_action_repeat(_SLOW, folder=tmp_path, seed=0, log=said.append, collect=swing)
    assert chosen.num_repeats == 16
    assert chosen.env == "Slow-v0"
    assert said == ["Observations change slowly: each action is repeated for 16 steps."]


def test_a_run_that_was_begun_keeps_what_was_chosen(tmp_path: Path):
    begun = Experiment(env="Slow-v0", action_repeat=7)
    with open_run(tmp_path, to_json(begun, 0), resume=False, log=print):
        pass
    chosen = with_action_repeat(_SLOW, folder=tmp_path, seed=0, log=print, collect=never)
    assert chosen == begun


@pytest.mark.parametrize(
    "experiment",
    [
        Experiment(world="pendulum"),
        Experiment(data="log.csv"),
        Experiment(env="Slow-v0", data="log.csv"),
        Experiment(env="Slow-v0", action_repeat=1),
    ],
    ids=lambda experiment: json.dumps([experiment.env, experiment.data]),
)
def test_known_worlds_logs_and_whoever_says_so_repeat_nothing(
    experiment: Experiment, tmp_path: Path
):
    chosen = with_action_repeat(experiment, folder=tmp_path, seed=0, log=print, collect=never)
    assert chosen.num_repeats == 1


def test_more_repeats_than_steps_are_refused():
    with pytest.raises(ValueError, match="fewer steps than are collected; got 501"):
        Experiment(env="Slow-v0", action_repeat=501, round_steps=1000).check()
