"""The tutorial from a log to a robot, and the C that it ends with, on small budgets."""

import dataclasses
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.controller.peers_for_tests import Peer

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, read_bundle, write_bundle
from empowerment.controller.devices.wire import HEARTBEAT, OBSERVATION, Flag, Hello, pack
from empowerment.data import Trajectories

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorials" / "log-to-robot.md"
SHORTER = {
    "--minutes 20": "--minutes 0.5",
    "cartpole 5005 60": "cartpole 5005 2",
    "--duration 10": "--duration 1 --engine numpy",
    "--steps 500": "--steps 60",
    "--out runs/cartpole": "--out runs/cartpole --budget smoke --steps 1",
}
"""What the test does in place of what the page says."""

FLAGS = ["-std=c99", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror"]


class Shell:
    """Runs the lines of a page in a folder, as far as they are `empower`, Python, C and jobs."""

    def __init__(self, folder: Path):
        self.folder, self.port, self.said = folder, "5005", ""
        self.jobs: list[subprocess.Popen[str]] = []

    def __call__(self, line: str) -> None:
        words = shlex.split(
            line.replace("5005", self.port).replace("examples/", f"{ROOT}/examples/")
        )
        if words[0] == "kill":
            job = self.jobs.pop()
            job.kill()
            self.said += job.communicate(timeout=30)[0]
        elif words[-1] == "&":
            script = [sys.executable, *words[1:-1]]
            script[script.index("--port") + 1] = "0"
            self.jobs.append(
                subprocess.Popen(script, cwd=self.folder, stdout=subprocess.PIPE, text=True)
            )
            assert self.jobs[-1].stdout is not None
            self.port = self.jobs[-1].stdout.readline().rpartition(":")[2].strip()
        elif words[0] == "empower":
            main(words[1:])
        else:
            words[0] = sys.executable if words[0] == "python" else words[0]
            done = subprocess.run(
                words, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            self.said += done.stdout


def lines(page: Path) -> list[str]:
    """The lines of the blocks for a shell, joined where they go on."""
    text = "".join(re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    return list(text.replace("\\\n", " ").splitlines())


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, short_fit: None) -> Iterator[Shell]:
    """The page, walked through once; the last training is left out."""
    folder = tmp_path_factory.mktemp("robot")
    shell = Shell(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        try:
            for line in lines(PAGE):
                for said, done in SHORTER.items():
                    line = line.replace(said, done)
                if "runs/again" not in line:
                    shell(line)
            yield shell
        finally:
            for job in shell.jobs:
                job.kill()
                job.communicate(timeout=30)


def test_the_page_leads_from_the_log_to_recorded_data(walked: Shell):
    folder = walked.folder
    log, more, joined = (Trajectories.load(folder / f"{x}.npz") for x in ("log", "more", "all"))
    assert log.num_transitions > 1200
    assert any(each.terminated for each in log.episodes)
    assert log.spaces.observation_names == ("position", "velocity", "angle", "turning")
    assert more.spaces == log.spaces
    assert 30 < more.num_transitions < 90  # A busy machine misses some cycles.
    assert joined.num_transitions == log.num_transitions + more.num_transitions
    # By the clock and in lock-step, the program in C was there from the beginning to the end.
    assert len(re.findall(r"^100 cycles, \d+ missing, \d+ late, fault \d$", walked.said, re.M)) == 2
    assert len(re.findall(r"^episode \d+: [\d.]+ s, over$", walked.said, re.M)) > 0


@pytest.fixture(scope="module")
def plain(walked: Shell) -> Path:
    """The header of the same controller without a monitor, which would judge by so little data."""
    bundle = read_bundle(walked.folder / "runs" / "cartpole")
    of_monitor = ("decoder.", "innovations.")
    about = dataclasses.replace(
        bundle.description,
        monitor=None,
        networks={k: v for k, v in bundle.description.networks.items() if k != "decoder"},
    )
    arrays = {k: v for k, v in bundle.arrays.items() if not k.startswith(of_monitor)}
    folder = walked.folder / "plain"
    write_bundle(Bundle(about, arrays), folder)
    main(f"export {folder} --format c --out {folder / 'cartpole.h'}".split())
    return folder


def program(folder: Path, text: str, name: str) -> Path:
    source = folder / f"{name}.c"
    source.write_text(text)
    made = folder / name
    words = ["cc", *FLAGS, f"-I{folder}", "-o", str(made), str(source), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("name", ["client", "cartpole_controller"])
def test_the_programs_in_c_act_as_the_controller_in_python_does(
    walked: Shell, plain: Path, name: str
):
    """Observations of the log, some of them lost, through a socket in lock-step and without."""
    text = (ROOT / "examples" / "cartpole_controller.c").read_text()
    if name == "client":
        page = (ROOT / "docs" / "controller.md").read_text()
        (text,) = re.findall(r"```c\n(/\* client\.c \*/.*?)```", page, re.DOTALL)
    client = program(plain, text, name)
    random = np.random.default_rng(0)
    rows = np.concatenate(
        [each.observations for each in Trajectories.load(walked.folder / "log.npz").episodes]
    )[:400]
    now = 0
    controller = Controller.load(
        plain, engine="numpy", safety=Safety(interval=0.02), clock=lambda: now
    )
    peer = Peer(Hello(4, 1, 0.02, (-10.0,), (10.0,), is_lockstep=True))
    process = subprocess.Popen(
        [str(client), str(peer.port), "60"], stdout=subprocess.PIPE, text=True
    )
    try:
        peer.accept()
        errors, moves = [], []
        for index, row in enumerate(rows):
            now = 20_000_000 * (index + 1)
            begins, seen = index % 100 == 0, index % 100 == 0 or random.random() > 0.2
            if begins:
                controller.reset()
            if seen:
                flags = Flag.BEGIN if begins else 0
                peer.send_bytes(pack(OBSERVATION, row, flags=flags, time=now))
            else:
                peer.send_bytes(pack(HEARTBEAT, time=now))
            expected = controller.step(row if seen else None)
            errors.append(np.abs(peer.receive().numbers - expected).max())
            moves.append(expected)
        assert controller.fault is None
        assert np.ptp(moves) > 0.1
        assert max(errors) < 1e-3  # Of 10 N, in single precision, over a hundred steps.
        peer.send_bytes(pack(OBSERVATION, rows[0], flags=Flag.TERMINAL, time=now))
        np.testing.assert_array_equal(peer.receive().numbers, controller.safe_action)
        peer.drop()
        assert process.wait(timeout=30) == 1
    finally:
        process.kill()
        process.communicate()
        peer.close()


def test_the_program_in_c_ends_where_the_device_is_no_device(walked: Shell):
    client = walked.folder / "cartpole"
    with_text = Peer(Hello(3, 1, 0.02, (-10.0,), (10.0,)))
    acceptor = threading.Thread(target=with_text.accept)
    acceptor.start()
    said = subprocess.run(
        [str(client), str(with_text.port), "5"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    acceptor.join()
    with_text.close()
    assert said.returncode == 2
    assert said.stderr.startswith("Expected a device of this controller")


def test_a_device_that_dies_is_answered_at_once(walked: Shell):
    """By the clock: garbage, and then nothing, end in the safe action in the same cycle."""
    for last in (b"", b"of sixteen bytes"):
        peer = Peer(Hello(4, 1, 0.02, (-10.0,), (10.0,)))
        process = subprocess.Popen(
            [str(walked.folder / "cartpole"), str(peer.port), "60"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            peer.accept()
            peer.observe(0.01, Flag.BEGIN)
            peer.receive()
            if last:
                peer.send_bytes(last)
                actions: list[float] = []
                with pytest.raises((AssertionError, ConnectionResetError)):  # It closes.
                    actions.extend(message.numbers.item() for message in iter(peer.receive, None))
                assert actions[-2:] == [0.0, 0.0]  # That of the cycle, and the one that is left.
            else:
                peer.drop()
            said = process.communicate(timeout=30)[0]
            assert process.returncode == 1
            assert "the device is gone, the safe action is held" in said
            cycles = int(said.split()[0])
            assert cycles < 500  # Of 3000, however slow this machine is.
        finally:
            process.kill()
            process.communicate()
            peer.close()
