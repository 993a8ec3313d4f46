"""Check that the tests notice mistakes: each patch makes the tests that it names fail.

Run by `make mutants`. The patches are in `mutants.txt`: a name and a file below `src/empowerment`,
the tests, and whole lines to remove, to add and to keep. Each is applied to a copy of the source,
which the tests import.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATCHES = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True)
class Mutant:
    """A patch: whole lines of a file, what replaces them, and the tests that must notice."""

    name: str
    file: str
    tests: tuple[str, ...]
    old: str
    new: str


def parse(block: str) -> Mutant:
    header, *lines = block.splitlines()
    name, file = header.split()
    tests = tuple(line for line in lines if line.startswith("tests/"))
    old, new = (
        "".join(f"{line[1:]}\n" for line in lines if line[0] in signs) for signs in ("- ", "+ ")
    )
    return Mutant(name, file, tests, old, new)


@contextmanager
def copy_of_source() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="empowerment-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        yield source


def run(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a copy of the source before the installed one."""
    # Wide enough for pytest to print why a test failed.
    environment = os.environ | {"PYTHONPATH": str(source), "COLUMNS": "200"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def run_tests(source: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    options = ("-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "not slow")
    return run(source, "-m", "pytest", *options, *tests)


def check_unpatched(tests: tuple[str, ...]) -> str:
    """Return what is wrong without any patch; empty if the tests pass on the copy."""
    with copy_of_source() as source:
        imported = run(source, "-c", "import empowerment; print(empowerment.__file__)").stdout
        if not Path(imported.strip()).is_relative_to(source):
            return f"Expected the tests to import the copy of the source; got {imported.strip()}."
        done = run_tests(source, tests)
        return done.stdout + done.stderr if done.returncode else ""


def verdict(mutant: Mutant) -> tuple[str, str]:
    """Return what became of a mutant, and the line of the test run that shows it."""
    with copy_of_source() as source:
        file = source / "empowerment" / mutant.file
        text = f"\n{file.read_text()}" if file.exists() else ""
        if text.count(f"\n{mutant.old}") != 1:
            return "patch does not apply", mutant.file
        file.write_text(text.replace(f"\n{mutant.old}", f"\n{mutant.new}")[1:])
        done = run_tests(source, mutant.tests)
    lines = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode == 0:
        return "SURVIVED", lines[-1]
    failed = [line for line in lines if line.startswith("FAILED ")]
    return ("killed", failed[0]) if failed else ("tests do not run", lines[-1])


def main() -> int:
    blocks = PATCHES.read_text().strip().split("\n\n")
    mutants = {mutant.name: mutant for mutant in map(parse, blocks)}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only",
        metavar="NAME",
        nargs="+",
        choices=mutants,
        default=list(mutants),
        help=", ".join(mutants),
    )
    chosen = [mutants[name] for name in parser.parse_args().only]
    wrong = check_unpatched(tuple(sorted({test for mutant in chosen for test in mutant.tests})))
    if wrong:
        print(f"The tests do not pass without any patch.\n{wrong}")
        return 1
    num_killed = 0
    for mutant in chosen:
        start = time.perf_counter()
        word, line = verdict(mutant)
        num_killed += word == "killed"
        seconds = time.perf_counter() - start
        print(f"{mutant.name}: {word} in {seconds:.0f} s\n  {line}", flush=True)
    print(f"{num_killed} of {len(chosen)} killed")
    return int(num_killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
