"""Run folders: what survives interruption, damage and mistakes."""

import dataclasses
import errno
import json
import math
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment import files
from empowerment.agent import AgentSettings
from empowerment.controller import read_bundle
from empowerment.controller.bound import BoundTracker
from empowerment.controller.reward import EmpowermentReward
from empowerment.runs import PRESETS, Experiment, load_agent, load_run, train_run
from empowerment.runs.experiment import from_json, to_json
from empowerment.runs.folder import hashes, open_run, read_manifest

TINY = Experiment(
    world="pendulum",
    agent=AgentSettings(
        steps=1,
        channel_updates=300,
        bound_states=64,
        policy_updates=600,
        horizon=2,
        num_starts=2,
        width=8,
        depth=1,
    ),
)


class StopHereError(Exception):
    """Stands for a kill: nothing is saved on the way out."""


def stop_at(count: int, error: BaseException):
    """Progress that raises when it is called for the so many-th time."""
    calls = 0

    def progress(doing: str, done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == count:
            raise error

    return progress


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A run that was never interrupted, and the lines of its metrics at each report."""
    folder, counts = tmp_path_factory.mktemp("runs") / "whole", []

    def progress(doing: str, done: int, total: int) -> None:
        if done:
            counts.append(len((folder / "metrics.jsonl").read_text().splitlines()))

    train_run(TINY, folder=folder, seed=3, progress=progress)
    return folder, counts


@pytest.fixture(scope="module")
def whole(watched: tuple[Path, list[int]]) -> Path:
    """The folder of that run."""
    return watched[0]


def test_a_run_holds_what_it_should(whole: Path):
    manifest = read_manifest(whole)
    assert manifest["finished"]
    assert manifest["settings"]["seed"] == 3
    noise = manifest.get("noise")
    assert noise is not None
    assert noise["perception"] == pytest.approx([0.05, 0.05])
    assert manifest["files"] == hashes(whole)
    assert {"channel.safetensors", "surrogate.safetensors", "policy.safetensors"} <= set(
        manifest["files"]
    )
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines if line["stage"] == "policy"] == [
        100,
        200,
        300,
        400,
        500,
        600,
    ]
    # What was to be chosen is stored as it was chosen.
    assert load_run(whole).experiment == dataclasses.replace(TINY, action_repeat=1)


def test_its_controller_knows_the_bound(whole: Path):
    fitted = load_agent(whole).surrogate
    assert fitted is not None
    states = np.random.default_rng(0).uniform([-3.0, -8.0], [3.0, 8.0], (20, 2))
    found = BoundTracker(read_bundle(whole), 20).begin(states)
    np.testing.assert_allclose(found, jax.vmap(fitted)(jnp.asarray(states, float)), atol=1e-5)


def test_metrics_are_streamed(watched: tuple[Path, list[int]]):
    counts = watched[1]
    assert counts == [2, 3, 4, 5, 6, 7, 8, 9, 10]  # The first line is of the untrained channel.


@pytest.mark.parametrize(
    "count",
    [1, 4, *(pytest.param(count, marks=pytest.mark.slow) for count in (3, 6, 9))],
)
def test_killed_and_resumed_it_ends_with_the_same_bits(whole: Path, tmp_path: Path, count: int):
    folder = tmp_path / "run"
    with pytest.raises(StopHereError):
        train_run(TINY, folder=folder, seed=3, progress=stop_at(count, StopHereError()))
    assert not read_manifest(folder)["finished"]
    with pytest.raises(ValueError, match="it was interrupted"):
        load_agent(folder)
    with pytest.raises(ValueError, match="A finished training run writes one"):
        EmpowermentReward(gymnasium.make("empowerment/Pendulum-v0"), folder)
    train_run(TINY, folder=folder, seed=3, resume=True)
    assert hashes(folder) == hashes(whole)


def test_interrupted_by_the_user_it_goes_on_from_where_it_was(whole: Path, tmp_path: Path):
    folder, seen = tmp_path / "run", []
    with pytest.raises(KeyboardInterrupt):
        train_run(TINY, folder=folder, seed=3, progress=stop_at(8, KeyboardInterrupt()))
    train_run(TINY, folder=folder, seed=3, resume=True, progress=lambda *words: seen.append(words))
    updates = [done for doing, done, _ in seen if doing.startswith("policy,")]
    assert updates == [300, 400, 500, 600]
    assert hashes(folder) == hashes(whole)


@pytest.mark.parametrize("harm", ["flip", "cut", "empty"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path, harm: str):
    folder, said = tmp_path / "run", []
    like = {"a": np.zeros(3, np.float32)}
    with open_run(folder, {}, resume=False, log=said.append) as run:
        for count in (1, 2, 3):
            run.save_checkpoint("stage", count, {"a": like["a"] + count}, {"count": count})
        assert len(list((folder / "checkpoints").glob("*.safetensors"))) == 2
        path = folder / "checkpoints" / "stage-0000003.safetensors"
        data = path.read_bytes()
        flipped = data[:-1] + bytes([data[-1] ^ 1])
        path.write_bytes({"flip": flipped, "cut": data[:-4], "empty": b""}[harm])
        found = run.load_checkpoint("stage", like)
    assert found is not None
    assert found[1] == {"count": 2}
    assert "Trying the one before" in said[0]


def test_a_checkpoint_that_was_never_finished_does_not_count(tmp_path: Path):
    like = {"a": np.zeros(3, np.float32)}
    with open_run(tmp_path / "run", {}, resume=False, log=print) as run:
        run.save_checkpoint("stage", 1, like, {"count": 1})
        run.save_checkpoint("stage", 2, like, {"count": 2})
        (tmp_path / "run" / "checkpoints" / "stage-0000002.json").unlink()
        found = run.load_checkpoint("stage", like)
    assert found is not None
    assert found[1] == {"count": 1}


def test_a_full_disk_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
):
    folder = tmp_path / "run"

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill(doing: str, done: int, total: int) -> None:
        if doing.startswith("policy") and done == 500:
            monkeypatch.setattr(files.os, "fsync", full)

    with pytest.raises(OSError, match="No space left"):
        train_run(TINY, folder=folder, seed=3, progress=fill)
    monkeypatch.undo()
    assert not [path for path in folder.rglob(".*.*") if path.is_file() and path.name != ".lock"]
    train_run(TINY, folder=folder, seed=3, resume=True)
    assert hashes(folder) == hashes(whole)


def test_two_runs_in_one_folder_are_refused(tmp_path: Path):
    with (
        open_run(tmp_path, {}, resume=False, log=print),
        pytest.raises(ValueError, match="another process is writing"),
        open_run(tmp_path, {}, resume=True, log=print),
    ):
        pass


def test_a_run_is_not_overwritten_and_not_changed(whole: Path):
    with pytest.raises(ValueError, match="there is a run in it"):
        train_run(TINY, folder=whole, seed=3)
    changed = TINY.with_agent(horizon=3)
    with pytest.raises(ValueError, match="horizon was 2 and is 3"):
        train_run(changed, folder=whole, seed=3, resume=True)
    with pytest.raises(ValueError, match="seed was 3 and is 4"):
        train_run(TINY, folder=whole, seed=4, resume=True)


def test_damaged_weights_are_not_loaded(whole: Path, tmp_path: Path):
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    path = folder / "policy.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="SHA-256 differs"):
        load_agent(folder)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"steps": 0}, "steps to be at least 1"),
        ({"policy_updates": 150}, "multiple of 100"),
        ({"first_beta": -1.0}, "first_beta to be positive"),
        ({"learning_rate": float("nan")}, "learning_rate to be positive"),
        ({"discount": 1.0}, "discount"),
        ({"joint": True}, "family whose planning is learnt"),
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        dataclasses.replace(AgentSettings(), **change).check()


def test_presets_can_be(tmp_path: Path):
    for preset in PRESETS.values():
        preset.experiment.check()
        preset.experiment.with_budget("smoke").check()
    with pytest.raises(ValueError, match="one of smoke, full"):
        TINY.with_budget("huge")
    with pytest.raises(ValueError, match="continuous states"):
        train_run(dataclasses.replace(TINY, world="maze"), folder=tmp_path)


def command_of(experiment: Experiment, folder: Path) -> list[str]:
    """The words that train a tiny agent in a process of its own."""
    names = ("steps", "channel_updates", "bound_states", "policy_updates", "horizon")
    flags = [
        f"--{name.replace('_', '-')}={getattr(experiment.agent, name)}"
        for name in (*names, "num_starts", "width", "depth")
    ]
    command = [sys.executable, "-m", "empowerment.cli", "train", "pendulum", *flags, "--seed=3"]
    return [*command, "--out", str(folder)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_a_random_moment(whole: Path, tmp_path: Path, seed: int):
    """A real process and a real kill -9, wherever it happens to be."""
    command = command_of(TINY, tmp_path / "run")
    wait = np.random.default_rng(seed).uniform(5, 25)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert hashes(tmp_path / "run") == hashes(whole)


@pytest.mark.slow
def test_interrupted_by_the_keyboard(tmp_path: Path):
    """A real process and a real Ctrl-C: what it had reported is saved, and it says what to do."""
    endless = TINY.with_agent(policy_updates=10_000_000)
    process = subprocess.Popen(
        command_of(endless, tmp_path / "run"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    line = next(line for line in process.stderr if "run: policy" in line)
    assert "nats" in line
    assert "% held" in line
    reported = int(line.split(", ")[-1].split(" of ")[0])
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Resume it with --resume" in rest
    assert "Traceback" not in rest
    saved = (tmp_path / "run" / "checkpoints").glob("policy-*.json")
    assert max(int(path.stem.rsplit("-", 1)[1]) for path in saved) >= reported


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"goal": "angle"}, "a number to each"),
        ({"goal": "angle=1", "goal_scale": 0.0}, "positive and finite"),
        ({"goal": "angle=1", "task_weight": -1.0}, "at least 0"),
        ({"goal": "angle=1", "task_weight": math.inf}, "finite, or alone"),
        ({"task_weight": 2.0}, "a goal, or the rewards of --env or --data, for task_weight"),
        ({"task_weight": 0.0}, "a goal, or the rewards"),
        ({"goal_scale": 2.0}, "a goal for goal_scale"),
        ({"world": None, "env": "Pendulum-v1", "task_weight": -1.0}, "at least 0"),
        ({"world": None, "env": "Pendulum-v1", "goal_scale": 1.0}, "a goal for goal_scale"),
    ],
)
def test_goals_that_cannot_be_are_refused(change: dict, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        Experiment(**{"world": "pendulum", **change}).check()


def test_a_goal_survives_the_manifest():
    given = Experiment(world="pendulum", goal="angle=0.3", task_weight="alone")
    found, _ = from_json(json.loads(json.dumps(to_json(given, 0))))
    assert found == given
    assert found.weight == math.inf
    assert not found.learns_reward


@pytest.mark.parametrize(("weight", "learns"), [(None, False), (0.0, False), (1.0, True)])
def test_a_weight_without_a_goal_is_that_of_the_rewards(weight: float | None, learns: bool):  # noqa: FBT001
    given = Experiment(env="Pendulum-v1", task_weight=weight)
    given.check()
    found, _ = from_json(json.loads(json.dumps(to_json(given, 0))))
    assert found == given
    assert found.learns_reward == learns
    # Earlier versions stored the weight of a goal also where there was none.
    old = to_json(given, 0) | {"goal_scale": 1.0, "task_weight": 1.0}
    assert from_json(old)[0] == Experiment(env="Pendulum-v1")
    assert from_json(old | {"goal": "a=1"})[0] == Experiment(env="Pendulum-v1", goal="a=1")
