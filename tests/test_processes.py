"""Processes that train one run together: the same gradients, one run folder, and no hanging."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from empowerment import processes
from empowerment.cli import main
from empowerment.errors import EmpowermentError
from empowerment.processes import Team, joined
from empowerment.runs import Experiment, load_run
from empowerment.runs.shared import decided, open_shared, write_shared

SECONDS = 900
"""Timeout of everything that two processes do together, on a machine with much else to do."""


def free_port() -> int:
    with socket.create_server(("", 0)) as found:
        return found.getsockname()[1]


def start(number: int, *words: str) -> subprocess.Popen[str]:
    flags = {**os.environ, "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    return subprocess.Popen(
        [sys.executable, *words],
        env=flags,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, said = process.communicate(timeout=SECONDS)
    return process.returncode, out, said


def test_gradients_of_two_processes_are_those_of_one():
    script = str(Path(__file__).with_name("gradients_on_devices.py"))
    address = f"127.0.0.1:{free_port()}"
    both = [start(number, script, address, str(number)) for number in (0, 1)]
    for process in both:
        code, out, said = ended(process)
        assert code == 0, said
        assert "from process 0\n" in out
        found = json.loads(out.splitlines()[-1])
        assert set(found) == {"channel", "model", "policy"}
        for name, each in found.items():
            assert each["adds"], f"{name}: nothing is added up over processes"
            assert each["error"] < 1e-6, name


class Both:
    """Runs something as each of two processes, in threads of this one."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.teams = Team(0, 2, _connections=[ours]), Team(1, 2, _connections=[theirs])
        self.connections = ours, theirs
        for team in self.teams:
            team.watch()

    def __call__(self, act: Callable[[Team], Any]) -> list[Any]:
        found: list[Any] = [None, None]

        def run(team: Team) -> None:
            try:
                found[team.number] = act(team)
            except Exception as error:
                found[team.number] = error

        threads = [threading.Thread(target=run, args=(team,)) for team in self.teams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        return found


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    monkeypatch.setattr("_thread.interrupt_main", lambda: None)
    made = Both()
    yield made
    for team in made.teams:
        team._is_over = True
    for connection in made.connections:
        connection.close()


def test_what_process_0_decides_all_do(both: Both):
    chosen = Experiment(env="Pendulum-v1", action_repeat=3)
    assert both(lambda team: decided(team, lambda: chosen)) == [chosen, chosen]
    assert both(lambda team: team.share(lambda: b"x" * 3_000_000)) == [b"x" * 3_000_000] * 2


def test_only_process_0_writes_the_folder(both: Both, tmp_path: Path):
    folder, given = tmp_path / "run", {"seed": 1}

    def act(team: Team) -> tuple[Path, list[str], bytes]:
        def prepare() -> None:
            (folder / "log.npz").write_bytes(b"a log")

        options: dict[str, Any] = {"resume": False, "log": lambda sentence: None}
        with open_shared(team, folder, given, prepare=prepare, **options) as run:
            path = run.folder / "data.npz"

            def write() -> None:
                assert team.is_first
                path.write_bytes(b"data")

            write_shared(run, path, write)
            if not team.is_first:
                (run.folder / "policy.json").write_text("{}")
            names = sorted(each.name for each in run.folder.iterdir())
            return run.folder, names, path.read_bytes()

    first, second = both(act)
    assert first == (folder, [".lock", "data.npz", "log.npz", "manifest.json"], b"data")
    assert second[1] == [".lock", "data.npz", "log.npz", "manifest.json", "policy.json"]
    assert second[2] == b"data"
    assert not second[0].exists()
    assert not (folder / "policy.json").exists()


def test_a_folder_that_is_refused_ends_all(both: Both, tmp_path: Path):
    (tmp_path / "channel.safetensors").touch()

    def act(team: Team) -> None:
        try:
            with open_shared(
                team, tmp_path, {}, resume=False, prepare=lambda: None, log=lambda sentence: None
            ):
                raise AssertionError
        finally:
            if team.is_first:  # As its process ends.
                both.connections[0].shutdown(socket.SHUT_RDWR)
                team._is_over = True

    first, second = both(act)
    assert "it has results, but no manifest.json" in str(first)
    assert isinstance(second, EmpowermentError)
    assert "process 0 has ended, for a reason that it says itself" in str(second)
    both.teams[1]._is_over = True


def join(number: int, address: str, seconds: float = 20.0, **settings: Any) -> str:
    """Return the complaint of a process that cannot join."""
    count = settings.pop("count", 2)
    with (
        pytest.raises(ValueError, match="Expected") as caught,
        joined(address, number=number, count=count, settings=settings, seconds=seconds),
    ):
        raise AssertionError
    return str(caught.value)


def together(*acts: Callable[[], str]) -> list[str]:
    found = [""] * len(acts)

    def run(place: int) -> None:
        found[place] = acts[place]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return found


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seed": 2}, "from process 0 to 1, seed was 1 and is 2."),
        ({"seed": 1, "count": 3}, "Expected 2 processes; process 1 has 3."),
    ],
)
def test_other_settings_are_refused_in_all(given: dict[str, int], sentence: str):
    address = f"127.0.0.1:{free_port()}"
    found = together(lambda: join(0, address, seed=1), lambda: join(1, address, **given))
    assert found[0] == found[1]
    assert sentence in found[0]


