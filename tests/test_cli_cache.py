"""Compiled programs from one command to the next."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from empowerment import cache
from empowerment.cli import main

WORDS = ["landscape", "pendulum", "--estimator", "gaussian", "--steps", "2", "--grid", "2x2"]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a cache of its own."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XDG_"))}
    return subprocess.run(
        [sys.executable, "-m", "empowerment.cli", *WORDS, *words],
        env={**settings, "XDG_CACHE_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )


def programs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*-cache")}


def test_programs_are_kept_and_found_again_with_the_same_result(tmp_path: Path):
    first = run(tmp_path)
    kept = programs(tmp_path)
    assert len(kept) > 3
    assert (tmp_path / "empowerment" / "xla").is_dir()
    assert run(tmp_path).stdout == first.stdout
    assert programs(tmp_path) == kept  # Nothing was compiled that was not there.
    other = tmp_path / "other"
    assert run(other, "--no-cache").stdout == first.stdout
    assert not (other / "empowerment").exists()
    # Damaged programs are compiled anew.
    for path in tmp_path.rglob("*-cache"):
        path.write_bytes(path.read_bytes()[:50])
    damaged = run(tmp_path)
    assert damaged.stdout == first.stdout
    assert "Traceback" not in damaged.stderr


def test_a_cache_that_cannot_be_written_to_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    main(["worlds"])
    assert "it takes longer" in capsys.readouterr().err
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_the_users_own_place_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache.use_cache()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "own")
    assert not (tmp_path / "cache").exists()


def test_what_was_not_used_for_longest_is_removed(tmp_path: Path):
    for age, name in enumerate(("new", "older", "oldest")):
        path = tmp_path / "some" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    cache.limit_size(tmp_path, 250)
    assert {path.name for path in (tmp_path / "some").iterdir()} == {"new", "older"}
    cache.limit_size(tmp_path, 250)
    assert {path.name for path in (tmp_path / "some").iterdir()} == {"new", "older"}


def test_other_cores_have_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = cache.cache_folder()
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(99)))
    assert cache.cache_folder() != here
