"""Discrete actions through the command line: train, evaluate, collect, control, export.

And the reward of an environment as a task: that of a pole, one for each step.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from empowerment.cli import main
from empowerment.controller import Controller
from empowerment.data import Trajectories
from empowerment.runs import hashes, load_agent, read_manifest
from empowerment.runs.folder import Run

TRAIN = "train --env CartPole-v1 --budget smoke --steps 1 --rounds 0"

Weigh = Callable[[Path, str], None]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, short_fit: None) -> Path:
    path = tmp_path_factory.mktemp("discrete") / "run"
    main(f"{TRAIN} --out {path}".split())
    return path


@pytest.fixture(scope="module")
def weigh(run: Path) -> Weigh:
    """Train the policy of a run anew, with the reward of the environment at a weight."""

    def train(path: Path, weight: str) -> None:
        if not path.exists():
            shutil.copytree(run, path)
            settings = {**read_manifest(run)["settings"], "task_weight": float(weight)}
            Run(path, settings, {}, print).write_manifest(finished=False)
        for file in path.glob("policy*"):
            file.unlink()
        main(f"{TRAIN} --out {path} --task-weight {weight} --resume".split())

    return train


def test_the_reward_of_an_environment_is_a_task(
    run: Path, weigh: Weigh, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    paid = tmp_path / "paid"
    weigh(paid, "2")
    said = capsys.readouterr().err
    assert "where rewards vary by 0; a typical one, 1, counts as a nat at weight 1." in said
    assert read_manifest(paid)["finished"]
    before = hashes(paid)
    assert before["policy.safetensors"] != hashes(run)["policy.safetensors"]
    task = load_agent(paid).task
    assert task is not None
    assert (task.weight, task.goes_on) == (2.0, False)
    (paid / "reward.json").unlink()  # As if the run had been killed in between.
    weigh(paid, "2")
    for name in ("reward.safetensors", "policy.safetensors"):
        assert hashes(paid)[name] == before[name]
    capsys.readouterr()
    main(["evaluate", str(paid), "--episodes", "3"])
    said = capsys.readouterr().err
    assert "The environment pays" in said
    assert "The reward that it learnt was off by" in said
    found = json.loads((paid / "evaluation.json").read_text())
    for figures in (found, found["uniform"]):
        assert figures["return_mean"] == figures["episode_length_mean"]  # One for each step.
    assert found["reward_error"] < 0.5  # Of a model that hardly knows when a pole has fallen.
    assert (found["reward_unit"], found["reward_spread"]) == (1, 0)


def test_without_weight_a_reward_changes_nothing(run: Path, weigh: Weigh, tmp_path: Path):
    nothing = tmp_path / "nothing"
    weigh(nothing, "0")
    own, other = hashes(run), hashes(nothing)
    assert own["policy.safetensors"] == other["policy.safetensors"]
    assert "reward.safetensors" not in other
    assert load_agent(nothing).task is None


def test_data_without_rewards_have_no_task(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    data = Trajectories.load(run / "data.npz")
    assert set(data.rewards.tolist()) == {1.0}
    bare = tuple(replace(each, rewards=None) for each in data.episodes)
    replace(data, episodes=bare).save(tmp_path / "bare.npz")
    with pytest.raises(SystemExit) as stop:
        main(f"train --data {tmp_path}/bare.npz --task-weight 1 --out {tmp_path}/run".split())
    assert stop.value.code == 2
    assert capsys.readouterr().err.strip().startswith("empower: Expected data with rewards")
    assert not (tmp_path / "run").exists()


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
