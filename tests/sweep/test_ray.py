"""Ray: a cluster of a head and two nodes on this machine, of which some are lost."""

import io
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest
import trains_for_tests as fakes
from ray.cluster_utils import Cluster
from test_sweep import TINY, fails

from empowerment.runs.experiment import to_json
from empowerment.sweep.driver import Options, drive
from empowerment.sweep.executors import Executor, LocalPool
from empowerment.sweep.folder import Sweep, read_entries
from empowerment.sweep.grid import Grid
from empowerment.sweep.jobs import Job, Train, train
from empowerment.sweep.ray import RayCluster, pack_folder, unpack_folder
from empowerment.sweep.scheduler import Entry


def sweep_of(count: int, folder: Path) -> tuple[Sweep, dict[str, Job]]:
    """A sweep of tiny runs."""
    grid = Grid("pendulum", (), {}, tuple(range(count)), "smoke", 1, 1)
    entries = {f"pendulum/seed-{seed}": Entry({"seed": seed}) for seed in range(count)}
    sweep = Sweep(folder, grid, entries)
    jobs = {
        name: Job(name, sweep.run_folder(name), to_json(TINY, seed), 1)
        for seed, name in enumerate(entries)
    }
    return sweep, jobs


def trained(sweep: Sweep, jobs: dict[str, Job], executor: Executor) -> dict[str, Entry]:
    drive(sweep, jobs, executor, Options(2, False, print, lambda *words: None))  # noqa: FBT003
    return sweep.entries


def on_ray(cluster: Cluster, function: Train, *, collect: bool = False) -> RayCluster:
    return RayCluster(function, address=str(cluster.address), cpus=1, collect=collect)


@pytest.mark.slow
def test_runs_land_on_both_nodes_and_outlive_their_workers(cluster: Cluster, tmp_path: Path):
    sweep, jobs = sweep_of(6, tmp_path)
    entries = trained(sweep, jobs, on_ray(cluster, fakes.somewhere))
    assert {each.state for each in entries.values()} == {"finished"}
    assert [each.attempts for each in entries.values()] == [1, 2, 1, 1, 1, 1]
    assert len({(job.folder / "node").read_text() for job in jobs.values()}) == 2
    assert {each.figures["threads"] for each in entries.values()} == {1.0}


@pytest.mark.slow
def test_a_node_that_is_lost_costs_no_run_and_no_bit(cluster: Cluster, tmp_path: Path):
    local, jobs = sweep_of(3, tmp_path / "local")
    expected = trained(local, jobs, LocalPool(train, slots=2, cpus=1))

    sweep, jobs = sweep_of(3, tmp_path / "ray")

    def lose_a_node() -> None:
        while not any(tmp_path.glob("ray/runs/*/seed-1/metrics.jsonl")):
            time.sleep(0.05)
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    threading.Thread(target=lose_a_node, daemon=True).start()
    entries = trained(sweep, jobs, on_ray(cluster, train))
    assert [each.state for each in entries.values()] == ["finished"] * 3
    assert sum(each.attempts for each in entries.values()) > 3
    assert {name: each.hash for name, each in entries.items()} == {
        name: each.hash for name, each in expected.items()
    }


DRIVER = """
import sys
import trains_for_tests as fakes
import empowerment.cli.sweep
from empowerment.cli import main
empowerment.cli.sweep.train = fakes.somewhere
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on(cluster: Cluster, tmp_path: Path):
    out, words = tmp_path / "sweep", ["sweep", "pendulum", "--seeds", "0-7", "--budget", "smoke"]
    words += ["--out", str(out), "--backend", "ray", "--address", str(cluster.address)]
    command = [sys.executable, "-c", DRIVER, *words]
    driver = subprocess.Popen(command)
    while not (out / "sweep.json").exists() or '"finished"' not in (out / "sweep.json").read_text():
        assert driver.poll() is None
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    done = [name for name, each in read_entries(out).items() if each.state == "finished"]
    assert 1 <= len(done) < 8
    for name in done:  # Which fake runs have not.
        (out / "runs" / name / "manifest.json").touch()
    subprocess.run(command, check=True, timeout=300)
    entries = read_entries(out)
    assert {each.state for each in entries.values()} == {"finished"}
    again = {name: len((out / "runs" / name / "calls").read_text()) for name in entries}
    assert {again[name] for name in done} <= {1, 2}  # Seed 1 is killed once by itself.
    assert sum(again.values()) <= 8 + 1 + 2  # What the two nodes were at was begun again.


@pytest.mark.slow
def test_folders_are_sent_back(cluster: Cluster, tmp_path: Path):
    sweep, jobs = sweep_of(2, tmp_path)
    entries = trained(sweep, jobs, on_ray(cluster, fakes.quick, collect=True))
    assert [each.state for each in entries.values()] == ["finished"] * 2
    for job in jobs.values():
        assert (job.folder / "calls").read_text() == "x"
    with pytest.raises(ValueError, match="a node with the 64 cores"):
        RayCluster(train, address=str(cluster.address), cpus=64, collect=False)


def test_a_folder_is_packed_to_the_same_bits_and_unpacked_whole(tmp_path: Path):
    (tmp_path / "a" / "below").mkdir(parents=True)
    (tmp_path / "a" / "below" / "file").write_bytes(b"1")
    (tmp_path / "a" / "manifest.json").write_bytes(b"2")
    packed = pack_folder(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "old").touch()
    unpack_folder(packed, tmp_path / "b")
    assert pack_folder(tmp_path / "b") == packed
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


@pytest.mark.parametrize("name", ["../out", "/out", "link"])
def test_a_tar_with_anything_else_is_refused(name: str, tmp_path: Path):
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as tar:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member, io.BytesIO())
    with pytest.raises(ValueError, match="Expected a file of a run"):
        unpack_folder(memory.getvalue(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_address_where_nothing_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ("pendulum", "--out", str(tmp_path / "sweep"), "--backend", "ray", "--address")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        sentence = fails(capsys, *words, f"127.0.0.1:{free.getsockname()[1]}")
    assert "it cannot be reached" in sentence
    assert "ray start --head" in sentence
    assert "is not HOST:PORT" in fails(capsys, *words, "somewhere")
    assert "is not HOST:PORT" in fails(capsys, *words, "ray://somewhere:10001")


def test_an_address_that_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("empowerment.cluster._ANSWER_SECONDS", 0.5)
    words = ("pendulum", "--out", str(tmp_path / "sweep"), "--backend", "ray", "--address")
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        sentence = fails(capsys, *words, f"127.0.0.1:{mute.getsockname()[1]}")
    assert "does not answer within" in sentence
