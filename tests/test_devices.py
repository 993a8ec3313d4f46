"""Batches that are spread over devices: the same gradients, and one sentence where there are none.

The devices are virtual ones of the processor, in a process of their own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from empowerment.cli import main
from empowerment.devices import shard, use_devices
from empowerment.runs import load_run

TWO = "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=2"


def on_two_devices(*words: str) -> str:
    """Run Python with two devices; return what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "XLA_FLAGS": TWO},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_gradients_are_those_of_one_device():
    found = json.loads(on_two_devices(str(Path(__file__).with_name("gradients_on_devices.py"))))
    assert set(found) == {"channel", "model", "policy"}
    for name, each in found.items():
        assert each["adds"], f"{name}: nothing is added up over devices"
        assert each["error"] < 1e-6, name


@pytest.mark.slow
def test_a_run_on_two_devices_is_read_on_one(tmp_path: Path):
    words = ["train", "pendulum", "--budget", "smoke", "--devices", "2"]
    on_two_devices("-m", "empowerment.cli", *words, "--out", str(tmp_path / "run"))
    assert load_run(tmp_path / "run").experiment.devices == 2


def test_devices_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main(["train", "pendulum", "--devices", "64", "--out", str(tmp_path / "run")])
    assert stop.value.code == 2
    assert "Expected 64 devices; this machine has" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_batches_that_cannot_be_shared(monkeypatch: pytest.MonkeyPatch):
    batch = jax.numpy.zeros((3, 2))
    assert shard(batch) is batch
    with use_devices(1):
        assert shard((batch, None)) == (batch, None)

    class TwoDevices:
        empty, size = False, 2

    monkeypatch.setattr(jax.sharding, "get_abstract_mesh", TwoDevices)
    with pytest.raises(ValueError, match="2 devices can share evenly; got one of 3"):
        shard(batch)
