"""Sweeps from the command line: interrupted, resumed, retried, pruned, shown."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.stats
import trains_for_tests as fakes

from empowerment.agent import AgentSettings
from empowerment.cli import main
from empowerment.runs import Experiment, read_manifest
from empowerment.runs.experiment import to_json
from empowerment.runs.folder import locked
from empowerment.sweep.executors import LocalPool
from empowerment.sweep.folder import read_entries
from empowerment.sweep.jobs import Failure, Job, Outcome, train
from empowerment.sweep.table import bootstrap, interquartile_mean, rows_of

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

GRID = ("--seeds", "0-1", "--set", "horizon=4,6", "--budget", "smoke")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """Train by a stand-in."""

    def use(function) -> None:
        monkeypatch.setattr("empowerment.cli.sweep.train", function)
        monkeypatch.setattr("empowerment.cli.sweep.num_cores", lambda: 2)

    return use


def fails(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The sentence by which a command is refused."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["sweep", *words])
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_a_sweep_trains_each_run_once_and_shows_what_it_found(
    fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fake(fakes.quick)
    out = tmp_path / "sweep"
    main(["sweep", "pendulum", *GRID, "--out", str(out)])
    said = capsys.readouterr().err
    assert said.count("finished in") == 4
    assert "pendulum/horizon=6/seed-1: a warning" in said
    entries = read_entries(out)
    assert {name: each.figures["score"] for name, each in entries.items()} == {
        "pendulum/horizon=4/seed-0": 400.0,
        "pendulum/horizon=4/seed-1": 401.0,
        "pendulum/horizon=6/seed-0": 600.0,
        "pendulum/horizon=6/seed-1": 601.0,
    }
    entry = entries["pendulum/horizon=6/seed-1"]
    assert entry.settings == {"horizon": 6, "seed": 1}
    assert (entry.state, entry.attempts, entry.hash) == (
        "finished",
        1,
        "hash of pendulum/horizon=6/seed-1",
    )
    assert entry.figures["threads"] == 1.0
    assert json.loads((out / "sweep.json").read_text())["bases"]["pendulum"]["agent"]["width"] == 32
    # Fake runs have no manifest: without it a run counts as removed, and is trained again.
    for name in entries:
        (out / "runs" / name / "manifest.json").write_text("{}")
    main(["sweep", "pendulum", *GRID, "--out", str(out)])
    assert "4 of 4 runs are finished already" in capsys.readouterr().err
    assert {path.read_text() for path in out.glob("runs/*/*/*/calls")} == {"x"}

    main(["sweep", str(out)])
    assert "pendulum horizon=4" in capsys.readouterr().out
    figure = tmp_path / "new" / "score.png"
    main(["sweep", str(out), "--table", "score", "--figure", str(figure)])
    table = capsys.readouterr().out
    assert "400.5" in table
    assert "600 601" in table
    assert min(plt.imread(figure).shape[:2]) > 100
    assert "one of score, threads; got" in fails(capsys, str(out), "--table", "other")
    assert "--figure to come with" in fails(capsys, str(out), "--figure", "a.png")
    assert "to end in one of" in fails(capsys, str(out), "--table", "score", "--figure", "a.b")

    # The folder of one grid is not that of another, and has one driver at a time.
    words = ("pendulum", "--out", str(out), "--budget", "smoke", "--seeds", "0-1")
    assert "settings.horizon was" in fails(capsys, *words, "--set", "horizon=4,7")
    assert "cpus_per_run was 1 and is 2" in fails(
        capsys, "pendulum", *GRID, "--out", str(out), "--cpus-per-run", "2"
    )
    with locked(out):
        assert "to be free; another process" in fails(capsys, "pendulum", *GRID, "--out", str(out))
    text = (out / "sweep.json").read_text()
    (out / "sweep.json").write_text(text.replace("601.0", "701.0"))
    assert "SHA-256 differs" in fails(capsys, str(out), "--table", "score")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file").touch()
    assert "it has other files" in fails(capsys, "pendulum", *GRID, "--out", str(tmp_path / "else"))
    assert "to be the folder of a sweep" in fails(capsys, str(tmp_path / "else"))


def test_environments_are_swept_with_all_that_is_automatic(
    fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fake(fakes.quick)
    out = tmp_path / "sweep"
    main(["sweep", "--env", "CartPole-v1", "--seeds", "0", "--budget", "smoke", "--out", str(out)])
    assert "CartPole-v1/seed-0: finished in" in capsys.readouterr().err
    content = json.loads((out / "sweep.json").read_text())
    assert content["bases"]["CartPole-v1"]["action_repeat"] == "auto"
    main(["sweep", str(out), "--table", "score"])
    assert "CartPole-v1" in capsys.readouterr().out


def test_failures_are_retried_and_reported(
    fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fake(fakes.doomed)
    words = ("pendulum", "--seeds", "0-2", "--budget", "smoke", "--out", str(tmp_path / "sweep"))
    sentence = fails(capsys, *words)
    assert "1 of 3 runs failed, each 3 times" in sentence
    assert "RuntimeError: no luck" in sentence
    entries = read_entries(tmp_path / "sweep")
    assert [each.state for each in entries.values()] == ["failed", "finished", "finished"]
    assert [each.attempts for each in entries.values()] == [3, 3, 1]
    (row,) = rows_of(entries, "score")
    assert row.missing == {"failed": 1}


def test_clearly_worse_runs_are_stopped(
    fake, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    fake(fakes.endless)
    monkeypatch.setattr("empowerment.sweep.driver._PRUNE_SECONDS", 0.1)
    words = ["sweep", "pendulum", "--seeds", "9,0-3", "--budget", "smoke", "--prune"]
    main([*words, "--out", str(tmp_path / "sweep")])
    assert "below the median" in capsys.readouterr().err
    states = [each.state for each in read_entries(tmp_path / "sweep").values()]
    assert states == ["pruned"] + ["finished"] * 4


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("--out", "x"), "either a preset"),
        (("pendulum", "--env", "Pendulum-v1", "--out", "x"), "either a preset"),
        (("other", "--out", "x"), "got other"),
        (("pendulum",), "Expected --out SWEEP"),
        ((), "Expected --out SWEEP"),
        (("pendulum", "--out", "x", "--cpus-per-run", "0"), "--cpus-per-run to be at least 1"),
        (("pendulum", "--out", "x", "--retries", "-1"), "--retries to be at least 0"),
        (("pendulum", "--out", "x", "--collect-results"), "with --backend ray"),
        (("pendulum", "--out", "x", "--prune", "--set", "steps=2,5"), "runs differ in steps"),
        (("pendulum", "--out", "x", "--set", "quux=1"), "to name a setting"),
        (("--env", "Quux-v7", "--out", "x"), "Quux"),
    ],
)
def test_mistakes_are_one_sentence(
    words: tuple[str, ...],
    match: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    assert match in fails(capsys, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["ray", "submitit"])
def test_backends_that_are_not_installed(
    backend: str,
    fake,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    fake(fakes.quick)
    monkeypatch.setitem(sys.modules, backend, None)
    for module in ("empowerment.cluster", f"empowerment.sweep.{backend}"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    words = ("pendulum", *GRID, "--out", str(tmp_path / "sweep"), "--backend", backend)
    assert f"Install empowerment[{backend}]" in fails(capsys, *words)


def job(folder: Path, seed: int = 0, name: str = "run") -> Job:
    return Job(name, folder, to_json(TINY, seed), 1)


def test_a_job_is_an_ordinary_run_and_repeats_nothing(tmp_path: Path):
    outcome = train(job(tmp_path / "run"))
    manifest = read_manifest(tmp_path / "run")
    assert manifest["finished"]
    assert "evaluation.json" in manifest["files"]
    assert outcome.figures["survived_fraction"] == 1.0
    assert {"bound", "empowerment_mean", "uniform.empowerment_mean"} <= set(outcome.figures)
    written = (tmp_path / "run" / "policy.safetensors").stat().st_mtime_ns
    again = train(job(tmp_path / "run"))
    assert (again.hash, again.figures) == (outcome.hash, outcome.figures)
    assert (outcome.core_seconds > 0, again.core_seconds) == (True, 0)
    assert (tmp_path / "run" / "policy.safetensors").stat().st_mtime_ns == written


def results(pool: LocalPool, count: int) -> dict[str, Outcome | Failure]:
    found: dict[str, Outcome | Failure] = {}
    while len(found) < count:
        found |= dict(pool.wait(0.5))
    return found


def test_workers_end_with_their_driver(tmp_path: Path):
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "import trains_for_tests as fakes\n"
        "from empowerment.sweep.executors import LocalPool\n"
        "from empowerment.sweep.jobs import Job\n"
        "if __name__ == '__main__':\n"
        "    pool = LocalPool(fakes.patient, slots=1, cpus=1)\n"
        "    pool.submit(Job('run', Path(sys.argv[1]), {}, 0))\n"
        "    time.sleep(600)\n"
    )
    (tmp_path / "driver.py").write_text(script)
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    driver = subprocess.Popen(
        [sys.executable, str(tmp_path / "driver.py"), str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": here},
    )
    noted = tmp_path / "run" / "process"
    while not (noted.exists() and noted.read_text()):
        assert driver.poll() is None
        time.sleep(0.02)
    worker = int(noted.read_text())
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    while _is_alive(worker):
        time.sleep(0.02)


def _is_alive(process: int) -> bool:
    """Whether a process runs; where nobody waits for orphans, they stay as zombies."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_cancelled_worker_is_gone(tmp_path: Path):
    pool = LocalPool(fakes.patient, slots=1, cpus=1)
    pool.submit(job(tmp_path / "run"))
    pool.cancel("run")
    assert pool.wait(0.0) == []
    assert multiprocessing.active_children() == []


def test_the_interquartile_mean_is_that_of_scipy():
    random = np.random.default_rng(0)
    for count in range(1, 14):
        values = random.normal(size=count)
        expected = scipy.stats.trim_mean(values, 0.25)
        np.testing.assert_allclose(interquartile_mean(values), expected, rtol=1e-12)


def test_the_bootstrap_interval_is_that_of_scipy():
    values = np.random.default_rng(1).exponential(size=20)
    found = bootstrap([values])
    judge = scipy.stats.bootstrap(
        (values,),
        lambda x, axis: scipy.stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(2),
    )
    # The quantiles of 2,000 resamples are known to about 3 % of the interval.
    width = judge.confidence_interval.high - judge.confidence_interval.low
    np.testing.assert_allclose(found, list(judge.confidence_interval), atol=0.06 * width)
    # Differences between environments are no uncertainty: each is resampled for itself.
    low, high = bootstrap([np.zeros(10), np.full(10, 100.0)])
    assert low == high == 50.0
