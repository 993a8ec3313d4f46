"""Event files have the metrics of the run, each once, also after a kill."""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import (
    Event,  # pyright: ignore[reportAttributeAccessIssue] (made when it is imported)
)

from empowerment.cli import main
from empowerment.optimise import Callback, Snapshot
from empowerment.report import read_metrics
from empowerment.runs import Experiment, train_run
from empowerment.runs.folder import Run, open_run
from empowerment.runs.stage import RunHooks
from empowerment.runs.tensorboard import event_files

TREE = {"weight": jnp.ones(2)}


def events(folder: Path) -> Iterator[tuple[str, int, float]]:
    """Read event files by their format: length, its checksum, the event, its checksum."""
    for path in sorted(folder.rglob("events.out.tfevents.*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += 16 + size
            for value in event.summary.value:
                yield f"{path.parent.name}/{value.tag}", event.step, value.simple_value


def streamed(folder: Path) -> list[tuple[str, int, float]]:
    return [
        (f"round-{each.round}/{each.stage}/{name}", each.update, float(np.float32(value)))
        for each in read_metrics(folder)[0]
        for name, value in each.values.items()
    ]


def train(run: Run, stage: str, number: int, updates: int, *, killed_at: int | None = None) -> None:
    """Train a stage whose diagnostics depend on nothing but the number of updates."""

    def work(callback: Callback) -> tuple[Any, dict[str, Any]]:
        at = callback.resume(Snapshot(TREE, [], updates))
        for count in range(len(at.history) + 1, updates + 1):
            if count == killed_at:
                raise RuntimeError("killed")
            at = Snapshot(TREE, [*at.history, (count, {"bound": 1 / count, "cost": 2.0})], updates)
            callback.on_update(at)
        return TREE, {"history": at.history}

    hooks = RunHooks(run, number, lambda doing, done, total: None, lambda stage, at: "")
    hooks.stage(stage, TREE, work)


def test_event_files_are_the_metrics(tmp_path: Path):
    with open_run(tmp_path, {}, resume=False, log=print) as run, event_files(run, wanted=True):
        train(run, "channel", 0, 3)
        train(run, "policy", 0, 12)
        train(run, "policy", 1, 2)
    found = list(events(tmp_path / "tensorboard"))
    assert len(found) == 2 * 17
    assert {name: value for name, step, value in found if step == 3} == pytest.approx(
        {"round-0/channel/bound": 1 / 3, "round-0/channel/cost": 2, "round-0/policy/bound": 1 / 3}
        | {"round-0/policy/cost": 2}
    )
    assert sorted(found) == sorted(streamed(tmp_path))


def test_after_a_kill_every_value_is_there_once(tmp_path: Path):
    with open_run(tmp_path, {}, resume=False, log=print) as run, event_files(run, wanted=True):
        train(run, "channel", 0, 2)
        with pytest.raises(RuntimeError):  # The last checkpoint is at 5.
            train(run, "policy", 0, 12, killed_at=9)
    with open_run(tmp_path, {}, resume=True, log=print) as run, event_files(run, wanted=True):
        train(run, "channel", 0, 2)
        train(run, "policy", 0, 12)
    found = sorted(events(tmp_path / "tensorboard"))
    assert found == sorted(streamed(tmp_path))
    assert len(found) == 2 * 14


def test_without_the_option_there_are_none(tmp_path: Path):
    with open_run(tmp_path, {}, resume=False, log=print) as run, event_files(run, wanted=False):
        train(run, "channel", 0, 2)
    assert not (tmp_path / "tensorboard").exists()


def test_the_command_says_what_is_missing_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(SystemExit) as stop:
        main(["train", "pendulum", "--out", str(tmp_path / "run"), "--tensorboard"])
    assert stop.value.code == 2
    assert "Install empowerment[tensorboard]" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    with pytest.raises(ModuleNotFoundError):
        train_run(Experiment(world="pendulum"), folder=tmp_path / "run", tensorboard=True)
