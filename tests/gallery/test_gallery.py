"""What comes with the package is whole, small, and does what is claimed of it."""

import importlib.util
import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from benchmarks.gallery import FILMS, PAGE

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, read_bundle
from empowerment.environments import EnvFactory
from empowerment.gallery import EXHIBITS, exhibits, find_exhibit, playing
from empowerment.report.video import read_video
from empowerment.runs import PRESETS

FOLDER = Path(exhibits.__file__).parent


def test_what_is_shipped():
    assert set(EXHIBITS) == {"ball", "cart-pole", "double-pendulum", "pendulum"}
    assert set(EXHIBITS) <= set(PRESETS)


@pytest.mark.parametrize("name", EXHIBITS)
def test_a_controller_is_small_and_as_it_was_written(name: str):
    files = {path.name: path for path in (FOLDER / name).iterdir()}
    assert set(files) == {"controller.json", "controller.safetensors", "facts.json"}
    assert sum(path.stat().st_size for path in files.values()) <= 300e3
    exhibit = find_exhibit(name)
    assert exhibit.environment in gymnasium.registry
    assert exhibit.bundle.description.has_bound
    assert f"empower train {name} --seed {exhibit.seed} " in exhibit.command


@pytest.mark.parametrize("name", EXHIBITS)
def test_a_changed_controller_is_refused(name: str, tmp_path: Path):
    for path in (FOLDER / name).glob("controller.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = tmp_path / "controller.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(ValueError, match="SHA-256"):
        read_bundle(tmp_path)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"^Expected one of the gallery, ball, .*; got biped\."):
        find_exhibit("biped")
    with pytest.raises(ValueError, match="Expected the seed to be at least 0; got -1"):
        playing.play_exhibit(find_exhibit(EXHIBITS[0]), seed=-1)


def run(name: str, start: np.ndarray | None) -> tuple[np.ndarray, gymnasium.Env, Bundle]:
    """States of an episode, by a loop that shares nothing with the one under test."""
    bundle = read_bundle(FOLDER / name)
    about = bundle.description
    assert about.environment is not None
    environment = EnvFactory(about.environment, about.action_repeat)()
    controller = Controller(bundle, engine="numpy")
    options = None if start is None else {"state": start}
    observation, _ = environment.reset(seed=7, options=options)
    states, truncated = [], False
    while not truncated:
        observation, _, _, truncated, _ = environment.step(controller.step(observation))
        states.append(observation)
    return np.array(states), environment, bundle


@pytest.mark.parametrize("angle", [np.pi - 0.01, 1.0, -2.0])
def test_the_pendulum_stands_in_the_last_five_seconds(angle: float):
    states, _, bundle = run("pendulum", np.array([angle, 0.0]))
    interval = bundle.description.interval
    assert interval is not None
    assert len(states) * interval == pytest.approx(20.0)
    assert np.abs(states[-round(5 / interval) :, 0]).max() <= 0.3


@pytest.mark.parametrize("name", ["cart-pole", "double-pendulum"])
def test_rods_stand_at_the_end(name: str):
    states, environment, bundle = run(name, None)
    names = bundle.description.observation_names
    rods = [axis for axis, each in enumerate(names) if each.startswith("angle")]
    # The first angle is that of a rod from upright, each other one that from the rod before it.
    assert len(rods) == {"cart-pole": 1, "double-pendulum": 2}[name]
    assert np.abs(states[-len(states) // 10 :, rods]).max() <= 0.2
    assert np.abs(states[0, rods[0]]) > 3.0, "it began hanging"
    environment.close()


def test_the_ball_keeps_off_the_walls():
    states, environment, _ = run("ball", None)
    space = environment.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    assert np.minimum(states - space.low, space.high - states)[20:].min() > 1.5


def test_the_demo_lists(capsys: pytest.CaptureFixture[str]):
    main(["demo"])
    said = capsys.readouterr().out
    assert all(f"│ {name} " in said for name in EXHIBITS)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_the_demo_plays_and_films(
    suffix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(playing, "_STEP_LIMIT", 20)  # Drawing takes longest.
    path = tmp_path / "new" / f"film{suffix}"
    main(["demo", "pendulum", "--out", str(path)])
    said = capsys.readouterr().err
    assert "upright in 0% of episodes (random: 0%)" in said
    assert "of empowerment on average" in said
    if suffix == ".gif":
        assert path.read_bytes().startswith(b"GIF89a")
    else:
        assert len(read_video(path)[0]) == 20


def test_without_imageio_the_figures_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: name != "imageio" and found(name, *rest)
    )
    monkeypatch.chdir(tmp_path)
    main(["demo", "pendulum"])
    said = capsys.readouterr().err
    assert "upright in 100% of episodes (random: 0%)" in said
    assert said.endswith("No film: imageio is not installed. Install empowerment[train].\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["biped"], "Expected one of the gallery, .*; got biped"),
        (["pendulum", "--out", "film.avi"], r"Expected the film to end in .mp4 or .gif; got"),
        (["--out", "film.mp4"], "Expected a name with --out; got none"),
        (["pendulum", "--seed", "-1"], "Expected the seed to be at least 0; got -1"),
    ],
)
def test_mistakes_end_in_one_sentence(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--no-cache", *words])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.match(f"empower: {sentence}", said)
    assert list(tmp_path.iterdir()) == []


def test_the_page_shows_what_is_shipped():
    text = PAGE.read_text(encoding="utf-8")
    films = {path.stem: path for path in FILMS.glob("*.gif")}
    assert set(films) == set(EXHIBITS)
    for name in EXHIBITS:
        exhibit = find_exhibit(name)
        assert films[name].stat().st_size <= 400e3
        assert f"## {exhibit.title}\n" in text
        assert f"`{exhibit.command}`" in text
        assert exhibit.result in text
