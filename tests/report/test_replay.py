"""The replay in the page: whole, offline, text as text, and honest about what is missing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.test_report_page import EVIL, page_of

from empowerment.report import (
    StoredEpisode,
    StoredReplay,
    film_of,
    rounded,
    write_film,
    write_stored_replay,
    write_video,
)


def episode(length: int, columns: int = 2, **changes: Any) -> StoredEpisode:
    times = np.arange(length)
    about: dict[str, Any] = {
        "columns": [rounded(np.sin(times + axis)) for axis in range(columns)],
        "empowerment": (1 + 0.01 * times).tolist(),
        "ended": False,
        "num_frames": 0,
    }
    return StoredEpisode(**about | changes)


def replay(folder: Path, **changes: Any) -> Path:
    """Write a replay of 40 and 25 times, the second of which ended; films where it has frames."""
    folder.mkdir(exist_ok=True)
    about: dict[str, Any] = {
        "interval": 0.04,
        "stride": 2,
        "fps": 12.5,
        "names": [EVIL, "height"],
        "num_columns": 2,
        "unfilmed": "",
        "policy": episode(40),
        "random": episode(25, ended=True),
    }
    stored = StoredReplay(**about | changes)
    for name in ("policy", "random"):
        count = getattr(stored, name).num_frames
        if count:
            shades = (10 * np.arange(count)).astype(np.uint8)
            frames = np.broadcast_to(shades[:, None, None, None], (count, 48, 64, 3))
            write_film(frames, film_of(folder, name), fps=stored.fps)
    write_stored_replay(stored, folder)
    return folder


def test_names_are_text_and_nothing_comes_from_a_network(tmp_path: Path):
    folder = replay(tmp_path, policy=episode(40, num_frames=20), unfilmed=EVIL)
    page = page_of(folder)
    assert EVIL in page.text
    assert [tag for tag, about in page.tags if tag == "img"] == []
    (film,) = [about for tag, about in page.tags if tag == "video"]
    assert str(film["src"]).startswith("data:video/mp4;base64,")
    text = (folder / "report.html").read_text().replace(EVIL, "")
    assert "://" not in text
    data, _ = page.scripts
    assert json.loads(data)["episodes"]["random"]["ended"]


def test_a_replay_stands_for_the_video(tmp_path: Path):
    write_video(np.zeros((20, 32, 32, 3), np.uint8), tmp_path / "episode.mp4", fps=10.0)
    page = page_of(replay(tmp_path))
    assert [tag for tag, _ in page.tags if tag == "video"] == []
    slider = next(about for tag, about in page.tags if about.get("data-replay") == "time")
    assert slider["max"] == "39"


def test_of_many_columns_a_few_are_open_and_the_rest_are_counted(tmp_path: Path):
    names = [f"column {axis}" for axis in range(9)]
    episodes = {"policy": episode(40, 9), "random": episode(25, 9)}
    text = page_of(replay(tmp_path, names=names, num_columns=348, **episodes)).text
    assert "3 more observed columns" in text
    assert "The other 339 observed columns are not stored." in text


def test_without_empowerment_it_says_so(tmp_path: Path):
    page = page_of(replay(tmp_path, policy=episode(40, empowerment=None)))
    assert "was not stored with this run" in page.text
    folder = replay(tmp_path, interval=None)
    assert "actions" in page_of(folder).text


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"policy": episode(40, 3)}, "as many as names; got 3 columns"),
        ({"random": episode(25, empowerment=[1.0])}, r"of lengths \[1, 25\]"),
        ({"policy": episode(0)}, "columns of one length"),
    ],
)
def test_a_damaged_replay_is_named_and_the_rest_is_drawn(
    damage: dict[str, Any], complaint: str, tmp_path: Path
):
    folder = replay(tmp_path, **damage)
    with pytest.raises(ValueError, match=complaint):
        page_of(folder)
    assert "class='problem'" in (folder / "report.html").read_text()


def test_a_film_that_is_lost_is_named(tmp_path: Path):
    folder = replay(tmp_path, policy=episode(40, num_frames=20))
    film_of(folder, "policy").unlink()
    with pytest.raises(ValueError, match=r"replay-policy\.mp4"):
        page_of(folder)


def test_numbers_that_are_not_finite_are_gaps():
    assert rounded(np.array([1.234567, np.nan, -np.inf, 0.0])) == [1.2346, None, None, 0.0]
