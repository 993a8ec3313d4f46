"""`empower collect` and `empower data`, end to end."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from empowerment import Trajectories, collect
from empowerment.cli import main

MODULE = """
import os

import gymnasium
import numpy as np
from gymnasium.spaces import Box


class Slippery(gymnasium.Env):
    def __init__(self, trouble):
        self.observation_space, self.action_space = Box(-9, 9, (1,)), Box(-1, 1, (1,))
        self.trouble = trouble

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time, self.is_bad = 0.0, 0, self.np_random.random() < 0.25
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        self.place += float(action[0])
        if self.is_bad and self.time == 3:
            if self.trouble == "die":
                os._exit(3)
            self.place = np.nan
        return np.array([self.place], np.float32), 0.0, self.time == 8, False, {}


for trouble in ("die", "nan"):
    entry = f"{__name__}:Slippery"
    gymnasium.register(f"{__name__}/{trouble}-v0", entry, kwargs={"trouble": trouble})
"""


names = (f"slippery_{number}" for number in itertools.count())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's own, where they stand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    return tmp_path


@pytest.fixture
def module(folder: Path) -> str:
    """A module in that folder, of a name that was not imported before."""
    name = next(names)
    (folder / f"{name}.py").write_text(MODULE)
    return name


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run a command that is to end with an exit code; what it says goes to standard error."""
    if code:
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == code
    else:
        main(words)
    return capsys.readouterr().err


def test_a_world_of_ones_own_is_collected_whatever_befalls_it(
    folder: Path, module: str, capsys: pytest.CaptureFixture[str]
):
    environment = f"{module}:{module}/die-v0"
    words = "--steps 40 --out new/my.npz --hang-timeout 20 --seed 1"
    told = said(capsys, "collect", environment, *words.split())
    assert "Collected 40 transitions in 5 episodes." in told
    assert "dropped" in told
    assert "restarted" in told
    data = Trajectories.load(folder / "new" / "my.npz")
    assert all(episode.terminated for episode in data.episodes)
    for episode in data.episodes:
        np.testing.assert_allclose(
            np.diff(episode.observations[:, 0]), episode.actions[:, 0], atol=1e-5
        )
    assert data.about["environment"] == environment


def test_bad_data_are_written_told_and_mended(
    folder: Path, module: str, capsys: pytest.CaptureFixture[str]
):
    environment = f"{module}:{module}/nan-v0"
    words = "--steps 80 --out bad.npz --seed 1"
    told = said(capsys, "collect", environment, *words.split(), code=2)
    assert "observation_0 has" in told
    assert "not finite" in told
    bad = Trajectories.load(folder / "bad.npz")
    with pytest.raises(SystemExit) as stop:
        main(["data", "bad.npz", "--json"])
    assert stop.value.code == 2
    found = json.loads(capsys.readouterr().out)
    assert found["num_transitions"] == 80
    assert "not finite" in found["problems"][0]
    assert "Expected --out beside --repair" in said(
        capsys, "data", "bad.npz", "--repair", "split", code=2
    )
    for how in ("reject", "trim", "split"):
        told = said(capsys, "data", "bad.npz", "--repair", how, "--out", f"{how}.npz")
        assert f"Repaired by {how}" in told
        main(["data", f"{how}.npz"])
        shown = capsys.readouterr().out
        assert "observation_0" in shown
        assert environment in shown
    counts = [
        Trajectories.load(folder / f"{how}.npz").num_transitions
        for how in ("reject", "trim", "split")
    ]
    assert 0 < counts[0] < counts[1] <= counts[2] < bad.num_transitions


def test_a_table_becomes_data(folder: Path, capsys: pytest.CaptureFixture[str]):
    rows = [
        f"{run},{t / 10},{np.sin(t)},{np.cos(t)},{int(t == 9)}" for run in "ab" for t in range(10)
    ]
    (folder / "log.csv").write_text("\n".join(["run,t,angle,torque,fell", *rows]))
    words = "data log.csv --observations angle --actions torque --episode run --terminated fell"
    more = "--time t --limits=-2:2 --out log.npz"
    told = said(capsys, *words.split(), *more.split())
    assert "The data are in log.npz." in told
    data = Trajectories.load(folder / "log.npz")
    assert [episode.length for episode in data.episodes] == [9, 9]
    assert all(episode.terminated for episode in data.episodes)
    assert data.spaces.action_low == -2
    main(["data", "log.npz"])
    shown = capsys.readouterr().out
    assert "18 transitions in 2 episodes" in shown
    assert "every 0.1 s (10 Hz)" in shown
    assert "Note" not in shown


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("collect CarRacing-v3 --steps 9 --out a.npz", "such as an image. Reduce it"),
        ("collect Nowhere-v0 --steps 9 --out a.npz", "Nowhere"),
        ("collect nowhere:A-v0 --steps 9 --out a.npz", "nowhere"),
        ("collect Pendulum-v1 --steps 0 --out a.npz", "steps to be at least 1; got 0"),
        ("collect Pendulum-v1 --steps 9 --out a.csv", "end in .npz; got a.csv"),
        ("collect Pendulum-v1 --steps 9 --out a.npz --workers 0", "--workers to be at least 1"),
        ("collect Pendulum-v1 --steps 9 --out a.npz --policy runs/a", "runs/a to be a run folder"),
        ("collect Pendulum-v1 --steps 9 --out a.npz --hang-timeout 0", "timeout to be positive"),
        ("data none.npz", "none.npz"),
        ("data notes.txt", "to be a file of trajectories"),
        ("data minari:some/data-v0", "minari to be installed"),
        ("data log.csv", "--observations and --actions"),
        ("data log.csv --observations a --actions u --limits x", "LOW:HIGH for each action; got"),
        ("data a.npz --actions u", "--actions for a log of the format csv"),
    ],
)
def test_mistakes_end_in_one_sentence(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    what: str,
):
    monkeypatch.setitem(sys.modules, "minari", None)
    (folder / "notes.txt").write_text("these are no data")
    (folder / "log.csv").write_text("a,u\n0,0\n1,1\n2,0\n")
    told = said(capsys, *words.split(), code=2)
    assert what in told
    assert told.startswith("empower: ")
    assert len(told.splitlines()) == 1
    assert not (folder / "a.npz").exists()


def test_the_command_collects_what_the_library_does(folder: Path):
    words = "--steps 30 --out ball.npz --seed 3"
    main(["collect", "empowerment/Ball-v0", *words.split()])
    one = Trajectories.load(folder / "ball.npz")
    other, _ = collect("empowerment/Ball-v0", steps=30, seed=3)
    assert one.about == other.about
    np.testing.assert_array_equal(one.episodes[0].observations, other.episodes[0].observations)
