"""Worlds learnt from data, end to end through the command line."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

from empowerment.cli import main
from empowerment.data import Trajectories, collect
from empowerment.runs import (
    hashes,
    load_agent,
    load_model,
    load_run,
    read_manifest,
    summarise,
)
from empowerment.runs.experiment import from_json
from empowerment.runs.folder import Run
from empowerment.runs.rounds import act
from empowerment.storage import read_about, save_tree

PENDULUM_DIRECTION = "empowerment/PendulumDirection-v0"
TRAIN = f"train --env {PENDULUM_DIRECTION} --budget smoke --steps 2 --family codebook --out"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learnt")


@pytest.fixture(scope="module")
def data(folder: Path) -> Path:
    path = folder / "data.npz"
    # Eleven episodes: two of them are not learnt from, one for validation and one for test.
    main(["collect", PENDULUM_DIRECTION, "--steps", "4400", "--out", str(path)])
    return path


@pytest.fixture(scope="module")
def model(folder: Path, data: Path, short_fit: None) -> Path:
    path = folder / "model"
    main(["fit", str(data), "--out", str(path), "--budget", "smoke"])
    return path


@pytest.fixture(scope="module")
def run(folder: Path, short_fit: None) -> Path:
    path = folder / "run"
    main([*TRAIN.split(), str(path)])
    return path


def test_rounds_are_the_same_by_any_number_of_workers(run: Path, tmp_path: Path):
    experiment, seed = from_json(read_manifest(run)["settings"])
    act(
        Run(tmp_path, {}, {}, print),
        experiment,
        0,
        load_agent(run, rounds=0),
        partial(collect, workers=2),
        seed,
    )
    here, there = (Trajectories.load(path / "data-1.npz") for path in (run, tmp_path))
    assert here.about == there.about
    assert len(here.episodes) == len(there.episodes) > 1
    for one, other in zip(here.episodes, there.episodes, strict=True):
        assert np.array_equal(one.observations, other.observations)
        assert np.array_equal(one.actions, other.actions)


def test_a_model_is_judged_beside_what_is_trivial(model: Path, capsys: pytest.CaptureFixture[str]):
    main(["model", str(model), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["horizons"] == [1, 5, 10, 20, 30]
    for name in ("model", "persistence", "linear", "coverage"):
        assert len(found[name]) == 5
        assert np.all(np.isfinite(found[name]))
    assert found["num_predictions"] == [400 - 5 - h + 1 for h in found["horizons"]]
    assert (model / "prediction.png").stat().st_size > 10_000


def test_a_model_knows_which_data_it_was_stopped_and_calibrated_by(model: Path):
    fitted = load_model(model)
    assert fitted.test is not None
    parts = (fitted.train, fitted.validation, fitted.test)
    assert [len(part.episodes) for part in parts] == [9, 1, 1]
    firsts = {tuple(e.observations[0].tolist()) for part in parts for e in part.episodes}
    assert len(firsts) == 11
    assert fitted.about["calibration"]["num_rows"] > 300
    assert 1 / 8 <= fitted.about["calibration"]["factor"] <= 8


def test_without_test_data_a_model_asks_for_others(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Of three episodes one is for validation; and so was all of it in earlier versions."""
    few, old = tmp_path / "few", tmp_path / "old"
    for copy in (few, old):
        shutil.copytree(model, copy)
    data = Trajectories.load(few / "data.npz")
    replace(data, episodes=data.episodes[:3]).save(few / "data.npz")
    path = old / "model.safetensors"
    weights, about = load_model(old).model, read_about(path)
    save_tree(weights, path, about={n: v for n, v in about.items() if n != "test_episodes"})
    for copy in (few, old):
        with pytest.raises(SystemExit) as stop:
            main(["model", str(copy)])
        assert stop.value.code == 2
        said = capsys.readouterr().err
        assert f"Expected the data of {copy} to have test episodes" in said
        assert "--data FILE" in said
    replace(data, episodes=(data.episodes[0].part(0, 60),)).save(tmp_path / "other.npz")
    main(["model", str(few), "--data", str(tmp_path / "other.npz"), "--json"])
    assert json.loads(capsys.readouterr().out)["num_predictions"] == [55, 51, 46, 36, 26]


