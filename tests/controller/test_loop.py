"""The loop in real time: what it does when all is well, and when it is not."""

import dataclasses
import gc
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from controllers_for_tests import filter_bundle, pendulum_bundle

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, write_bundle
from empowerment.controller.devices import EnvironmentDevice
from empowerment.controller.loop import Device, run_loop

FILTER = filter_bundle()
SAFE = (-1.0, 1.0)


class Fake:
    """A device that remembers what was done to it, and when."""

    def __init__(self, slow_at: int | None = None, broken_at: int | None = None):
        self.times: list[float] = []
        self.actions: list[np.ndarray] = []
        self.slow_at, self.broken_at = slow_at, broken_at
        self.collects = False

    def read(self) -> np.ndarray | None:
        self.times.append(time.monotonic())
        self.collects = self.collects or gc.isenabled()
        if len(self.times) == self.broken_at:
            raise ConnectionError("the cable is out")
        if len(self.times) == self.slow_at:
            time.sleep(0.055)
        return np.zeros(5, np.float32)

    def write(self, action: np.ndarray) -> None:
        self.actions.append(action)


def make(**safety) -> Controller:
    return Controller(FILTER, safety=Safety(safe_action=SAFE, **safety), engine="numpy")


def test_it_reads_steps_and_writes_at_its_rate():
    device = Fake()
    assert isinstance(device, Device)
    controller = make()
    timing = run_loop(controller, device, rate=100.0, duration=0.5)
    # A loaded machine may miss cycles, but it never makes up for them.
    assert len(device.times) == len(timing.begun) == controller.num_steps
    assert len(timing.begun) + timing.num_missed == pytest.approx(50, abs=1)
    assert (timing.begun >= timing.due).all()
    np.testing.assert_allclose(timing.due * 100, np.round(timing.due * 100), atol=1e-4)
    np.testing.assert_array_equal(device.actions[-1], np.array(SAFE, np.float32))
    assert len(device.actions) == len(device.times) + 1
    assert not timing.stopped
    assert not device.collects
    assert gc.isenabled()
    figures = timing.summary()
    assert figures["cycles"] == len(timing.begun)
    for name in ("compute_us", "jitter_us"):
        assert 0 < figures[name]["p50"] <= figures[name]["p99"] <= figures[name]["p99.9"]


def test_there_is_no_burst_after_an_overrun():
    device = Fake(slow_at=10)
    timing = run_loop(make(), device, rate=100.0, duration=0.4)
    assert timing.num_missed >= 5
    assert np.diff(timing.due).min() > 0.0099
    late = np.diff(timing.due)[9]
    assert late == pytest.approx(0.01 * round(late / 0.01), abs=1e-6)
    assert late > 0.055


def test_an_overrun_of_some_cycles_is_a_fault():
    controller = make(interval=0.01)
    run_loop(controller, Fake(slow_at=10), rate=100.0, duration=0.3)
    assert "were missed" in str(controller.fault)


def test_the_safe_action_is_sent_when_the_device_breaks():
    device = Fake(broken_at=3)
    with pytest.raises(ConnectionError):
        run_loop(make(), device, rate=200.0, duration=1.0)
    np.testing.assert_array_equal(device.actions[-1], np.array(SAFE, np.float32))
    assert gc.isenabled()


def test_it_stops_when_asked_even_while_it_waits():
    device, answers = Fake(), iter([False, True])
    timing = run_loop(make(), device, rate=0.02, duration=100.0, stop=lambda: next(answers))
    assert timing.stopped
    assert not device.times  # The first cycle was to begin after fifty seconds.
    np.testing.assert_array_equal(device.actions, [np.array(SAFE, np.float32)])


@pytest.mark.parametrize(("rate", "duration"), [(0.0, 1.0), (1e9, 1.0), (100.0, 0.0), (1e3, 1e9)])
def test_rates_and_durations_that_cannot_be_are_refused(rate: float, duration: float):
    with pytest.raises(ValueError, match="Expected the"):
        run_loop(make(), Fake(), rate=rate, duration=duration)


