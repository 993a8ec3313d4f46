"""A training is watched by its files alone, however far it is and whatever is wrong with it."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.test_report_page import EVIL, Elements

from empowerment.agent import Comparison
from empowerment.agent.reality import Outcome
from empowerment.cli import main
from empowerment.files import encode
from empowerment.report import read_rounds
from empowerment.runs.folder import _write_manifest, read_manifest
from empowerment.runs.rounds import write_rounds
from empowerment.runs.watch import watch_runs

VERSION_1 = Path(__file__).parent / "version1" / "learnt"


class Clock:
    """Instead of sleeping, does what a training would have done by then, and looks at the page."""

    def __init__(self, page: Path, *steps: Callable[[], None]):
        self.page, self.steps = page, list(steps)
        self.seen: list[str] = []

    def __call__(self, seconds: float) -> None:
        assert seconds == 2.5
        self.seen.append(self.page.read_text())
        if not self.steps:
            raise KeyboardInterrupt
        self.steps.pop(0)()


def begin(folder: Path, *, finished: bool = False) -> Path:
    """Write the manifest of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {**read_manifest(VERSION_1), "format": "empowerment run, version 3"}
    manifest.pop("sha256", None)
    _write_manifest(folder, {**manifest, "finished": finished})
    return folder


def add(folder: Path, stage: str, *updates: int, number: int = 0, **values: float) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        for update in updates:
            entry = {"stage": stage, "update": update, **values, "round": number}
            file.write(json.dumps(entry) + "\n")


def titles(page: str) -> list[str]:
    return re.findall(r"<figcaption>([^<]*)</figcaption>", page)


def test_a_page_grows_with_the_training_and_ends_with_it(tmp_path: Path):
    run, page = begin(tmp_path / "run"), tmp_path / "new" / "watch.html"
    outcome = {"empowerment": 2.0, "length": 9.0}
    rounds = {"kept": 0, "rounds": [{"imagined": outcome, "real": [outcome]}]}

    def end() -> None:
        (run / "rounds.json").write_bytes(encode(rounds))
        begin(run, finished=True)

    clock = Clock(
        page,
        lambda: add(run, "model", 100, 200, validation=-3.5, gradient_norm=2.0),
        lambda: add(run, "channel", 0, 100, bound=1.25),
        lambda: add(run, "policy", 100, bound=1.5, episode_gain=1.0, visited_error=0.1),
        end,
    )
    said: list[str] = []
    watch_runs([run], page, every=2.5, sleep=clock, log=said.append)
    assert "no metrics yet" in clock.seen[0]
    assert titles(clock.seen[0]) == []
    assert titles(clock.seen[1]) == [
        "Evidence of validation data / nats a row",
        "Norm of the gradient, before clipping",
    ]
    assert "model, update 200, -3.500 nats a row in validation" in clock.seen[1]
    assert "channel, update 100, 1.250 nats" in clock.seen[2]
    assert "policy, update 100, 1.500 nats" in clock.seen[3]
    last = page.read_text()
    assert "<strong>run</strong>: finished" in last
    assert titles(last)[-2:] == ["Empowerment / nats", "Steps before the end"]
    assert {"Bound over the whole region / nats", "Error where the policy goes / nats"} <= set(
        titles(last)
    )
    # As long as something may come the page loads itself again.
    assert [text.count("data-seconds='2.5'") for text in (*clock.seen, last)] == [1, 1, 1, 1, 0]
    assert "Nothing is trained any more" in said[-1]
    assert [path.name for path in page.parent.iterdir()] == ["watch.html"]


def test_it_is_not_written_again_if_nothing_changed(tmp_path: Path):
    run, page = begin(tmp_path / "run"), tmp_path / "watch.html"
    ages = []

    def look(seconds: float) -> None:
        ages.append(page.stat().st_ino)
        if len(ages) == 3:
            raise KeyboardInterrupt

    watch_runs([run], page, sleep=look)
    assert len(set(ages)) == 1, "each write is a new file"
    assert "data-seconds" not in page.read_text(), "after Ctrl-C nothing more will come"


def test_progress_is_that_of_the_newest_checkpoint(tmp_path: Path):
    run, page = begin(tmp_path / "run"), tmp_path / "watch.html"
    add(run, "policy", 300, number=1, bound=1.0)
    (run / "checkpoints").mkdir()
    for name, total in (
        ("policy-1-0000200", 900),
        ("policy-1-0000300", 1200),
        ("policy-0000400", 7),
    ):
        (run / "checkpoints" / f"{name}.json").write_bytes(encode({"about": {"total": total}}))
    clock = Clock(page)
    watch_runs([run], page, every=2.5, sleep=clock)
    assert "policy of round 1, update 300 of 1,200, 1.000 nats" in clock.seen[0]
    assert "<progress value='0.250'" in clock.seen[0]
    assert ">r1<" in clock.seen[0] or "round 1" in clock.seen[0]


