"""The command line, end to end: files in, files out, and one sentence for every mistake."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

from empowerment.capacity import discrete_empowerment, exact_landscape, gaussian_empowerment
from empowerment.cli import main, parse
from empowerment.cli.train import for_arguments
from empowerment.runs import PRESETS, Experiment
from empowerment.worlds import WORLDS, Ball, Grid, Pendulum

GAUSSIAN = ("landscape", "pendulum", "--estimator", "gaussian", "--steps", "2")


def read(text: str) -> tuple[str, np.ndarray]:
    """The header and the numbers of a table."""
    rows = list(csv.reader(io.StringIO(text)))
    return ",".join(rows[0]), np.array(rows[1:], dtype=float)


def gaussian(states: np.ndarray, resolution: float = 0.05) -> np.ndarray:
    world = Pendulum(resolution=resolution)
    of_states = jax.vmap(lambda state: gaussian_empowerment(world, state, steps=2))
    return np.asarray(eqx.filter_jit(of_states)(jnp.asarray(states, float)))


def test_exact_landscape_is_the_librarys(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out, figure = tmp_path / "new" / "ball.csv", tmp_path / "other" / "ball.png"
    words = "landscape ball --steps 1 --resolution 0.1 --grid 2x2 --out"
    main([*words.split(), str(out), "--figure", str(figure)])
    header, table = read(out.read_text())
    assert header == "x,y,empowerment,lower,upper"
    np.testing.assert_allclose(table[:, :2], [[0, 0], [0, 10], [10, 0], [10, 10]])
    states, key = jnp.asarray(table[:, :2], float), jax.random.key(0)
    found = list(exact_landscape(Ball(resolution=0.1), states, steps=1, key=key))
    expected = [[each.value, each.lower, each.upper] for each in found]
    np.testing.assert_allclose(table[:, 2:], expected, rtol=1e-6)

    about = json.loads(out.with_suffix(".json").read_text())
    assert about["world"] == "ball"
    assert about["estimator"] == "exact"
    assert about["steps"] == 1
    assert about["constraint"].startswith("amplitude")
    np.testing.assert_allclose(about["noise"]["perception"], [0.1, 0.1])

    assert figure.read_bytes().startswith(b"\x89PNG")
    assert min(plt.imread(figure).shape[:2]) > 500
    said = capsys.readouterr()
    assert said.out == ""
    assert "Empowerment of 4 states: from 2.4" in said.err
    assert str(out) in said.err
    assert str(figure) in said.err
    assert {path.name for path in tmp_path.rglob("*.*")} == {"ball.csv", "ball.json", "ball.png"}


def test_pendulum_has_angle_and_velocity(capsys: pytest.CaptureFixture[str]):
    main(["landscape", "pendulum", "--steps", "1", "--grid", "1x1"])
    header, table = read(capsys.readouterr().out)
    assert header == "angle,velocity,empowerment,lower,upper"
    np.testing.assert_allclose(table, [[0, 0, 1.354, 1.354, 1.354]], atol=0.002)


def test_gaussian_landscape_goes_to_standard_output(capsys: pytest.CaptureFixture[str]):
    main([*GAUSSIAN, "--grid", "3x2", "--resolution", "0.1"])
    said = capsys.readouterr()
    header, table = read(said.out)
    assert header == "angle,velocity,empowerment"
    assert table.shape == (6, 3)
    np.testing.assert_allclose(table[:, 2], gaussian(table[:, :2], 0.1), rtol=1e-5)
    assert len(said.err.splitlines()) == 1


def test_maze_has_a_row_for_every_cell(tmp_path: Path):
    out, figure = tmp_path / "maze.csv", tmp_path / "maze.png"
    words = ["landscape", "maze", "--steps", "3", "--out", str(out), "--figure", str(figure)]
    main(words)
    header, table = read(out.read_text())
    assert header == "x,y,empowerment,lower,upper"
    world = WORLDS["maze"]()
    assert isinstance(world, Grid)
    np.testing.assert_array_equal(table[:, :2], world.cells)
    kernel = np.asarray(world.kernel)
    expected = [discrete_empowerment(kernel, cell, steps=3).value for cell in range(100)]
    np.testing.assert_allclose(table[:, 2], expected, rtol=1e-8)
    assert json.loads(out.with_suffix(".json").read_text())["constraint"].startswith("none")
    assert figure.stat().st_size > 5000


def test_states_come_from_a_file_and_go_back_into_one(tmp_path: Path):
    first, second, third = (tmp_path / f"{name}.csv" for name in "abc")
    first.write_text("note,velocity,angle\nhello,1.5,0.25\nworld,-2,3\n")
    main([*GAUSSIAN, "--states", str(first), "--out", str(second)])
    _, table = read(second.read_text())
    np.testing.assert_allclose(table[:, :2], [[0.25, 1.5], [3, -2]])
    np.testing.assert_allclose(table[:, 2], gaussian(table[:, :2]), rtol=1e-5)
    main([*GAUSSIAN, "--states", str(second), "--out", str(third)])
    assert second.read_text() == third.read_text()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Files to be wrong about; whatever else is there afterwards was written."""
    texts = {
        "empty": "",
        "missing": "angle,speed\n1,2\n",
        "nan": "angle,velocity\n1,nan\n",
        "word": "angle,velocity\n1,fast\n",
        "binary": "angle,velocity\n" + "\x00" * 200_000,
        "nocell": "x,y\n0,0\n0.5,3\n",
        "good": "angle,velocity\n1,2\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "latin.csv").write_bytes(b"angle,velocity\n\xff\xfe,1\n")
    names = {name: str(tmp_path / f"{name}.csv") for name in (*texts, "latin", "none")}
    return names | {"folder": str(tmp_path), "below": str(tmp_path / "good.csv" / "deep" / "a.csv")}


PENDULUM = ("landscape", "pendulum")
MISTAKES: dict[str, tuple[Sequence[str], str]] = {
    "unknown world": (("landscape", "pendulums"), "WORLD to be one of pendulum, .*'pendulums'"),
    "no world": (("landscape",), "WORLD"),
    "missing column": ((*PENDULUM, "--states", "{missing}"), "velocity is missing from angle"),
    "nan": ((*PENDULUM, "--states", "{nan}"), "finite number; got 'nan' in line 2"),
    "not a number": ((*PENDULUM, "--states", "{word}"), "finite number; got 'fast' in line 2"),
    "empty file": ((*PENDULUM, "--states", "{empty}"), "an empty file"),
    "no file": ((*PENDULUM, "--states", "{none}"), "No such file"),
    "folder of states": ((*PENDULUM, "--states", "{folder}"), "regular file; got a directory"),
    "binary file": ((*PENDULUM, "--states", "{binary}"), "Expected .*binary.csv"),
    "other encoding": ((*PENDULUM, "--states", "{latin}"), "utf-8"),
    "negative resolution": ((*PENDULUM, "--resolution", "-0.1"), "above zero; got -0.1"),
    "zero resolution": ((*PENDULUM, "--resolution", "0"), "above zero; got 0.0"),
    "nan resolution": ((*PENDULUM, "--resolution", "nan"), "above zero; got nan"),
    "fine resolution": (
        (*PENDULUM, "--grid", "1x1", "--steps", "1", "--resolution", "1e-9"),
        "Take a coarser resolution",
    ),
    "zero steps": ((*PENDULUM, "--steps", "0"), "steps to be at least 1; got 0"),
    "steps in words": ((*PENDULUM, "--steps", "abc"), "steps.*abc|abc.*steps|int"),
    "large seed": ((*PENDULUM, "--seed", "9" * 30), "seed to be from 0 to 4294967295"),
    "grid by y": ((*PENDULUM, "--grid", "4y5"), "joined by x, .*got '4y5'"),
    "grid of nothing": ((*PENDULUM, "--grid", "0x3"), "at least 1 .*got '0x3'"),
    "grid of one axis": ((*PENDULUM, "--grid", "3"), "2 whole numbers .*got '3'"),
    "both": ((*PENDULUM, "--grid", "3x3", "--states", "{good}"), "one of --grid and --states"),
    "below a file": ((*PENDULUM, "--out", "{below}"), "good.csv"),
    "folder as table": ((*PENDULUM, "--out", "{folder}"), "to be a file; got a directory"),
    "folder as figure": ((*PENDULUM, "--figure", "{folder}"), "figure's file to end in"),
    "description as table": ((*PENDULUM, "--out", "{folder}/a.json"), "file such as .*a.csv"),
    "unknown option": ((*PENDULUM, "--colour", "red"), "--colour"),
    "unknown estimator": ((*PENDULUM, "--estimator", "best"), "best"),
    "unknown command": (("landscapes",), "landscapes"),
    "no command": ((), "landscape"),
    "resolution of a maze": (("landscape", "maze", "--resolution", "1"), "no resolution for maze"),
    "gaussian maze": (
        ("landscape", "maze", "--estimator", "gaussian"),
        "exact or variational for a discrete",
    ),
    "no cell": (("landscape", "maze", "--states", "{nocell}"), "x,y of a cell; got 0.5,3"),
    "unknown ending": ((*PENDULUM, "--figure", "{folder}/a.xyz"), "to end in one of .*png"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_one_sentence(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
):
    before = sorted(tmp_path.rglob("*"))
    words, sentence = MISTAKES[name]
    words = [word.format(**files) for word in words]
    if words and "--out" not in words:
        words += ["--out", str(tmp_path / "new" / "table.csv")]
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("empower: ")
    assert "Traceback" not in said.err
    with pytest.raises(ValueError, match=sentence):
        raise ValueError(said.err)
    assert sorted(tmp_path.rglob("*")) == before


def test_debug_shows_where_an_error_comes_from():
    with pytest.raises(ValueError, match="one of pendulum"):
        main(["landscape", "pendulums", "--debug"])


def test_interrupt_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("empowerment.cli.landscape.compute_landscape", interrupt)
    with pytest.raises(SystemExit) as stop:
        main([*GAUSSIAN, "--out", str(tmp_path / "table.csv")])
    assert stop.value.code == 130
    assert capsys.readouterr().err == "Interrupted; no result was written.\n"
    assert list(tmp_path.iterdir()) == []


def test_worlds_are_listed(capsys: pytest.CaptureFixture[str]):
    main(["worlds"])
    lines = capsys.readouterr().out.splitlines()
    for name in WORLDS:
        assert any(name in line.split() for line in lines), name


@pytest.mark.parametrize("words", [["--help"], ["landscape", "--help"], ["worlds", "--help"]])
def test_help_tells_of_everything(capsys: pytest.CaptureFixture[str], words: list[str]):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 0
    said = capsys.readouterr().out
    if words == ["--help"]:
        wanted = ["landscape", "worlds"]
    elif words[0] == "worlds":
        wanted = ["--debug"]
    else:
        options = "estimator steps resolution grid states out figure seed debug"
        wanted = ["WORLD", *(f"--{option}" for option in options.split())]
    assert [word for word in wanted if word not in said] == []


def test_command_runs_as_a_program(tmp_path: Path):
    command = [sys.executable, "-m", "empowerment.cli"]
    words = [*command, "landscape", "room", "--steps", "1"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    header, table = read(done.stdout)
    assert header == "x,y,empowerment,lower,upper"
    assert sorted(set(np.exp(table[:, 2]).round().tolist())) == [3.0, 4.0, 5.0]
    done = subprocess.run(
        [*command, "landscape", "rooms"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


TINY = """--steps=1 --channel-updates=100 --bound-states=64 --policy-updates=100 --horizon=2
--num-starts=2 --width=8 --depth=1"""


def test_train_evaluate_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = tmp_path / "run"
    main(["train", "pendulum", "--out", str(run), *TINY.split()])
    assert "empower evaluate" in capsys.readouterr().err
    main(["evaluate", str(run), "--episodes", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert 0 <= found["held_fraction"] <= 1
    assert {"empowerment_mean", "held_fraction"} <= set(found["uniform"])
    # One step of the pendulum: 1.354 nats wherever the velocity is not at its limit.
    assert 0.5 < found["empowerment_mean"] < 1.36
    main(["report", str(run), "--grid", "2x2"])
    assert "report.html" in capsys.readouterr().err
    page = (run / "report.html").read_text()
    assert "://" not in page
    assert "<h2>Try it</h2>" in page
    assert page.count("data:image/png;base64") == 5
    assert "data:video/mp4;base64" in page
    for name in ("landscape", "landscapes", "snapshots", "certificate", "training"):
        assert plt.imread(run / "figures" / f"{name}.png").std() > 0.01
    manifest = json.loads((run / "manifest.json").read_text())
    assert {"evaluation.json", "episode.mp4", "report.html"} <= set(manifest["files"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("train balloon --out RUN", "Expected the preset to be one of pendulum"),
        ("train pendulum --out RUN --steps 0", "Expected steps to be at least 1"),
        ("train pendulum", "--out"),
        ("train pendulum --out RUN --joint", "family whose planning is learnt"),
        ("evaluate RUN", "Expected RUN to be a run folder"),
        ("report RUN", "Expected RUN to be a run folder"),
    ],
)
def test_mistakes_with_runs_end_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    complaint: str,
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", PRESETS)
def test_the_output_folder_does_not_choose_the_preset(name: str):
    command = for_arguments(["--env", "Pendulum-v1", "--out", name])
    words = ["--env", "Pendulum-v1", "--out", name]
    parsed = parse(command, "train", words)
    assert parsed.experiment is None
    assert parsed.settings == Experiment(env="Pendulum-v1")
    assert command.command_line == f"empower train --env Pendulum-v1 --out {name}"
    words = [name, "--out", "runs/mine", "--seed", "3"]
    assert parse(for_arguments(words), "train", words).settings == PRESETS[name].experiment


@pytest.mark.parametrize(("command", "words"), [("evaluate", "no figures"), ("report", "again")])
def test_an_interrupt_does_not_claim_that_nothing_was_written(
    command: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"empowerment.cli.{command}.{command}_run", interrupt)
    with pytest.raises(SystemExit) as stop:
        main([command, "somewhere"])
    assert stop.value.code == 130
    said = capsys.readouterr().err
    assert said.startswith("Interrupted; ")
    assert words in said
    assert "nothing" not in said


WITHOUT = """
import sys
REFUSED = "jax jaxlib equinox optax matplotlib imageio Box2D".split()
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])
sys.meta_path.insert(0, Refuse())
from empowerment.cli import main
main(sys.argv[1:])
"""


OTHER_EXTRAS = "Box2D mujoco onnx onnxruntime numba pyarrow minari pettingzoo"


def without_extras(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command where only the core is installed."""
    command = [sys.executable, "-c", WITHOUT, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words", ["--help", "demo --help", "control --help", "export --help", "data --help"]
)
def test_help_needs_no_jax(words: str):
    done = without_extras(*words.split())
    assert done.returncode == 0, done.stderr
    assert "usage: empower" in done.stdout


def test_a_robot_controls_and_exports_without_jax(tmp_path: Path):
    run = Path(__file__).parent / "runs" / "version1" / "learnt"
    words = f"control {run} --env Pendulum-v1 --duration 0.3 --engine numpy --json"
    done = without_extras(*words.split(), "--record", str(tmp_path / "fault.json"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cycles"] > 0
    done = without_extras("export", str(run), "--format", "npz", "--out", str(tmp_path / "a.npz"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.npz").exists()


def test_training_needs_the_extra_train_alone():
    script = WITHOUT.replace("jax jaxlib equinox optax matplotlib imageio Box2D", OTHER_EXTRAS)
    command = [sys.executable, "-c", script, "train", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pendulum: swing up" in done.stdout


def test_what_needs_an_extra_says_which():
    done = without_extras("train", "pendulum", "--out", "run")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Install empowerment[train]" in done.stderr
