"""Recording from a device: what is in the file at any moment, and what a kill leaves."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from controllers_for_tests import discrete_bundle, filter_bundle, pendulum_bundle
from peers_for_tests import Peer, until

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, write_bundle
from empowerment.controller.devices import LostDeviceError, RemoteDevice
from empowerment.controller.devices.wire import Flag, Hello
from empowerment.controller.loop import run_in_step
from empowerment.controller.recording import EPISODE_LIMIT, RecordingDevice, spaces_of_bundle
from empowerment.controller.sampling import SamplingEngine
from empowerment.data import Trajectories

FILTER = filter_bundle()
SPACES = spaces_of_bundle(FILTER.description)
LOCKSTEP = Hello(5, 2, 0.02, (-2.0, 0.5), (1.0, 3.5), is_lockstep=True)
_SLOW = Hello(5, 2, 0.04, (-2.0, 0.0), (9.0, 9.0), is_lockstep=True)


class Scripted:
    """A device in lock-step that follows a script of cycles.

    Args:
        script: For each cycle a number that is observed or None, and what begins or ends: b, t, c,
            or l where it is lost.
    """

    def __init__(self, script: Sequence[tuple[float | None, str]]):
        self._script = iter(script)
        self.restarted = lambda: None
        self.is_idle = True
        self.ended: Literal["terminated", "truncated"] | None = None
        self.num_episodes = self.num_lost = 0
        self.interval, self.limits, self.is_lockstep = 0.02, None, True

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def clock(self) -> int:
        return 0

    def read(self) -> np.ndarray | None:
        value, what = next(self._script)
        self.ended = None
        if what == "l":
            self.is_idle = True
            raise LostDeviceError("it is gone")
        if what == "b":
            self.is_idle = False
            self.num_episodes += 1
            self.restarted()
        if what in "tc" and what:
            self.is_idle, self.ended = True, "terminated" if what == "t" else "truncated"
        return None if value is None else np.full(5, value, np.float32)

    def write(self, action: np.ndarray) -> None: ...


def recorded(
    script: Sequence[tuple[float | None, str]], path: Path
) -> tuple[Trajectories, list[np.ndarray]]:
    """Record a script; also return the actions of all cycles."""
    device, written = Scripted(script), []
    assert isinstance(device, RemoteDevice)
    controller = Controller(FILTER, engine=SamplingEngine(FILTER, seed=0))
    recorder = RecordingDevice(device, path, SPACES, about={"device": "test"}, interval=0.02)
    device.restarted = controller.reset

    class Tap:
        is_idle = property(lambda self: recorder.is_idle)

        def read(self) -> np.ndarray | None:
            return recorder.read()

        def write(self, action: np.ndarray) -> None:
            written.append(action)
            recorder.write(action)

    run_in_step(controller, Tap(), cycles=len(script))
    recorder.close()
    assert recorder.problem is None
    data = Trajectories.load(path)
    assert recorder.num_transitions == data.num_transitions
    return data, written


def test_episodes_are_what_was_seen_and_done(tmp_path: Path):
    script = [(0.0, "b"), (0.1, ""), (0.2, ""), (0.3, "t"), (0.9, "")]
    script += [(0.4, "b"), (0.5, ""), (0.6, "c")]
    data, written = recorded(script, tmp_path / "out.npz")
    first, second = data.episodes
    np.testing.assert_allclose(first.observations[:, 0], [0.0, 0.1, 0.2, 0.3], atol=1e-6)
    np.testing.assert_array_equal(first.actions, written[:3])
    assert (first.terminated, first.truncated) == (True, False)
    np.testing.assert_allclose(second.observations[:, 0], [0.4, 0.5, 0.6], atol=1e-6)
    np.testing.assert_array_equal(second.actions, written[5:7])
    assert (second.terminated, second.truncated) == (False, True)
    assert data.spaces == SPACES
    assert data.about["interval"] == 0.02
    assert data.about["device"] == "test"


def test_few_missing_observations_are_filled_and_many_cut(tmp_path: Path):
    script = [(0.0, "b"), (None, ""), (None, ""), (0.3, "")]
    script += [(None, "")] * 3 + [(0.7, ""), (0.8, ""), (0.9, "t")]
    data, written = recorded(script, tmp_path / "out.npz")
    first, second = data.episodes
    np.testing.assert_allclose(first.observations[:, 0], [0.0, 0.1, 0.2, 0.3], atol=1e-6)
    np.testing.assert_array_equal(first.actions, written[:3])
    assert first.truncated
    np.testing.assert_allclose(second.observations[:, 0], [0.7, 0.8, 0.9], atol=1e-6)
    np.testing.assert_array_equal(second.actions, written[7:9])
    assert second.terminated


def test_what_is_not_finite_is_missing(tmp_path: Path):
    data, _ = recorded([(0.0, "b"), (np.nan, ""), (0.2, ""), (0.3, "c")], tmp_path / "out.npz")
    np.testing.assert_allclose(data.episodes[0].observations[:, 0], [0, 0.1, 0.2, 0.3], atol=1e-6)


def test_a_device_that_is_lost_ends_the_episode(tmp_path: Path):
    data, written = recorded([(0.0, "b"), (0.1, ""), (0.2, ""), (None, "l")], tmp_path / "out.npz")
    (episode,) = data.episodes
    assert episode.truncated
    np.testing.assert_array_equal(episode.actions, written[:2])


def test_a_beginning_without_an_end_cuts(tmp_path: Path):
    script = [(0.0, "b"), (0.1, ""), (0.5, "b"), (0.6, ""), (0.7, "")]
    data, _ = recorded(script, tmp_path / "out.npz")
    assert [each.observations[0, 0] for each in data.episodes] == [0.0, 0.5]
    assert all(each.truncated for each in data.episodes)


def test_long_episodes_are_cut_without_losing_a_step(tmp_path: Path):
    count = EPISODE_LIMIT + 5
    script = [(index / count, "" if index else "b") for index in range(count)]
    data, written = recorded(script, tmp_path / "out.npz")
    assert [each.length for each in data.episodes] == [EPISODE_LIMIT, 4]
    actions = np.concatenate([each.actions for each in data.episodes])
    np.testing.assert_array_equal(actions, written[: count - 1])
    first, second = data.episodes
    np.testing.assert_array_equal(first.observations[-1], second.observations[0])


def test_nothing_is_written_of_nothing(tmp_path: Path):
    device = Scripted([])
    recorder = RecordingDevice(device, tmp_path / "out.npz", SPACES, about={}, interval=0.02)
    recorder.close()
    assert not (tmp_path / "out.npz").exists()


def test_an_error_on_writing_is_kept(tmp_path: Path):
    device = Scripted([(0.0, "b"), (0.1, ""), (0.2, "t")])
    recorder = RecordingDevice(device, tmp_path / "a" / "b", SPACES, about={}, interval=0.02)
    (tmp_path / "a").write_text("no folder")
    for _ in range(3):
        recorder.read()
        recorder.write(np.zeros(2, np.float32))
    recorder.close()
    assert isinstance(recorder.problem, OSError)


@pytest.mark.parametrize("bundle", [FILTER, pendulum_bundle(), discrete_bundle((3, 2))])
def test_sampled_actions_vary_within_limits_and_repeat_with_their_seed(bundle: Bundle):
    size, finals = bundle.description.observation_size, []
    for seed in (0, 0, 1):
        controller = Controller(bundle, engine=SamplingEngine(bundle, seed=seed), safety=Safety())
        actions = np.stack([controller.step(np.zeros(size)) for _ in range(20)])
        low, high = bundle.limits
        assert ((low <= actions) & (actions <= high)).all()
        assert len(np.unique(actions, axis=0)) > 1
        finals.append(actions)
    np.testing.assert_array_equal(finals[0], finals[1])
    assert not np.array_equal(finals[0], finals[2])


def test_spaces_have_the_names_limits_and_choices_of_the_controller():
    spaces = spaces_of_bundle(discrete_bundle((3, 2)).description)
    assert spaces.action_choices == (3, 2)
    assert SPACES.action_names == FILTER.description.action_names
    np.testing.assert_array_equal([SPACES.action_low, SPACES.action_high], FILTER.limits)


# Through the command line


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    about = dataclasses.replace(FILTER.description, interval=0.02)
    write_bundle(Bundle(about, FILTER.arrays), tmp_path / "run")
    return tmp_path / "run"


def serve(peer: Peer, *, episodes: int, length: int) -> None:
    """Answer a controller in lock-step for some episodes, then close."""
    peer.accept()
    for _ in range(episodes):
        for step in range(length):
            flags = Flag.BEGIN if step == 0 else Flag.TERMINAL if step == length - 1 else 0
            peer.observe(0.01 * step, flags)
            peer.receive()
    peer.drop()


def test_the_command_records_a_device(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    peer = Peer(LOCKSTEP)
    server = threading.Thread(target=serve, args=(peer,), kwargs={"episodes": 3, "length": 21})
    server.start()
    out, device = tmp_path / "out.npz", f"socket:127.0.0.1:{peer.port}"
    main(f"collect --device {device} --policy {run_folder} --steps 100 --out {out}".split())
    server.join()
    peer.close()
    data = Trajectories.load(out)
    assert [each.length for each in data.episodes] == [20, 20, 20]
    assert all(each.terminated for each in data.episodes)
    assert data.about["device"] == device
    told = capsys.readouterr().err
    assert "Recorded 60 transitions in 3 episodes" in told
    assert "the last: the device at" in told
    assert "fewer than 100" in told
    # The result is an ordinary file.
    main(["data", str(out), "--add", str(out), "--out", str(tmp_path / "both.npz")])
    assert Trajectories.load(tmp_path / "both.npz").num_transitions == 120


def test_the_command_stops_when_there_are_enough(run_folder: Path, tmp_path: Path):
    peer = Peer(LOCKSTEP)

    def forever() -> None:
        peer.accept()
        try:
            peer.observe(0.1, Flag.BEGIN)
            for _ in range(1000):
                peer.receive()
                peer.observe(0.1)
        except (AssertionError, OSError):
            return

    server = threading.Thread(target=forever)
    server.start()
    out, device = tmp_path / "out.npz", f"socket:127.0.0.1:{peer.port}"
    main(f"collect --device {device} --policy {run_folder} --steps 100 --out {out}".split())
    server.join(timeout=30.0)
    peer.close()
    assert Trajectories.load(out).num_transitions == 100


def test_killed_at_any_moment_it_loses_the_open_episode_alone(run_folder: Path, tmp_path: Path):
    peer, out = Peer(LOCKSTEP), tmp_path / "out.npz"
    device = f"socket:127.0.0.1:{peer.port}"
    command = f"-m empowerment.cli collect --device {device} --policy {run_folder}"
    with subprocess.Popen(
        [sys.executable, *command.split(), "--steps", "100000", "--out", str(out)],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            peer.server.settimeout(60.0)
            peer.accept()
            for episode in range(3):
                for step in range(31):
                    flags = Flag.BEGIN if step == 0 else Flag.TERMINAL if step == 30 else 0
                    peer.observe(0.01 * step + 0.001 * episode, flags)
                    peer.receive()
                until(out.exists)
                until(lambda done=episode + 1: _num_episodes(out) == done)
            peer.observe(0.1, Flag.BEGIN)
            peer.receive()
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=30.0)
        finally:
            process.kill()
    peer.close()
    data = Trajectories.load(out)
    assert [each.length for each in data.episodes] == [30, 30, 30]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def _num_episodes(path: Path) -> int:
    return len(Trajectories.load(path).episodes)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--policy RUN --device usb:1", "Expected a device to be env:ID"),
        ("--policy RUN --device env:Pendulum-v1", "empower collect Pendulum-v1"),
        ("--device socket:127.0.0.1:PORT", "--policy RUN"),
        ("--policy RUN --device socket:127.0.0.1:PORT", "Start it first"),
        ("--policy RUN --device socket:127.0.0.1:PORT Pendulum-v1", "got both or none"),
        ("--policy RUN", "got both or none"),
        ("Pendulum-v1 --max-change 1", "--max-change with --device only"),
        ("--policy none --device socket:127.0.0.1:PORT", "none"),
    ],
)
def test_mistakes_end_in_one_sentence(
    words: str,
    complaint: str,
    run_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("empowerment.controller.devices.socket_device.CONNECT_TIMEOUT", 0.3)
    peer = Peer()
    peer.close()
    text = words.replace("RUN", str(run_folder)) if "--policy RUN" in words else words
    given = text.replace("PORT", str(peer.port))
    with pytest.raises(SystemExit) as stopped:
        main(f"collect --steps 9 --out {tmp_path / 'out.npz'} {given}".split())
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "out.npz").exists()


def test_a_file_that_is_there_is_not_overwritten(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out.npz"
    out.write_text("precious")
    device = "socket:127.0.0.1:9"
    with pytest.raises(SystemExit) as stopped:
        main(f"collect --device {device} --policy {run_folder} --steps 9 --out {out}".split())
    assert stopped.value.code == 2
    assert "to be a new file" in capsys.readouterr().err
    assert out.read_text() == "precious"


def test_control_runs_a_device_by_name_and_says_that_it_was_lost(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
):
    peer = Peer(LOCKSTEP)
    server = threading.Thread(target=serve, args=(peer,), kwargs={"episodes": 2, "length": 11})
    server.start()
    device = f"socket:127.0.0.1:{peer.port}"
    main(f"control {run_folder} --device {device} --engine numpy --json".split())
    server.join()
    peer.close()
    found = json.loads(capsys.readouterr().out)
    assert (found["cycles"], found["episodes"], found["lost"]) == (22, 2, 1)
    assert found["lockstep"]
    assert found["device"] == device
    assert "was lost" in found["fault"]


def test_control_runs_a_device_by_the_clock(run_folder: Path, capsys: pytest.CaptureFixture[str]):
    peer = Peer()
    stop = threading.Event()

    def beat() -> None:
        peer.accept()
        peer.observe(0.1, Flag.BEGIN)
        while not stop.is_set():
            time.sleep(0.01)
            try:
                peer.observe(0.1)
            except OSError:
                return

    server = threading.Thread(target=beat)
    server.start()
    device = f"socket:127.0.0.1:{peer.port}"
    words = f"control {run_folder} --device {device} --engine numpy --duration 0.5 --rate 40"
    main(words.split())
    stop.set()
    server.join()
    peer.close()
    told = capsys.readouterr().err
    assert "The device observes at 50 Hz; it is controlled at 40 Hz." in told
    assert "cycles at 40 Hz" in told


def test_a_device_that_cannot_do_what_the_run_does_is_refused(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
):
    wrong = Hello(5, 2, 0.02, (-2.0, 0.5), (1.0, 2.5)), _SLOW
    for hello, complaint in zip(wrong, ("takes actions from", "the rate of the run"), strict=True):
        peer = Peer(hello)
        server = threading.Thread(target=peer.accept)
        server.start()
        device = f"socket:127.0.0.1:{peer.port}"
        with pytest.raises(SystemExit) as stopped:
            main(f"control {run_folder} --device {device} --engine numpy".split())
        server.join()
        peer.close()
        assert stopped.value.code == 2
        assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--device socket:127.0.0.1:9 --env Pendulum-v1", "one of --env and --device"),
        ("--device nowhere", "Expected a device to be env:ID"),
        ("--device env:Nothing-v7", "that Gymnasium can make"),
    ],
)
def test_mistakes_of_control_end_in_one_sentence(
    words: str, complaint: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        main(["control", str(run_folder), "--engine", "numpy", *words.split()])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert len(told.strip().splitlines()) == 1
