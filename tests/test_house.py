"""What keeps the house in order: layers, names, docstrings, the lock and the doors to CI."""

import ast
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import empowerment

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "empowerment"
FILES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 320

LAYERS = (  # Each imports only what comes before it, and none of its own line
    ("errors", "types", "files", "settings", "cache", "cluster", "devices"),
    ("storage", "packing", "processes"),
    ("distributions",),
    ("networks",),
    ("optimise",),
    ("worlds",),
    ("environments",),
    ("data",),
    ("model", "capacity"),
    ("channel",),
    ("policy",),
    ("controller",),
    ("agent",),
    ("report",),
    ("systems",),
    ("landscapes", "gallery"),
    ("runs",),
    ("sweep",),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def part_of(path: Path) -> str:
    """The part of the package a file is of."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(tree: ast.AST, path: Path) -> set[str]:
    """The parts of the package that a file imports, anywhere in it."""
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            modules = [module]
            if module == "empowerment":
                modules = [f"empowerment.{alias.name}" for alias in node.names]
        else:
            continue
        parts |= {name.split(".")[1] for name in modules if name.startswith("empowerment.")}
        assert "empowerment" not in modules, f"{path}: import the part, not the whole"
    return parts


def complaints(part: str, imported: set[str]) -> list[str]:
    """What is wrong with a part that imports others."""
    others = imported - {part}
    return [other for other in sorted(others) if LEVEL[other] >= LEVEL[part]]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path: Path):
    part = part_of(path)
    if part == "__init__":
        return
    assert part in LEVEL, f"give {part} a place in LAYERS and in docs/design.md"
    assert complaints(part, imported_parts(ast.parse(path.read_text()), path)) == []


@pytest.mark.parametrize(
    ("part", "line", "wrong"),
    [
        ("capacity", "from empowerment.channel import bound", ["channel"]),
        ("worlds", "import empowerment.capacity.exact", ["capacity"]),
        ("model", "def f():\n    from empowerment.capacity import exact", ["capacity"]),
        ("report", "from empowerment import runs", ["runs"]),
        ("runs", "from empowerment.report import Landscape", []),
        ("capacity", "from empowerment.capacity.polygons import thin", []),
    ],
)
def test_wrong_imports_are_seen(part: str, line: str, wrong: list[str]):
    assert complaints(part, imported_parts(ast.parse(line), Path("planted"))) == wrong


def modules() -> list[ModuleType]:
    names = [info.name for info in pkgutil.walk_packages(empowerment.__path__, "empowerment.")]
    return [empowerment, *map(importlib.import_module, names)]


def test_public_names_exist_and_say_what_they_are():
    assert len(empowerment.__all__) <= 50
    for name in empowerment.__all__:
        public = getattr(empowerment, name)
        is_documented = inspect.isclass(public) or inspect.isroutine(public)
        assert not is_documented or inspect.getdoc(public), name


def test_the_type_checker_knows_the_public_names():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    imported = {
        (alias.name, (node.module or "").removeprefix("empowerment."))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("empowerment.")
        for alias in node.names
    }
    assert imported == set(empowerment._PUBLIC.items())
    assert (SOURCE / "py.typed").exists()


def test_modules_say_what_they_are_and_keep_what_they_promise():
    for module in modules():
        assert module.__doc__, module.__name__
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.{name}"


FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


def dangers(tree: ast.AST) -> list[str]:
    """Pickles, evaluated text, excepts without a name, and hidden pickles of NumPy."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] if str(node.module).split(".")[0] in FORBIDDEN_MODULES else []
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append("bare except")
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
                found.append(node.func.id)
            found += [k.arg for k in node.keywords if k.arg == "allow_pickle"]
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_dangerous_and_nothing_too_long(path: Path):
    text = path.read_text()
    assert dangers(ast.parse(text)) == []
    assert len(text.splitlines()) <= MAX_LINES, "a file that long is asking to be split"


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "eval('1')",
        "np.load(path, allow_pickle=True)",
        "try:\n    pass\nexcept:\n    pass",
    ],
)
def test_dangers_are_seen(line: str):
    assert len(dangers(ast.parse(line))) == 1


def test_every_locked_package_has_a_hash_and_no_address():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert "--index-url" not in text
    requirements = text.replace("\\\n", " ").strip().splitlines()
    assert len(requirements) > 20
    for requirement in requirements:
        assert re.match(r"[\w.\-\[\],]+==\S+ ", requirement), requirement[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", requirement), requirement[:80]


def test_ci_runs_what_people_run():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text().splitlines()
    assert "make test" in lines
    assert any(line.startswith("set -euo pipefail") for line in lines)


def test_every_door_is_there_and_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    doors = dict(re.findall(r"^([a-z]+):.*## (.+)$", makefile, flags=re.MULTILINE))
    wanted = "setup demo test lint type check docs bench reproduce"
    assert set(wanted.split()) <= set(doors)
    assert re.search(r"^test:.*\blint\b.*\btype\b.*\bunit\b", makefile, flags=re.MULTILINE)


def test_public_names_come_when_they_are_used():
    assert set(empowerment.__all__) <= set(dir(empowerment))
    assert empowerment.controller.__name__ == "empowerment.controller"
    with pytest.raises(AttributeError, match="has no attribute 'emergency'"):
        _ = empowerment.emergency  # pyright: ignore[reportAttributeAccessIssue]


SYSTEM_NAMES = re.compile(r"pendulum|bipedal|biped|\bballs?\b|Ball-v0|walker", re.IGNORECASE)
GENERIC = ("agent", "report", "landscapes", "gallery", "runs", "sweep", "cli")
DATA = ("runs/presets.py",)  # Presets are data: that is where systems are chosen.


def system_names(tree: ast.AST) -> list[str]:
    """Names of particular systems in code: identifiers and strings, but not documentation."""
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in documentation else node.value
        elif isinstance(node, ast.Name):
            text = node.id
        elif isinstance(node, ast.Attribute):
            text = node.attr
        elif isinstance(node, ast.alias):
            text = node.name
        else:
            continue
        found += SYSTEM_NAMES.findall(text)
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_generic_code_names_no_particular_system(path: Path):
    if part_of(path) not in GENERIC or name_of(path) in DATA:
        return
    found = system_names(ast.parse(path.read_text()))
    if name_of(path) == "cli/__init__.py":
        found = [name for name in found if name != "pendulum"]  # the example in the help
    assert found == []


@pytest.mark.parametrize(
    "line", ["if env == 'BipedalWalker-v3': pass", "Pendulum()", "from x import ball", "a.balls"]
)
def test_named_systems_are_seen(line: str):
    assert system_names(ast.parse(line))


OLD_WORDS = re.compile(r'"""(Give|Say|Tell) ')


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_docstrings_speak_the_language_of_the_field(path: Path):
    assert OLD_WORDS.findall(path.read_text()) == []
