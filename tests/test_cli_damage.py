"""Every kind of file that is decoded, damaged in every way: one sentence and exit code 2."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from empowerment.cli import main
from empowerment.data import Episode, Trajectories
from empowerment.data.spaces import numbered_spaces
from empowerment.report import Landscape, write_landscape, write_report
from empowerment.runs.experiment import from_json, to_json

VERSION_1 = Path(__file__).parent / "runs" / "version1"
FIGURES = {"empowerment_mean": 1.0, "survived_fraction": 1.0, "episode_length_mean": 9.0}
EVALUATION = {**FIGURES, "uniform": FIGURES, "episodes": 2, "environment": "Mine-v0", "seed": 0}
DEEP = b"[" * 200_000
NAMES = ("x", "y")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run with everything that is decoded; its report is drawn from files alone."""
    folder = tmp_path / "run"
    shutil.copytree(VERSION_1 / "learnt", folder)
    (folder / "evaluation.json").write_text(json.dumps(EVALUATION))
    states, about = np.random.default_rng(0).normal(size=(9, 2)), {"steps": 1, "estimator": "exact"}
    write_landscape(
        Landscape(NAMES, states, np.ones(9), None, None, about), folder / "landscape.csv"
    )

    def report_run(folder: Path, **_: Any) -> Path:
        return write_report(folder, title="", settings={}, versions={})

    monkeypatch.setattr("empowerment.cli.report.report_run", report_run)
    return folder


