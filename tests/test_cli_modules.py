"""A run folder is data: no module is imported because a file names it."""

import itertools
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from empowerment.cli import main
from empowerment.data import make_environment, spaces_of
from empowerment.runs import Experiment, RunActor, TrainedRun, load_run

PENDULUM_DIRECTION = "empowerment/PendulumDirection-v0"
MODULE = """
from pathlib import Path

import gymnasium

Path(__file__).with_suffix(".imported").touch()
if "Mine-v0" not in gymnasium.registry:
    gymnasium.register("Mine-v0", "empowerment.environments.factories:make_pendulum_by_direction")
"""
names = (f"module_of_a_run_{number}" for number in itertools.count())


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that can be imported, and leaves a mark if it is."""
    path = tmp_path / "modules" / f"{next(names)}.py"
    path.parent.mkdir()
    path.write_text(MODULE)
    monkeypatch.setattr("sys.path", [*sys.path, str(path.parent)])
    return path


@pytest.fixture
def run(tmp_path: Path, module: Path) -> Path:
    """A run whose files name that module."""
    folder = tmp_path / "run"
    shutil.copytree(Path(__file__).parent / "runs" / "version1" / "learnt", folder)
    for name in ("manifest.json", "controller.json"):
        text = (folder / name).read_text().replace(PENDULUM_DIRECTION, f"{module.stem}:Mine-v0")
        (folder / name).write_text(text)
    return folder


def is_imported(module: Path) -> bool:
    return module.with_suffix(".imported").exists() or module.stem in sys.modules


@pytest.mark.parametrize("command", ["evaluate RUN", "report RUN", "control RUN --duration 0.1"])
def test_a_module_that_only_a_file_names_is_refused(
    command: str, run: Path, module: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stop:
        main(command.replace("RUN", str(run)).split())
    assert stop.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"imports the module {module.stem}" in said
    assert f"Allow it with --env {module.stem}:Mine-v0" in said
    assert not is_imported(module)


def test_what_needs_no_environment_imports_none(run: Path, module: Path, tmp_path: Path):
    out = tmp_path / "a.npz"
    main(["export", str(run), "--format", "npz", "--out", str(out)])
    assert out.exists()
    actor = RunActor(run)(spaces_of(make_environment(PENDULUM_DIRECTION), "it"))  # As in collect.
    actor.reset(seed=0)
    assert abs(actor(np.zeros(3, np.float32))[0]) <= 2
    assert not is_imported(module)


def test_resuming_imports_only_what_the_command_names(
    run: Path, module: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--env", PENDULUM_DIRECTION, "--out", str(run), "--resume"])
    assert stop.value.code == 2
    assert f"env was {module.stem}:Mine-v0 and is {PENDULUM_DIRECTION}" in capsys.readouterr().err
    assert not is_imported(module)


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_naming_it_on_the_command_line_allows_it(
    command: str,
    run: Path,
    module: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    def evaluate_agent(run: TrainedRun, **_: Any) -> dict[str, Any]:
        make_environment(run.environment).close()
        raise ValueError("as far as that")

    monkeypatch.setattr("empowerment.runs.evaluation.evaluate_agent", evaluate_agent)
    for env, words in (("Other-v0", "got Other-v0"), (f"{module.stem}:Mine-v0", "as far as that")):
        assert not is_imported(module)
        with pytest.raises(SystemExit):
            main([command, str(run), "--env", env])
        assert words in capsys.readouterr().err
    assert is_imported(module)


def test_control_runs_in_what_the_command_line_names(
    run: Path, module: Path, capsys: pytest.CaptureFixture[str]
):
    env = f"{module.stem}:Mine-v0"
    words = f"control {run} --duration 0.2 --rate 50 --engine numpy --json --env {env}"
    main(words.split())
    assert json.loads(capsys.readouterr().out)["environment"] == env
    assert is_imported(module)


def test_training_says_how_to_go_on_in_an_environment_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def train_run(experiment: Experiment, **_: Any) -> TrainedRun:
        run = object.__new__(TrainedRun)  # Nothing but its experiment is looked at.
        object.__setattr__(run, "experiment", experiment)
        return run

    monkeypatch.setattr("empowerment.cli.train.train_run", train_run)
    out = tmp_path / "new"
    for env, flag in (("mine:Mine-v0", " --env mine:Mine-v0"), ("Pendulum-v1", "")):
        main(["train", "--env", env, "--out", str(out)])
        assert capsys.readouterr().err.endswith(f"empower evaluate {out}{flag}\n")


def test_a_run_in_python_does_not_import_it_either(run: Path, module: Path):
    loaded = load_run(run)
    with pytest.raises(ValueError, match=f"imports the module {module.stem}"):
        _ = loaded.environment
    assert not is_imported(module)
    make_environment(load_run(run, env=f"{module.stem}:Mine-v0").environment).close()
    assert is_imported(module)