def test_a_number_is_taken_once(monkeypatch: pytest.MonkeyPatch):
    address = f"127.0.0.1:{free_port()}"
    three = {"count": 3, "seed": 1}
    calls = [lambda number=number: join(number, address, **three) for number in (0, 1, 1)]
    assert set(together(*calls)) == {"Expected each process once, 1 to 2; got number 1."}


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch):
    address = f"127.0.0.1:{free_port()}"
    start = time.monotonic()
    assert "Expected process 0 at 127.0.0.1" in join(1, address, seconds=0.5)
    assert "number 1 did not come" in join(0, address, seconds=0.5)
    monkeypatch.setattr(processes, "_HELLO_SECONDS", 0.3)
    with socket.create_server(("", 0)) as silent:  # What listens there is something else.
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert "does not answer as one: timed out" in join(1, address, seconds=0.5)
        assert "to be free on the machine of process 0" in join(0, address, seconds=0.5)
    assert time.monotonic() - start < 20


def test_strangers_are_not_let_in():
    port = free_port()

    def stranger() -> str:
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\0\0\0\0\2{}", b""):
            for _ in range(100):
                with contextlib.suppress(ConnectionRefusedError):
                    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                        connection.sendall(said)
                    break
                time.sleep(0.05)
        return join(1, f"127.0.0.1:{port}", seed=2)

    found = together(lambda: join(0, f"127.0.0.1:{port}", seed=1), stranger)
    assert found[0] == found[1]
    assert "seed was 1 and is 2" in found[0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--coordinator x:1 --num-processes 2 --process-id 0", "--devices that 2 processes can"),
        ("--coordinator x:1 --num-processes 2", "Expected --process-id with --coordinator"),
        ("--process-id 1", "Expected --coordinator HOST:PORT with --num-processes"),
        ("--coordinator x --num-processes 1 --process-id 0", "HOST:PORT; got 'x'"),
        ("--coordinator x:1 --num-processes 2 --process-id 2 --devices 2", "one of 0 to 1; got 2"),
    ],
)
def test_mistakes_of_the_user(
    words: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    with pytest.raises(SystemExit) as stop:
        main(["train", "pendulum", *words.split(), "--out", str(tmp_path / "run")])
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err


def test_slurm_says_which_process_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setenv("SLURM_PROCID", "7")
    words = ["--coordinator", "x:1", "--devices", "4", "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        main(["train", "pendulum", *words])
    assert "one of 0 to 3; got 7" in capsys.readouterr().err


def train(folder: Path, port: int, *words: str) -> list[subprocess.Popen[str]]:
    """Start a smoke run by two processes."""
    shared = ["-m", "empowerment.cli", "train", "pendulum", "--budget", "smoke", "--devices", "2"]
    shared += ["--coordinator", f"127.0.0.1:{port}", "--num-processes", "2", *words]
    folders = folder, folder.with_name("unused")
    return [
        start(number, *shared, "--process-id", str(number), "--out", str(folders[number]))
        for number in (0, 1)
    ]


@pytest.mark.slow
def test_a_lost_process_ends_all_and_the_run_resumes(tmp_path: Path):
    folder = tmp_path / "run"
    first, second = train(folder, free_port())
    deadline = time.monotonic() + SECONDS
    while not (folder / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    second.kill()
    code, _, said = ended(first)
    assert code == 2, said
    assert said.splitlines()[-1].startswith("empower: Expected all 2 processes to train to the end")
    ended(second)
    for process in train(folder, free_port(), "--resume"):
        code, _, said = ended(process)
        assert code == 0, said
    assert load_run(folder).experiment.devices == 2
    assert not folder.with_name("unused").exists()
