"""Run folders in which files are damaged, lost, of another kind, or left over by a kill."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.optimise import Callback, Snapshot, TrainingState
from empowerment.runs.folder import Run, hashes, open_run, read_manifest
from empowerment.runs.stage import RunHooks

LIKE = {"a": np.zeros(3, np.float32)}
STATE = TrainingState(LIKE, (), jnp.array(0), jax.random.key(0))
HISTORY = [(100, {"bound": 0.25}), (200, {"bound": 1e-7})]


def with_checkpoints(run: Run) -> Path:
    """Save two checkpoints; return the file of the newer one."""
    for count in (1, 2):
        about = {"history": HISTORY[:count], "total": 700, "stopped": ""}
        run.save_checkpoint("policy", count, {"a": LIKE["a"] + count}, about)
    return run.folder / "checkpoints" / "policy-0000002.safetensors"


def test_no_flipped_bit_of_a_checkpoint_goes_unnoticed(tmp_path: Path):
    with open_run(tmp_path / "run", {}, resume=False, log=lambda sentence: None) as run:
        path = with_checkpoints(run)
        newest = run.load_checkpoint("policy", LIKE)
        assert newest is not None
        whole = {file: file.read_bytes() for file in (path, path.with_suffix(".json"))}
        num_noticed = 0
        for file, data in whole.items():
            for place in range(len(data)):
                damaged = bytearray(data)
                damaged[place] ^= 1 << (place % 8)
                file.write_bytes(damaged)
                found = run.load_checkpoint("policy", LIKE)
                assert found is not None
                if found[1] != newest[1]:  # Else it was a space between two words.
                    num_noticed += 1
                    assert found[1]["history"] == [[100, {"bound": 0.25}]]
                    np.testing.assert_array_equal(found[0]["a"], 1)
                for each, kept in whole.items():
                    each.write_bytes(kept)
        assert num_noticed > 0.5 * sum(map(len, whole.values()))


def empty_folder(path: Path) -> None:
    path.mkdir()


def full_folder(path: Path) -> None:
    path.mkdir()
    (path / "note.txt").write_text("mine")


@pytest.mark.parametrize("ending", [".safetensors", ".json"])
@pytest.mark.parametrize("make", [empty_folder, full_folder, os.mkfifo, lambda path: None])
def test_what_is_no_file_is_no_checkpoint(tmp_path: Path, ending: str, make: Callable[[Path], Any]):
    said: list[str] = []
    with open_run(tmp_path / "run", {}, resume=False, log=said.append) as run:
        path = with_checkpoints(run).with_suffix(ending)
        path.unlink()
        make(path)
        found = run.load_checkpoint("policy", LIKE)
        assert found is not None
        np.testing.assert_array_equal(found[0]["a"], 1)
        assert with_checkpoints(run).is_file()  # Training comes there again.
    assert all("Trying the one before" in sentence for sentence in said)
    if make is full_folder:
        assert (path.with_name(f"{path.name}.aside") / "note.txt").read_text() == "mine"


def test_other_names_among_checkpoints_are_left_alone(tmp_path: Path):
    with open_run(tmp_path / "run", {}, resume=False, log=print) as run:
        path = with_checkpoints(run)
        other = path.with_name("policy-old.json")
        other.write_text("{}")
        run.remove_checkpoints("policy")
    assert [each.name for each in path.parent.iterdir()] == [other.name]


def test_temporary_files_of_kills_are_removed_and_nothing_else(tmp_path: Path):
    folder = tmp_path / "run"
    with open_run(folder, {}, resume=False, log=print) as run:
        with_checkpoints(run)
    before = sorted(folder.rglob("*"))
    ours = [".manifest.json.abcd_123.tmp", "checkpoints/.policy-0000003.safetensors.00000000.tmp"]
    theirs = [".notes.tmp", "abc.12345678.tmp", ".vimrc", ".my.json.longer-than-that.tmp"]
    for name in (*ours, *theirs):
        (folder / name).write_text("half")
    with open_run(folder, {}, resume=True, log=print):
        pass
    assert sorted(folder.rglob("*")) == sorted([*before, *(folder / name for name in theirs)])


def test_a_temporary_file_of_a_kill_has_such_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What a kill between writing and renaming leaves is what resuming removes."""

    class Killed(BaseException):
        pass

    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    folder = tmp_path / "run"
    with open_run(folder, {}, resume=False, log=print) as run:
        monkeypatch.setattr(Path, "replace", kill)
        monkeypatch.setattr(Path, "unlink", kill)
        with pytest.raises(Killed):
            run.write_manifest(finished=True)
        monkeypatch.undo()
    assert len(list(folder.iterdir())) == 3
    with open_run(folder, {}, resume=True, log=print):
        pass
    assert {path.name for path in folder.iterdir()} == {".lock", "manifest.json"}


def test_a_lock_that_is_a_pipe_does_not_block(tmp_path: Path):
    os.mkfifo(tmp_path / ".lock")
    with (
        open_run(tmp_path, {}, resume=False, log=print),
        pytest.raises(ValueError, match="another process is writing"),
        open_run(tmp_path, {}, resume=True, log=print),
    ):
        pass


