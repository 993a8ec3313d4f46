"""The documentation is true: its code runs, and its map of the paper holds."""

import ast
import importlib
import re
import shlex
from pathlib import Path

import pytest

from empowerment import cli

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def paper_map() -> list[tuple[str, str]]:
    """The rows of the table: what the paper calls it, and the function's dotted path."""
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ([^|]+?) \|.*\| `(empowerment[\w.]+)` \|$", text, re.MULTILINE)


def resolve(path: str) -> object:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


SLOW = ("channels.md", "models.md", "reward.md", "tutorial.md")  # They train more than one thing.


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else [], id=page.name)
        for page in PAGES
        if blocks(page)
    ],
)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Each page is one script, as a reader would run it: no strictness but Python's own.
    import jax

    monkeypatch.chdir(tmp_path)
    jax.config.update("jax_numpy_rank_promotion", "allow")
    jax.config.update("jax_numpy_dtype_promotion", "standard")
    try:
        namespace: dict[str, object] = {"__name__": page.stem}
        for block in blocks(page):
            exec(compile(block, str(page), "exec"), namespace)
    finally:
        jax.config.update("jax_numpy_rank_promotion", "raise")
        jax.config.update("jax_numpy_dtype_promotion", "strict")


def test_pages_have_code():
    assert {page.name for page in PAGES if blocks(page)} >= {
        "README.md",
        "worlds.md",
        "judges.md",
        "tutorial.md",
        "extending.md",
    }


def commands(page: Path) -> list[str]:
    """The lines of the page's blocks that call `empower`, joined where they go on."""
    text = page.read_text(encoding="utf-8")
    shell = "".join(re.findall(r"```(?:bash|text)\n(.*?)```", text, re.DOTALL))
    return re.findall(r"^(?:[A-Z]\w+=\S+ +)*empower (.+)", shell.replace("\\\n", " "), re.MULTILINE)


def test_commands_are_understood():
    assert {page.name for page in PAGES if commands(page)} >= {"README.md", "index.md"}
    for page in PAGES:
        for command in commands(page):
            name, *arguments = shlex.split(command, comments=True)
            try:
                cli._parse(name, arguments)
            except SystemExit:
                pytest.fail(f"{page.name} has a command that is refused: empower {command}")


@pytest.mark.parametrize(("equation", "path"), paper_map())
def test_mapped_function_names_its_equation(equation: str, path: str):
    assert equation in (resolve(path).__doc__ or "")


def test_every_cited_equation_is_mapped():
    cited = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                cited |= set(re.findall(r"\((eq:\w+)\)", ast.get_docstring(node) or ""))
    assert cited
    assert cited <= {equation for equation, _ in paper_map()}


def test_links_between_pages_hold():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
