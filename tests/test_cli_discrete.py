"""Discrete actions through the command line: train, evaluate, collect, control, export."""

import json
from pathlib import Path

import numpy as np
import pytest

from empowerment.cli import main
from empowerment.controller import Controller
from empowerment.data import Trajectories
from empowerment.runs import load_agent


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, short_fit: None) -> Path:
    path = tmp_path_factory.mktemp("discrete") / "run"
    main(f"train --env CartPole-v1 --out {path} --budget smoke --steps 1 --rounds 0".split())
    return path


def test_a_run_is_loaded_and_evaluated(run: Path, capsys: pytest.CaptureFixture[str]):
    agent = load_agent(run)
    assert agent.world.actions.choices == (2,)
    assert agent.policy.choices == (2,)
    main(["evaluate", str(run), "--episodes", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["episode_length_mean"] > 5
    assert found["empowerment_mean"] < np.log(2) + 0.1


def test_policy_and_controller_choose_the_same(run: Path):
    actor, controller = load_agent(run).actor(), Controller.load(run, engine="numpy")
    assert controller.description.choices == (2,)
    assert controller.description.action_names == ("action_0",)
    actor.reset(seed=0)
    random, taken = np.random.default_rng(0), []
    for _ in range(40):
        observation = random.normal(size=4).astype(np.float32)
        taken.append(float(actor(observation)[0]))
        np.testing.assert_array_equal(controller.step(observation), taken[-1:])
    assert set(taken) <= {0.0, 1.0}


def test_the_policy_collects_and_is_exported(run: Path, tmp_path: Path):
    main(f"collect CartPole-v1 --policy {run} --steps 30 --out {tmp_path}/own.npz".split())
    data = Trajectories.load(tmp_path / "own.npz")
    assert data.spaces.action_choices == (2,)
    for format, name in (("c", "pole.h"), ("npz", "pole.npz"), ("onnx", "pole.onnx")):
        main(f"export {run} --format {format} --out {tmp_path / name}".split())
        assert (tmp_path / name).stat().st_size > 1000


def test_the_controller_acts_in_the_environment(run: Path, capsys: pytest.CaptureFixture[str]):
    # Slowly, so that a busy machine is in time.
    main(f"control {run} --duration 2 --rate 5 --json".split())
    found = json.loads(capsys.readouterr().out)
    assert (found["faults"], found["cycles"]) == (0, 10)
