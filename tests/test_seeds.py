"""Benchmarks that train over seeds: what is finished is kept, and more can be asked for later."""

import json
from pathlib import Path

import pytest
from benchmarks import seeds, tables
from benchmarks.seeds import Sweeper, finished, keep_rows, parser, read_rows, slug, sweeper

from empowerment.sweep.executors import Result
from empowerment.sweep.jobs import Failure, Job, Outcome, Train


def measured(job: Job) -> Outcome:
    """Stand in for a measurement in a worker; it notes each call, and one case fails."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with (job.folder.parent / "calls").open("a") as file:
        file.write(f"{job.settings['seed']} ")
    if job.settings["case"] == "bad":
        raise ValueError("no luck")
    return keep_rows(job, lambda: {"table": [{"seed": job.settings["seed"]}]})


class Here:
    """Runs jobs in this process."""

    def __init__(self, train: Train, *, slots: int, cpus: int):
        assert (slots, cpus) == (2, 1)
        self.slots, self._train = slots, train
        self._results: list[Result] = []

    def submit(self, job: Job) -> None:
        try:
            self._results.append((job.name, self._train(job)))
        except ValueError as error:
            self._results.append((job.name, Failure(str(error))))

    def wait(self, seconds: float) -> list[Result]:
        done, self._results = self._results, []
        return done

    def cancel(self, name: str) -> None:
        raise AssertionError(name)

    def close(self) -> None:
        assert not self._results


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweeper:
    monkeypatch.setattr(seeds, "LocalPool", Here)
    options = parser("About.", out="some", seeds="0-1", episodes=3)
    return sweeper(options.parse_args(["--out", str(tmp_path / "runs"), "--jobs", "2"]))


def test_finished_measurements_are_kept_and_others_added(
    given: Sweeper, capsys: pytest.CaptureFixture[str]
):
    def settings(*names: str, count: int = 2) -> dict:
        return {(n, seed): {"case": n, "seed": seed} for n in names for seed in range(count)}

    first = given.run(settings("good"), measured)
    assert [(each.case, each.seed, each.why) for each in first] == [
        ("good", 0, None),
        ("good", 1, None),
    ]
    assert [read_rows(each)["table"] for each in first] == [[{"seed": 0}], [{"seed": 1}]]
    later = given.run(settings("good", "bad", count=3), measured)
    calls = {each.case: (each.folder.parent / "calls").read_text().split() for each in later}
    assert sorted(calls["good"]) == ["0", "1", "2"]
    assert sorted(calls["bad"]) == sorted(3 * ["0", "1", "2"])
    assert {each.why for each in later if each.case == "bad"} == {"no luck"}
    assert [each.case for each in finished(later)] == 3 * ["good"]
    assert "bad, seed 2: no luck" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"of good/seed-0 in .*; case was good and is odd"):
        given.run({("good", 0): {"case": "odd", "seed": 0}}, measured)
    # What is not asked for is still in the list of the sweep.
    given.run(settings("good", count=1), measured)
    runs = json.loads((given.out / "sweep.json").read_text())["runs"]
    assert [runs[f"good/seed-{seed}"]["state"] for seed in range(3)] == 3 * ["finished"]
    assert runs["bad/seed-0"]["state"] == "failed"
    assert given.folder("good", 2) == later[2].folder


def test_a_tiny_budget_changes_no_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(tables, "_DOCS", tmp_path)
    words = ["--budget", "smoke", "--seeds", "3,5", "--out", "results/some"]
    tiny = sweeper(parser("About.", out="some", seeds="0", episodes=3).parse_args(words))
    assert tiny.out == Path("results/some-smoke")
    assert tiny.seeds == (3, 5)
    tiny.write("some", [{"seed": 3, "figure": "1.00"}], by=("seed",))
    assert "| 3 | 1.00 |" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    page, folder = tmp_path / "results.md", tmp_path / "results"
    folder.mkdir()
    page.write_text("<!-- some: begin --><!-- some: end -->")
    full = Sweeper((3,), 3, tmp_path / "out", 1, "full")
    full.write("some", [{"seed": 3, "figure": "1.00"}], by=("seed",))
    assert "| 3 | 1.00 |" in page.read_text()


def test_names_of_folders_and_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert slug("ball, 32 axes, as printed") == "ball-32-axes-as-printed"
    (tmp_path / "evaluation.json").write_text('{"height_mean": 1.5}')
    run = seeds.Trained("case", 0, tmp_path, 12.4, None)
    assert run.figures == {"height_mean": 1.5}
    assert run.seconds == "12"
    assert seeds.Trained("case", 0, tmp_path, 0.0, None).seconds == ""
