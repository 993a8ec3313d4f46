"""SLURM by submitit, tried out by its processes on this machine."""

import os
import shutil
from pathlib import Path

import pytest
import trains_for_tests as fakes
from test_sweep import fails, job

from empowerment.sweep.jobs import Failure, Outcome
from empowerment.sweep.submitit import SlurmQueue


# submitit does not wait for the processes that it has cancelled.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_jobs_end_or_are_lost_or_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", here)
    queue = SlurmQueue(fakes.doomed, folder=tmp_path / "slurm", address="local", cpus=1)
    for seed in range(3):
        queue.submit(job(tmp_path / str(seed), seed, name=str(seed)))
    found: dict[str, Outcome | Failure] = {}
    while len(found) < 3:
        found |= dict(queue.wait(0.5))
    assert found["0"] == Failure("RuntimeError: no luck")
    lost, ended = found["1"], found["2"]
    assert isinstance(lost, Failure)
    assert "its job was lost" in lost.why
    assert isinstance(ended, Outcome)
    assert ended.figures["threads"] == 1.0
    queue = SlurmQueue(fakes.patient, folder=tmp_path / "slurm", address="local", cpus=1)
    queue.submit(job(tmp_path / "3"))
    queue.close()
    assert queue.wait(0.0) == []
    (tmp_path / "go").touch()  # It ends in any case, also where interrupts are ignored.


def test_no_slurm_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shutil, "which", lambda name, **rest: None)
    words = ("pendulum", "--out", str(tmp_path / "sweep"), "--backend", "submitit")
    assert "Expected SLURM on this machine" in fails(capsys, *words)
    assert "to be auto or local with submitit" in fails(capsys, *words, "--address", "host:1")
