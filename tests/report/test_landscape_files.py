"""Tables on disk: round trips, whole files or none, and complaints that name the line."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from empowerment.files import check_writable, read_columns, write_atomic
from empowerment.report import Landscape, write_landscape


def landscape(*, bounds: bool = True, **changes: Any) -> Landscape:
    rng = np.random.default_rng(0)
    value = rng.uniform(1, 2, 5)
    parts: dict[str, Any] = {
        "names": ("angle", "velocity"),
        "states": rng.normal(size=(5, 2)) * [1.0, 1e-7],
        "empowerment": value,
        "lower": value - 0.1 if bounds else None,
        "upper": value + 0.1 if bounds else None,
        "about": {"world": "pendulum", "steps": 5},
    }
    return Landscape(**(parts | changes))


@pytest.mark.parametrize("bounds", [True, False])
def test_table_can_be_read_back(tmp_path: Path, bounds: bool):  # noqa: FBT001
    written, path = landscape(bounds=bounds), tmp_path / "new" / "folder" / "table.csv"
    write_landscape(written, path)
    header = "angle,velocity,empowerment" + (",lower,upper" if bounds else "")
    assert path.read_text() == written.to_csv()
    assert path.read_text().splitlines()[0] == header
    columns = [written.states[:, 0], written.states[:, 1], written.empowerment]
    if written.lower is not None and written.upper is not None:
        columns += [written.lower, written.upper]
    found = read_columns(path, header.split(","))
    np.testing.assert_allclose(found, np.stack(columns, axis=1), rtol=1e-8)
    assert json.loads(path.with_suffix(".json").read_text()) == written.about
    assert sorted(p.name for p in path.parent.iterdir()) == ["table.csv", "table.json"]


def test_table_does_not_overwrite_itself(tmp_path: Path):
    with pytest.raises(ValueError, match=r"not to end in \.json; got '.*table.json'"):
        write_landscape(landscape(), tmp_path / "table.json")
    assert list(tmp_path.iterdir()) == []


def test_columns_are_found_by_name(tmp_path: Path):
    path = tmp_path / "states.csv"
    path.write_text('note,velocity, angle ,empowerment\n"a, b",1,2,x\n\n"c\nd",-3e0,.4,y\n')
    np.testing.assert_array_equal(read_columns(path, ["angle", "velocity"]), [[2, 1], [0.4, -3]])


@pytest.mark.parametrize("text", ["angle,velocity\r\n1,2\r\n", "angle,velocity\n1,2"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_endings_of_other_systems_are_read(tmp_path: Path, mark: str, text: str):
    path = tmp_path / "states.csv"
    path.write_bytes((mark + text).encode())
    np.testing.assert_array_equal(read_columns(path, ["angle", "velocity"]), [[1, 2]])


BAD_FILES = {
    "empty": ("", "angle, velocity is missing from an empty file"),
    "no rows": ("angle,velocity\n\n", "to have at least one row of numbers; got none"),
    "missing column": ("angle,speed\n1,2\n", "velocity is missing from angle, speed"),
    "nan": ("angle,velocity\n1,2\n1,nan\n", "finite number; got 'nan' in line 3"),
    "infinite": ("angle,velocity\n-inf,2\n", "finite number; got '-inf' in line 2"),
    "word": ("angle,velocity\n1,2\n\nup,2\n", "finite number; got 'up' in line 4"),
    "short row": ("angle,velocity\n1,2\n3\n", "finite number; got '' in line 3"),
    "after a long cell": ('a,angle,velocity\n"b\nc",1,2\n,1,x\n', "got 'x' in line 4"),
    "huge cell": ("angle,velocity\n" + "1" * 200_000 + ",2\n", "a CSV file; got line 2: field"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_states_are_refused_with_their_place(tmp_path: Path, name: str):
    text, sentence = BAD_FILES[name]
    path = tmp_path / "states.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^Expected .*states.csv .*{sentence}"):
        read_columns(path, ["angle", "velocity"])


def test_too_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("empowerment.files.MAX_ROWS", 2)
    path = tmp_path / "states.csv"
    path.write_text("x\n1\n2\n")
    assert len(read_columns(path, ["x"])) == 2
    path.write_text("x\n1\n2\n3\n")
    with pytest.raises(ValueError, match="at most 2 rows; got more"):
        read_columns(path, ["x"])


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
):
    path = tmp_path / "table.csv"
    write_atomic(path, b"old")

    def fail(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(*((os, "fsync") if failing == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomic(path, b"new")
    assert path.read_text() == "new"


def test_check_leaves_nothing_behind(tmp_path: Path):
    check_writable(tmp_path / "table.csv")
    check_writable(tmp_path / "a" / "b" / "table.csv")
    assert list(tmp_path.iterdir()) == []


def test_place_that_cannot_be_written_is_refused(tmp_path: Path):
    with pytest.raises(IsADirectoryError, match="to be a file; got a directory"):
        check_writable(tmp_path)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "table.csv", tmp_path / "file" / "a" / "table.csv"):
        with pytest.raises(OSError, match="file"):
            check_writable(path)
