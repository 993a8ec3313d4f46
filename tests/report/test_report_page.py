"""The page of a run: it stands alone, shows names as text, and draws what it can."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.controller.controllers_for_tests import pendulum_bundle

from empowerment.cli import main
from empowerment.controller import write_bundle
from empowerment.environments import ENVIRONMENTS
from empowerment.report import (
    Compared,
    Landscape,
    StoredLive,
    write_comparison,
    write_landscape,
    write_report,
    write_stored_live,
)
from empowerment.systems import system_of

EVIL = "</script><script>alert('&amp;')</script><img src=x onerror=alert(1)>"
ACTOR = {"empowerment_mean": 1.0, "survived_fraction": 1.0, "episode_length_mean": 9.0}
EVALUATION = {**ACTOR, "uniform": ACTOR, "episodes": 2, "environment": EVIL, "seed": 0}
LIVE = system_of(ENVIRONMENTS["pendulum"]).live
STEPS = [{"stage": "policy", "round": 0, "update": n, "bound": 0.1 * n} for n in range(5)]


class Elements(HTMLParser):
    """The elements of a page, its text, and the text of each script."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self._inside = "", [], ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of a system that runs in the page, as files; everything is named as badly as can be."""
    folder = tmp_path / "run"
    write_bundle(pendulum_bundle(), folder)
    (folder / "evaluation.json").write_text(json.dumps(EVALUATION))
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(step)}\n" for step in STEPS))
    angles, speeds = (each.ravel() for each in np.meshgrid([-3, 0, 3], [-8, 0, 8]))
    states = np.stack([angles, speeds], axis=1).astype(float)
    about = {"steps": 1, "estimator": EVIL, "units": {"velocity": EVIL}}
    landscape = Landscape(("angle", "velocity"), states, np.arange(9.0), None, None, about)
    write_landscape(landscape, folder / "landscape.csv")
    write_stored_live(
        StoredLive(
            system="pendulum",
            parameters={"max_torque": 2.0},
            noise=[0.05, 0.05],
            interval=0.05,
            repeat=1,
            units={"velocity": EVIL},
        ),
        folder,
    )
    return folder


def page_of(folder: Path, **more: Any) -> Elements:
    texts = {"title": EVIL, "command": f"empower train --env {EVIL}", "live": LIVE} | more
    settings, versions = {"env": EVIL}, {"python": EVIL}
    return Elements(write_report(folder, settings=settings, versions=versions, **texts).read_text())


def test_names_with_markup_are_text(run: Path):
    page = page_of(run, headline=[EVIL, EVIL], caveats=[EVIL])
    assert page.text.count(EVIL) >= 7  # Title twice, headline, caveat, command, settings, figures
    assert [tag for tag, about in page.tags if tag == "img" and about.get("src") == "x"] == []
    assert [about for tag, about in page.tags if tag == "script"] == [
        {"type": "application/json", "id": "live-data"},
        {},
    ]
    data, program = page.scripts
    assert json.loads(data)["units"]["velocity"] == EVIL
    assert "startLive(section, data)" in program


def test_the_page_needs_nothing_from_a_network(run: Path):
    page_of(run, title="A run", command="empower train")
    text = (run / "report.html").read_text().replace(EVIL, "")
    assert "://" not in text
    for kind in ("src", "href", "url"):
        for found in re.findall(rf"{kind}=['\"]([^'\"]+)", text):
            assert found.startswith("data:"), found
    policy = next(about for tag, about in Elements(text).tags if "http-equiv" in about)
    assert "default-src 'none'" in str(policy["content"])


def test_a_page_without_a_system_has_no_live_section(run: Path):
    assert [tag for tag, _ in page_of(run, live=None).tags if tag in ("script", "canvas")] == []
    (run / "live.json").unlink()
    assert "canvas" not in [tag for tag, _ in page_of(run).tags]


def test_what_is_damaged_is_named_and_the_rest_is_drawn(run: Path):
    (run / "landscape.json").write_text("{")
    (run / "evaluation.json").write_text("[]")
    with pytest.raises(ValueError, match=r"evaluation\.json .* The rest is in .*report\.html\."):
        page_of(run, title="A run")
    page = Elements((run / "report.html").read_text())
    for name in ("evaluation.json", "landscape.json"):
        assert f"Expected {run / name}" in page.text
    headings = [about.get("alt") for tag, about in page.tags if tag == "img"]
    assert headings == ["Training"]


def test_a_damaged_description_of_a_system_is_named(run: Path):
    (run / "live.json").write_text('{"system": 3}')
    with pytest.raises(ValueError, match="the description of a system"):
        page_of(run)
    assert "<canvas" not in (run / "report.html").read_text()