@pytest.mark.parametrize("resume", [False, True])
def test_results_without_a_manifest_are_not_taken_for_ones_own(tmp_path: Path, resume: bool):  # noqa: FBT001
    with open_run(tmp_path, {"seed": 1}, resume=False, log=print) as run:
        train_rounds(run)
    (tmp_path / "manifest.json").unlink()
    with (
        pytest.raises(ValueError, match=r"it has results, but no manifest\.json"),
        open_run(tmp_path, {"seed": 2}, resume=resume, log=print),
    ):
        pass


def train_rounds(run: Run) -> list[str]:
    """Two rounds of three stages, the second of which has no history; return what was trained."""
    trained = []
    for number in range(2):
        hooks = RunHooks(run, number, lambda *words: None, lambda stage, at: "")
        for index, stage in enumerate(("model", "surrogate", "policy")):
            result = {"a": LIKE["a"] + 10 * number + index}

            def train(
                callback: Callback, stage: str = stage, number: int = number, result: Any = result
            ) -> tuple[Any, dict[str, Any]]:
                trained.append(f"{stage} {number}")
                if stage == "surrogate":
                    return result, {"error": 0.5}
                at = callback.resume(Snapshot(STATE, [], 200))
                for count in range(len(at.history), len(HISTORY)):
                    at = Snapshot(at.state, HISTORY[: count + 1], 200)
                    callback.on_update(at)
                return result, {"history": at.history}

            np.testing.assert_array_equal(hooks.stage(stage, LIKE, train)["a"], result["a"])
    run.write_manifest(finished=True)
    return trained


ALL = [f"{stage} {number}" for number in range(2) for stage in ("model", "surrogate", "policy")]


@pytest.mark.parametrize(
    ("lost", "made"),
    [
        ("model.safetensors", ["model 0"]),
        ("model.json", ["model 0"]),
        ("surrogate.safetensors", ["surrogate 0"]),
        ("policy.safetensors", ["policy 0"]),
        ("policy-1.safetensors", ["policy 1"]),
        ("metrics.jsonl", []),
        (None, []),
    ],
)
def test_what_was_lost_is_made_again_to_the_same_bits(
    tmp_path: Path, lost: str | None, made: list[str]
):
    with open_run(tmp_path, {}, resume=False, log=print) as run:
        assert train_rounds(run) == ALL
    before = hashes(tmp_path)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 8
    if lost is not None:
        (tmp_path / lost).unlink()
    with open_run(tmp_path, {}, resume=True, log=print) as run:
        assert train_rounds(run) == made
    assert hashes(tmp_path) == before


@pytest.mark.parametrize("line", ["", "{", "[1]", '{"stage": "model"}', "\x00"])
def test_damaged_metrics_are_written_again(tmp_path: Path, line: str):
    with open_run(tmp_path, {}, resume=False, log=print) as run:
        train_rounds(run)
    before = hashes(tmp_path)
    path = tmp_path / "metrics.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, *lines[2:], lines[0][:20]]))
    with open_run(tmp_path, {}, resume=True, log=print) as run:
        assert train_rounds(run) == []
    assert hashes(tmp_path) == before


@pytest.mark.parametrize("name", ["policy.safetensors", "policy.json"])
def test_a_result_that_cannot_be_written_is_noticed_before_the_training(tmp_path: Path, name: str):
    def train(callback: Callback) -> tuple[Any, dict[str, Any]]:
        raise AssertionError

    with open_run(tmp_path, {}, resume=False, log=print) as run:
        (tmp_path / name).mkdir()
        hooks = RunHooks(run, 0, lambda *words: None, lambda stage, at: "")
        with pytest.raises(IsADirectoryError, match=f"{name} to be a file; got a directory"):
            hooks.stage("policy", LIKE, train)


def test_a_damaged_result_is_not_gone_on_with(tmp_path: Path):
    with open_run(tmp_path, {}, resume=False, log=print) as run:
        train_rounds(run)
    path = tmp_path / "model.json"
    path.write_text(path.read_text().replace("0.25", "0.75"))
    with (
        open_run(tmp_path, {}, resume=True, log=print) as run,
        pytest.raises(ValueError, match="SHA-256 differs"),
    ):
        train_rounds(run)


def test_no_bit_of_a_manifest_can_flip_unnoticed(tmp_path: Path):
    with open_run(tmp_path, {"seed": 2, "rate": 0.1}, resume=False, log=print) as run:
        run.write_manifest(finished=True)
    path = tmp_path / "manifest.json"
    written = path.read_bytes()
    assert read_manifest(tmp_path)["settings"] == {"seed": 2, "rate": 0.1}
    first_line = [(place, bit) for place in range(60) for bit in range(8)]
    for place, bit in [*first_line, *((place, place % 8) for place in range(len(written)))]:
        flipped = bytearray(written)
        flipped[place] ^= 1 << bit
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"manifest\.json"):
            read_manifest(tmp_path)