@pytest.fixture
def run_2(run: Path) -> Path:
    """The same with a manifest of version 2."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["settings"] = to_json(*from_json(manifest["settings"]))
    manifest["format"] = "empowerment run, version 2"
    (run / "manifest.json").write_text(json.dumps(manifest))
    return run


def remove(field: str) -> Callable[[dict[str, Any]], object]:
    return lambda record: record.pop(field)


def put(field: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda record: record.update({field: value})


FILES: dict[str, tuple[str, dict[str, Callable[[dict[str, Any]], object]]]] = {
    "manifest.json": (
        "evaluate RUN",
        {
            **{f"no {name}": remove(name) for name in ("settings", "finished", "files")},
            "text for a number": lambda m: m["settings"].update(seed="2"),
            "a setting too many": lambda m: m["settings"].update(colour="red"),
            "no seed": lambda m: m["settings"].pop("seed"),
            "no model": lambda m: m["settings"].pop("model"),
            "list of settings": put("settings", []),
            "number for a name": lambda m: m["settings"].update(env=7),
            "model of words": lambda m: m["settings"].update(model="words"),
        },
    ),
    "controller.json": (
        "control RUN --duration 0.1",
        {
            **{f"no {name}": remove(name) for name in ("low", "sha256", "bytes", "num_first")},
            "text for a number": put("interval", "fast"),
            "list for an object": put("networks", []),
        },
    ),
    "model.json": (
        "evaluate RUN",
        {
            "no sha256": remove("sha256"),
            "no settings": lambda m: m["about"].pop("settings"),
            "no size": lambda m: m["about"].pop("action_size"),
            "text for a number": lambda m: m["about"].update(action_size="1"),
            "wrong size": lambda m: m["about"].update(observation_size=-3),
            "other size": lambda m: m["about"].update(observation_size=9),
            "text for a width": lambda m: m["about"]["settings"].update(model_width="4"),
            "a setting too many": lambda m: m["about"]["settings"].update(colour="red"),
            "list for an object": put("about", []),
        },
    ),
    "policy.json": ("evaluate RUN", {"no about": remove("about"), "number": put("sha256", 5)}),
    "evaluation.json": (
        "report RUN",
        {
            "no uniform": remove("uniform"),
            "text for a number": put("empowerment_mean", "high"),
            "list for an object": put("uniform", []),
        },
    ),
    "landscape.json": (
        "report RUN",
        {
            "no steps": remove("steps"),
            "text for a number": put("steps", "one"),
            "list for an object": put("units", ["m"]),
        },
    ),
}
CLOSED = ("manifest.json", "controller.json", "model.json", "policy.json")
CASES = [
    *((name, change) for name, (_, changes) in FILES.items() for change in changes),
    *((name, "a field too many") for name in CLOSED),
]
NOT_RECORDS: dict[str, bytes] = {
    "a list": b"[]",
    "a number": b"3",
    "nothing": b"",
    "not text": b"\xff\xfe\x00",
    "deep": DEEP,
    "deep in an object": b'{"format": ' + DEEP,
    "not a number": b'{"format": NaN}',
    "beyond all numbers": b'{"format": 1e999}',
    "cut off": b'{"format": "empower',
    "surrogate": b'{"format": "\\ud800"}',
}


def refused(capsys: pytest.CaptureFixture[str], command: str, run: Path, name: str) -> str:
    """Run a command that has to end in one sentence about a file."""
    with pytest.raises(SystemExit) as stop:
        main(command.replace("RUN", str(run)).split())
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    assert said.err.startswith("empower: ")
    assert len(said.err) < 700
    assert name.split(".")[0] in said.err
    return said.err


@pytest.mark.parametrize(("name", "change"), CASES)
def test_a_wrong_record_is_refused(
    name: str, change: str, run: Path, capsys: pytest.CaptureFixture[str]
):
    command, changes = FILES[name]
    record = json.loads((run / name).read_text())
    changes.get(change, put("colour", "red"))(record)
    (run / name).write_text(json.dumps(record))
    refused(capsys, command, run, name)


@pytest.mark.parametrize("field", ["world", "env", "agents", "perceive", "agent", "model", "seed"])
def test_a_manifest_of_version_2_misses_no_setting(
    field: str, run_2: Path, capsys: pytest.CaptureFixture[str]
):
    path = run_2 / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["settings"][field]
    path.write_text(json.dumps(manifest))
    refused(capsys, "evaluate RUN", run_2, "manifest.json")
    env = "empowerment/PendulumDirection-v0"
    refused(capsys, f"train --env {env} --out RUN --resume", run_2, "manifest.json")


@pytest.mark.parametrize("damage", NOT_RECORDS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_record_is_refused(
    name: str, damage: str, run: Path, capsys: pytest.CaptureFixture[str]
):
    (run / name).write_bytes(NOT_RECORDS[damage])
    refused(capsys, FILES[name][0], run, name)


DRAWN = ("landscape.csv", "metrics.jsonl")  # Where it is missing, the report has no such figure.
NO_FILES = [
    *((name, kind) for name in (*FILES, *DRAWN) for kind in ("folder", "pipe", "huge")),
    *((name, "none") for name in (*FILES, "policy.safetensors")),
]


@pytest.mark.parametrize(("name", "kind"), NO_FILES)
def test_what_is_no_file_is_refused_without_waiting(
    name: str, kind: str, run: Path, capsys: pytest.CaptureFixture[str]
):
    path = run / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 40)  # A hole: it takes no room on disk, but would in memory.
    command = FILES.get(name, ("evaluate RUN" if name.endswith("tensors") else "report RUN", {}))[0]
    refused(capsys, command, run, name)


LINES = {**NOT_RECORDS, "text for a number": b'{"stage": "policy", "round": 0, "update": "1"}'}
del LINES["nothing"]


@pytest.mark.parametrize("line", LINES)
def test_damaged_metrics_are_refused(line: str, run: Path, capsys: pytest.CaptureFixture[str]):
    for path in run.glob("landscape.*"):
        path.unlink()  # It would be drawn before.
    (run / "metrics.jsonl").write_bytes(LINES[line] + b"\n")
    refused(capsys, "report RUN", run, "metrics.jsonl")


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the description in a file of trajectories."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    text = change(arrays["description"].tobytes())
    np.savez(path, **{**arrays, "description": np.frombuffer(text, np.uint8)})


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def apply(text: bytes) -> bytes:
        record = json.loads(text)
        change(record)
        return json.dumps(record).encode()

    return apply


DESCRIPTIONS: dict[str, Callable[[bytes], bytes]] = {
    **{name: lambda _, text=text: text for name, text in NOT_RECORDS.items() if text},
    **{f"no {name}": changed(remove(name)) for name in ("format", "spaces", "about")},
    "a field too many": changed(put("colour", "red")),
    "list for an object": changed(put("spaces", [])),
    "no limits": changed(lambda record: record["spaces"].pop("action_low")),
    "text for a number": changed(lambda record: record["spaces"].update(action_low=["0"])),
    "too few limits": changed(lambda record: record["spaces"].update(action_low=[])),
    "text for the interval": changed(lambda record: record["about"].update(interval="0.1")),
    "no interval at all": changed(lambda record: record["about"].update(interval=0)),
    "metadata of words": changed(put("about", "words")),
}


@pytest.mark.parametrize("damage", DESCRIPTIONS)
def test_damaged_descriptions_of_data_are_refused(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    episode = Episode(np.zeros((3, 2)), np.zeros((2, 1)), terminated=False, truncated=True)
    path = tmp_path / "data.npz"
    Trajectories((episode,), numbered_spaces(2, 1), {"interval": 0.1}).save(path)
    rewrite(path, DESCRIPTIONS[damage])
    refused(capsys, "data RUN", path, "data.npz")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
@pytest.mark.parametrize("name", ["data.npz", "log.csv", "log.parquet"])
def test_data_that_are_no_file_are_refused_without_waiting(
    name: str, make: Callable[[Path], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    make(tmp_path / name)
    columns = "" if name == "data.npz" else " --observations a --actions u"
    said = refused(capsys, f"data RUN{columns}", tmp_path / name, name)
    assert "to be a regular file" in said