VERSION_1 = Path(__file__).parents[1] / "runs" / "version1" / "known"


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(VERSION_1, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"finished": False}))
    return folder


def test_a_run_that_is_not_finished_is_drawn_as_far_as_it_is(
    unfinished: Path, capsys: pytest.CaptureFixture[str]
):
    before = (unfinished / "manifest.json").read_bytes()
    main(["report", str(unfinished)])
    assert "not finished" in capsys.readouterr().err
    page = Elements((unfinished / "report.html").read_text())
    assert "This run is not finished" in page.text
    assert [about["alt"] for tag, about in page.tags if tag == "img"] == ["Training"]
    assert (unfinished / "manifest.json").read_bytes() == before


def test_a_run_with_damaged_weights_is_drawn_as_far_as_it_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "run"
    shutil.copytree(VERSION_1, folder)
    weights = folder / "policy.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(SystemExit) as stop:
        main(["report", str(folder)])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "policy.safetensors" in said
    assert said.endswith(f"What could be drawn is in {folder / 'report.html'}.\n")
    page = Elements((folder / "report.html").read_text())
    assert "This run is damaged." in page.text
    assert [about["alt"] for tag, about in page.tags if tag == "img"] == ["Training"]


def test_a_page_of_ones_own_is_for_several_runs(
    unfinished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stop:
        main(["report", str(unfinished), "--out", str(tmp_path / "page.html")])
    assert stop.value.code == 2
    assert "Expected several runs, or --watch, with --out; got one run." in capsys.readouterr().err


def compared(run: Path, name: str, **changes: Any) -> Compared:
    folder = run.parent / name.replace("/", "")[:9]
    shutil.copytree(run, folder)
    figures = EVALUATION | {"empowerment_mean": changes.pop("mean", 1.0)}
    (folder / "evaluation.json").write_text(json.dumps(figures))
    settings = {"agent.steps": 5, "seed": 0, "env": "one"} | changes
    return Compared(name, folder, settings, [changes.get("noise", 0.05)], "empower train")


def test_a_comparison_shows_figures_and_settings_that_differ(run: Path):
    about = {"steps": 1, "estimator": "exact"}
    (run / "landscape.json").write_text(json.dumps(about))
    runs = [compared(run, "first", mean=2.0), compared(run, EVIL, mean=3.0, seed=1)]
    page = Elements(write_comparison(runs, run / "both.html").read_text())
    assert f"The policy of {EVIL} is in the most empowered states" in page.text
    assert "(first: 2.000 nats; " in page.text
    rows = page.text[page.text.index("Settings in which they differ") :]
    assert "seed01" in rows.split("Landscapes")[0]
    assert "agent.steps" not in rows
    assert [about["alt"] for tag, about in page.tags if tag == "img"] == ["Landscapes", "Training"]
    assert "cannot be compared" not in page.text


def test_a_comparison_says_what_cannot_be_compared(run: Path):
    runs = [compared(run, "first"), compared(run, "second", **{"agent.steps": 1, "noise": 0.1})]
    text = Elements(write_comparison(runs, run / "both.html").read_text()).text
    assert "plans are of different lengths: their nats cannot be compared" in text
    assert "assume different noise: their nats cannot be compared" in text
    assert "most empowered" not in text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [("report", "at least one run folder"), ("report RUN RUN", "got one of them twice")],
)
def test_too_few_runs_are_refused(
    words: str, complaint: str, run: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stop:
        main(words.replace("RUN", str(run)).split())
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def test_only_finished_runs_are_compared(
    unfinished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = tmp_path / "other"
    shutil.copytree(unfinished, other)
    with pytest.raises(SystemExit):
        main(["report", str(unfinished), str(other), "--out", str(tmp_path / "both.html")])
    assert "Expected finished runs to compare" in capsys.readouterr().err
    assert not (tmp_path / "both.html").exists()


def test_landscapes_are_in_the_page_in_the_order_of_its_coordinates(run: Path):
    about = {"steps": 2, "estimator": "exact"}
    scattered = Landscape(("angle", "velocity"), np.eye(2), np.ones(2), None, None, about)
    write_landscape(scattered, run / "exact-2-step.csv")  # No grid: it cannot be painted.
    (found,) = json.loads(page_of(run).scripts[0])["landscapes"]
    assert (found["names"], found["x"], found["y"]) == (
        ["angle", "velocity"],
        [-3, 0, 3],
        [-8, 0, 8],
    )
    # The fixture's values go up along angles first.
    assert found["values"] == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert found["limits"][1] == 8