class Ending:
    """An environment whose episodes are over after three steps."""

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, dict]:
        self.count = 0
        return np.zeros(5), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.count += 1
        return np.full(5, self.count), 0.0, self.count == 3, True, {}


def test_an_environment_begins_anew_when_an_episode_is_over():
    restarts = []
    device = EnvironmentDevice(Ending(), restarted=lambda: restarts.append(1))
    seen = []
    for _ in range(7):
        seen.append(device.read()[0])
        device.write(np.zeros(2, np.float32))
    assert seen == [0, 1, 2, 0, 1, 2, 0]
    assert len(restarts) == 2
    assert device.num_episodes == 3


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    bundle = pendulum_bundle()
    about = dataclasses.replace(
        bundle.description, environment="empowerment/Pendulum-v0", interval=0.01
    )
    write_bundle(Bundle(about, bundle.arrays), folder)
    return folder


def test_the_command_runs_the_environment(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    figure = tmp_path / "timing.png"
    words = ["control", str(run_folder), "--duration", "0.5", "--engine", "numpy"]
    main([*words, "--json", "--figure", str(figure), "--realtime"])
    found = json.loads(capsys.readouterr().out)
    assert found["environment"] == "empowerment/Pendulum-v0"
    assert found["rate_hz"] == 100
    assert found["cycles"] + found["missed"] == pytest.approx(50, abs=1)
    assert found["realtime"] in (True, False)
    assert min(plt.imread(figure).shape[:2]) > 300
    main([*words, "--rate", "50"])
    said = capsys.readouterr()
    assert said.out == ""
    assert "at 50 Hz" in said.err
    assert "Steps take" in said.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--env", "CartPole-v1"], "as the run has"),
        (["--env", "Nothing-v7"], "that Gymnasium can make"),
        (["--rate", "-1"], "Expected interval"),
        (["--figure", "/proc/none/x.png"], "x.png"),
    ],
)
def test_mistakes_end_in_one_sentence(
    words: list[str], complaint: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        main(["control", str(run_folder), "--engine", "numpy", *words])
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert complaint in said.err
    assert len(said.err.strip().splitlines()) == 1


RECORDING = """
import json, os
import gymnasium
import numpy as np


class Recording(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)
    actions = []

    def reset(self, *, seed=None, options=None):
        return np.ones(2, np.float32), {}

    def step(self, action):
        self.actions.append(float(action[0]))
        if len(self.actions) == 20:
            open(os.environ["NAME"] + ".begun", "w").close()
        return np.ones(2, np.float32), 0.0, False, False, {}

    def close(self):
        with open(os.environ["NAME"] + ".json", "w") as file:
            json.dump(self.actions, file)


gymnasium.register("Recording-v0", Recording)
"""


def test_signals_send_the_safe_action_and_end_it_cleanly(run_folder: Path, tmp_path: Path):
    (tmp_path / "recording.py").write_text(RECORDING)
    command = [sys.executable, "-m", "empowerment.cli", "control", str(run_folder)]
    command += ["--env", "recording:Recording-v0", "--duration", "600", "--engine", "numpy"]
    kinds = (signal.SIGINT, signal.SIGTERM)
    processes = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=os.environ | {"NAME": kind.name},
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind in kinds
    ]
    try:
        for kind, process in zip(kinds, processes, strict=True):
            begun = tmp_path / f"{kind.name}.begun"
            while not begun.exists() and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(kind)
            said = process.communicate(timeout=60)[1]
            assert process.returncode == 0, said
            assert f"Stopped by {kind.name}; the safe action was sent." in said
            actions = json.loads((tmp_path / f"{kind.name}.json").read_text())
            assert actions[-1] == 0.0
            assert any(actions[:-1])  # Not the last one for sure: a step may come too late.
    finally:
        for process in processes:
            with process:
                process.kill()
