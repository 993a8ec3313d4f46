"""The notebooks run as they are, and hold no output."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
PRINTED = {
    "first_landscape": r"at rest at  0\.00 rad: \d\.\d\d nats",
    "own_world": r"at 0\.0 m: 0\.00 nats[\s\S]*\d+% of 64 drones",
    "data_to_controller": r"controller\.safetensors[\s\S]*after five seconds",
}


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # pyright: ignore[reportUnknownMemberType]


def test_there_is_a_notebook_for_each_beginning():
    assert {path.stem for path in NOTEBOOKS} == set(PRINTED)
    for page in ("index.md", "tutorial.md"):
        text = (ROOT / "docs" / page).read_text()
        for name in PRINTED:
            assert f"(examples/{name}.ipynb)" in text, f"{page} does not link {name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path: Path):
    for cell in json.loads(path.read_text())["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        assert cell["metadata"] == {}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = read(path)
    where = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where)
    client.execute()
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    said = "".join(each.get("text", "") for each in outputs if each.get("name") == "stdout")
    assert re.search(PRINTED[path.stem], said)
    pictures = [each for each in outputs if "image/png" in each.get("data", {})]
    assert len(pictures) == (path.stem == "first_landscape")