def test_runs_are_told_apart_and_shown_as_text(tmp_path: Path):
    name = EVIL.replace("/", "")
    runs = [begin(tmp_path / "one"), begin(tmp_path / name)]
    for run in runs:
        add(run, "channel", 100, 200, bound=1.0)
        add(run, "channel", 100, number=1, bound=1.0)
    clock = Clock(tmp_path / "watch.html")
    watch_runs(runs, tmp_path / "watch.html", every=2.5, sleep=clock)
    page = Elements(clock.seen[0])
    assert name in page.text
    assert [about for tag, about in page.tags if tag in ("script", "img")] == [{}]
    assert "://" not in clock.seen[0].replace(EVIL, "")
    colours = re.findall(r"<title>(.*?)</title><path class='stroke (colour-\d)'", clock.seen[0])
    assert dict(colours)["one, round 1"] != next(
        c for n, c in colours if n != "one, round 1" and "&" in n
    )


def test_a_folder_of_runs_is_watched_with_those_that_begin_later(tmp_path: Path):
    begin(tmp_path / "sweep" / "runs" / "first", finished=True)
    page = tmp_path / "watch.html"
    clock = Clock(page, lambda: add(begin(tmp_path / "sweep" / "runs" / "second"), "model"))
    watch_runs([tmp_path / "sweep"], page, every=2.5, sleep=clock)
    assert [">second<" in text for text in clock.seen] == [False, True]


def test_of_too_many_runs_those_with_news_are_shown(tmp_path: Path):
    for number in range(26):
        begin(tmp_path / "runs" / f"run-{number}", finished=True)
    page = tmp_path / "watch.html"
    watch_runs([tmp_path / "runs"], page, every=2.5, sleep=Clock(page))
    assert "The 24 of 26 runs with the latest news." in page.read_text()
    assert page.read_text().count("<li>") == 24


@pytest.mark.parametrize("damage", ["manifest.json", "metrics.jsonl", "rounds.json"])
def test_what_is_damaged_is_said_and_the_rest_drawn(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run, page = begin(tmp_path / "run", finished=True), tmp_path / "watch.html"
    add(run, "channel", 100, 200, bound=1.0)
    with (run / damage).open("ab") as file:
        file.write(b'\xff{"broken": \n[1')
    with pytest.raises(SystemExit) as stop:
        main(["report", "--watch", str(run), "--out", str(page)])
    assert stop.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1].endswith(f"The rest is in {page}.")
    assert "damaged" in said[-1] or damage in said[-1]
    assert "Bound over the whole region / nats" in titles(page.read_text())
    assert "class='problem'" in page.read_text()


def test_a_line_that_is_being_written_is_no_damage(tmp_path: Path):
    run, page = begin(tmp_path / "run", finished=True), tmp_path / "watch.html"
    add(run, "channel", 100, 200, bound=1.0)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "chan')
    watch_runs([run], page)
    assert "problem" not in page.read_text().split("</style>")[1]


def test_a_run_of_an_earlier_version_is_watched(tmp_path: Path):
    run, page = tmp_path / "run", tmp_path / "watch.html"
    shutil.copytree(VERSION_1, run)
    watch_runs([run], page)
    assert "Evidence of validation data / nats a row" in titles(page.read_text())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("report --watch nothing", "Expected nothing to be a run folder, or one with run folders"),
        ("report --watch RUN --every 0", "seconds between two looks to be above 0; got 0"),
        ("report --watch RUN --out .", "Expected . to be a file"),
    ],
)
def test_mistakes_end_in_one_sentence(
    words: str,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    run = begin(tmp_path / "run")
    with pytest.raises(SystemExit) as stop:
        main(words.replace("RUN", str(run)).split())
    assert stop.value.code == 2
    said: Any = capsys.readouterr().err
    assert said.count("\n") == 1
    assert complaint in said


def test_rounds_are_stored_as_soon_as_they_are_compared(tmp_path: Path):
    outcomes = [Outcome(1.0, 5.0), Outcome(2.0, 9.0)]
    comparison = Comparison(outcomes[0], tuple(outcomes), 10, 1.0, survives=False)
    for count in (1, 2):
        found = replace(comparison, real=tuple(outcomes[:count]))
        write_rounds(tmp_path, count * [found], is_last=False)
        assert json.loads((tmp_path / "rounds.json").read_text())["stopped"] is None
        assert [each.real[-1].length for each in read_rounds(tmp_path).rounds] == count * [
            outcomes[count - 1].length
        ]
    assert "Round 1 of 0 to 1 is kept" in write_rounds(tmp_path, 2 * [comparison])
    assert json.loads((tmp_path / "rounds.json").read_text())["stopped"]