def test_a_model_is_refused_other_data(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = tmp_path / "ball.npz"
    main(["collect", "empowerment/Ball-v0", "--steps", "50", "--out", str(other)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["model", str(model), "--data", str(other)])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "3 observed columns and 1 actions; got 2 observed columns and 2 actions" in said


def test_a_model_does_not_go_on_with_other_data(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = tmp_path / "other.npz"
    main(["collect", PENDULUM_DIRECTION, "--steps", "1000", "--seed", "1", "--out", str(other)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["fit", str(other), "--out", str(model), "--budget", "smoke", "--resume"])
    assert stop.value.code == 2
    assert "got other data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("fit none.npz --out m", "none.npz"),
        ("fit DATA --out m --window 1", "window to be at least 2; got 1"),
        ("fit DATA --out m --window 900", "900"),
        ("model nowhere", "nowhere to be a run folder"),
        ("evaluate MODEL", "has a model alone"),
        ("train --out r", "or an environment by --env ID"),
        ("train --env CarRacing-v3 --out r", "such as an image. Reduce it"),
        ("train --data DATA --rounds 1 --out r", "Name one by --env"),
        ("train --data DATA --env empowerment/Ball-v0 --out r", "2 actions; got 3 observed"),
        ("train --data DATA --agents 2 --out r --budget smoke", "channels; got 3"),
        ("train pendulum --out r --rounds -1", "rounds to be at least 0; got -1"),
    ],
)
def test_mistakes_end_in_one_sentence(
    words: str,
    what: str,
    data: Path,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    words = words.replace("DATA", str(data)).replace("MODEL", str(model))
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    assert stop.value.code == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("empower: ")
    assert what in said


def test_resuming_a_finished_run_acts_no_more(run: Path, capsys: pytest.CaptureFixture[str]):
    before = hashes(run)
    main([*TRAIN.split(), str(run), "--resume"])
    assert hashes(run) == before
    assert "Round 0 of 0 to 0 is kept" in capsys.readouterr().err


def test_data_of_an_earlier_version_are_not_taken_for_the_mean_action_s(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    acted = Trajectories.load(copy / "data-1.npz")
    about = {**acted.about, "episodes_by_mean_action": None}
    replace(acted, about=about).save(copy / "data-1.npz")
    with pytest.raises(SystemExit):
        main([*TRAIN.split(), str(copy), "--resume"])
    assert "which of its episodes are by the mean action" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_keeps_the_data_and_models_of_every_round(tmp_path: Path):
    run = tmp_path / "run"
    main(
        f"train --env {PENDULUM_DIRECTION} --out {run} --budget smoke --rounds 1 --steps 2".split()
    )
    manifest = read_manifest(run)
    assert manifest["finished"]
    stages = ("data", "model", "world", "channel", "surrogate", "policy")
    for stage in stages:
        ending = "npz" if stage == "data" else "safetensors"
        assert {f"{stage}.{ending}", f"{stage}-1.{ending}"} <= set(manifest["files"])
    assert manifest["files"] == hashes(run)
    assert Trajectories.load(run / "data.npz").num_transitions == 1000
    for number in (1, 2):
        acted = Trajectories.load(run / f"data-{number}.npz")
        assert acted.num_transitions == 500
        assert acted.about["environment"] == PENDULUM_DIRECTION
    found = json.loads((run / "rounds.json").read_text())
    assert [len(each["real"]) for each in found["rounds"]] == [1, 2]
    real = [each["empowerment"] for each in found["rounds"][-1]["real"]]
    assert (
        found["kept"] == manifest.get("kept_round") == load_run(run).number == int(np.argmax(real))
    )
    kept = [load_run(run, rounds=number).agent.policy for number in (0, 1)]
    assert eqx.tree_equal(load_agent(run).policy, kept[found["kept"]])
    assert not eqx.tree_equal(*kept)
    with pytest.raises(ValueError, match="a round from 0 to 1"):
        load_run(run, rounds=2)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found = {(line["stage"], line["round"]) for line in lines}
    assert found == {(stage, r) for stage in ("model", "channel", "policy") for r in (0, 1)}


def test_a_finished_run_holds_what_it_should(run: Path):
    manifest = read_manifest(run)
    assert manifest["finished"]
    files = {"data.npz", "model.safetensors", "policy.safetensors", "data-1.npz", "rounds.json"}
    assert files <= set(manifest["files"])
    assert (manifest.get("kept_round"), manifest.get("num_rounds")) == (0, 1)
    assert json.loads((run / "rounds.json").read_text())["stopped"] == "steps are spent"
    assert manifest["settings"]["env"] == PENDULUM_DIRECTION
    assert manifest["settings"]["model"]["updates"] == 100


def test_a_run_is_evaluated_through_its_filter(run: Path, capsys: pytest.CaptureFixture[str]):
    main(["evaluate", str(run), "--episodes", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["environment"] == PENDULUM_DIRECTION
    about = read_about(run / "surrogate.safetensors")
    assert found["surrogate_error"] == about["error"] >= 0
    assert found["surrogate_spread"] == about["spread"] >= 0
    for figures in (found, found["uniform"]):
        assert figures["survived_fraction"] == 1
        assert figures["episode_length_mean"] == 400
        assert 0 <= figures["held_fraction"] <= 1
        assert np.isfinite(figures["empowerment_mean"])
    sentence = f"off by {found['surrogate_error']:.3g} nats at states to which it was not fitted"
    assert any(sentence in each for each in summarise(found))
    sentence = f"off by {found['surrogate_visited_error']:.3g} nats along these episodes"
    assert any(sentence in each for each in summarise(found))
    sentence = f"by {found['surrogate_best_error']:.3g} at the tenth that it takes for the best"
    assert any(sentence in each for each in summarise(found))


@pytest.mark.slow
def test_a_report_is_drawn_of_what_was_learnt(run: Path):
    main(["report", str(run), "--grid", "3x3"])
    page = (run / "report.html").read_text()
    assert "<video" in page
    assert PENDULUM_DIRECTION in page
    assert {path.stem for path in (run / "figures").glob("*.png")} == {
        "training",
        "snapshots",
        "landscape",
        "landscapes",
    }


def test_a_trained_policy_collects(run: Path, tmp_path: Path):
    out = tmp_path / "more.npz"
    words = f"collect {PENDULUM_DIRECTION} --steps 30 --out {out} --policy {run}"
    main(words.split())
    assert Trajectories.load(out).num_transitions == 30


def test_a_run_loads_without_its_data(run: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "data.npz").unlink()
    own, other = load_agent(run), load_agent(copy)
    assert eqx.tree_equal(own.world, other.world)
    assert eqx.tree_equal(own.policy, other.policy)
    assert eqx.tree_equal(own.channel, other.channel)
