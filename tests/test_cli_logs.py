"""From a log alone to a controller, end to end through the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from empowerment.cli import main
from empowerment.controller import Controller
from empowerment.data import Trajectories
from empowerment.runs import load_run

WORDS = "--observations x,v --actions u --episode run --time t --rate 20"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mass between springs that someone pushed, logged at 40 Hz in twelve episodes."""
    random, rows = np.random.default_rng(5), []
    for run in range(12):
        x, v, u = random.normal(), random.normal(), 0.0
        for index in range(160):
            if index % 4 == 0:
                u = float(random.uniform(-1.5, 1.0))
            rows.append((run, index / 40, x, v, u))
            v += (u - x - 0.2 * v) / 40
            x += v / 40
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    np.savetxt(path, rows, delimiter=",", header="run,t,x,v,u", comments="", fmt="%.9g")
    return path


@pytest.mark.slow
def test_a_log_alone_becomes_a_controller(
    log: Path, tmp_path: Path, short_fit: None, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "run"
    main(f"train --data {log} {WORDS} --out {folder} --budget smoke --steps 2".split())
    told = capsys.readouterr().err
    assert "Actions are limited to what the log has: u from -1.5 to 0.99" in told
    run = load_run(folder)
    assert run.experiment.env is None
    assert run.experiment.log.rate == 20
    data = Trajectories.load(folder / "data.npz")
    assert [each.length for each in data.episodes] == [79] * 12
    controller = Controller.load(folder, engine="numpy")
    low, high = controller.bundle.limits
    actions = np.concatenate([each.actions for each in data.episodes])
    np.testing.assert_array_equal([low, high], [actions.min(0), actions.max(0)])
    for row in data.episodes[0].observations:
        assert low <= controller.step(row) <= high
    assert controller.bundle.description.interval == pytest.approx(0.05)
    # The model was fitted to some episodes, and stopped by others.
    main(["model", str(folder), "--json"])
    found = json.loads((folder / "support.json").read_text())
    assert "% of what the policy imagines is where the log has been" in told
    assert len(found["by_time"]) == 79
    assert found["share"] == pytest.approx(np.mean(found["by_time"]))
    # It begins where the log does, as the filter saw it.
    assert found["by_time"][0] > 0.5
    main(["report", str(folder)])
    page = (folder / "report.html").read_text()
    assert "What is imagined where the log has been" in page
    assert "Evaluation" not in page


@pytest.mark.parametrize(
    ("words", "limits"), [("", (-1.5, 1.0)), ("--limits=-2:3", (-2, 3))], ids=["found", "given"]
)
def test_what_is_learnt_from_has_limits(
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    limits: tuple[float, float],
):
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("empowerment.runs.pipeline._train_rounds", stop)
    folder = tmp_path / "run"
    with pytest.raises(SystemExit) as stopped:
        main(f"train --data {log} {WORDS} {words} --out {folder} --budget smoke".split())
    assert stopped.value.code == 130
    data = Trajectories.load(folder / "data.npz")
    spaces = data.spaces
    np.testing.assert_allclose(
        [spaces.action_low, spaces.action_high], [[x] for x in limits], atol=0.01
    )
    assert data.about["interval"] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("--data LOG", "Name them by --observations and --actions"),
        (f"--data LOG {WORDS} --limits 3:2", "each with LOW below HIGH"),
        (f"--data LOG {WORDS} --limits=-1:1", "numbers beyond its limits -1 and 1"),
        (f"--data LOG {WORDS} --rounds 1", "Name one by --env"),
        ("--data LOG --observations x,q --actions u", "q is missing from run, t, x, v, u"),
        ("--env Pendulum-v1 --rate 3", "a log that --rate is about; got none"),
        ("--data none.csv --observations x --actions u", "none.csv"),
    ],
)
def test_a_log_that_cannot_be_is_refused_before_anything_is_written(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, what: str
):
    folder = tmp_path / "run"
    with pytest.raises(SystemExit) as stop:
        main(f"train {words} --out {folder} --budget smoke".replace("LOG", str(log)).split())
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert what in told
    assert not folder.exists()
