"""Logs of every format: the same numbers from each, and one sentence for those that are damaged."""

import dataclasses
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import pytest
from benchmarks.log_writers import RATE, WRITERS, Source, columns
from pyarrow import parquet
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_idl, get_typestore

from empowerment.cli import main
from empowerment.data import READERS, Episode, LogOptions, Trajectories, check, read_log, summarise
from empowerment.data.readers import format_of
from empowerment.data.readers.rosbag import read_rosbag
from empowerment.data.spaces import numbered_spaces

LENGTHS = (12, 5, 9)


def build() -> Trajectories:
    """Return three episodes of numbers of single precision; the second one terminates."""
    random = np.random.default_rng(7)
    episodes = tuple(
        Episode(
            random.normal(size=(length + 1, 2)),
            random.normal(size=(length, 1)),
            terminated=index == 1,
            truncated=index != 1,
            rewards=random.normal(size=length),
        )
        for index, length in enumerate(LENGTHS)
    )
    return Trajectories(episodes, numbered_spaces(2, 1), {"interval": 1 / RATE})


DATA = build()

Write = Callable[[str], Source]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Source]]:
    """Good logs of every format, to be copied."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", "set by the writer, and undone here")
        for name, write_log in WRITERS.items():
            folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
            found[name] = folder, write_log(DATA, folder)
    return found


@pytest.fixture
def written(originals: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Copy the log of a format."""

    def copy(name: str) -> Source:
        folder, (source, options) = originals[name]
        shutil.copytree(folder, tmp_path / "log")
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "log" / "minari"))
        return source.replace(str(folder), str(tmp_path / "log")), options

    return copy


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_episodes(written: Write, tmp_path: Path, name: str):
    source, options = written(name)
    assert format_of(source) == name.split()[0]
    found = read_log(source, options)
    check(found)
    assert [each.length for each in found.episodes] == list(LENGTHS)
    for ours, theirs in zip(DATA.episodes, found.episodes, strict=True):
        np.testing.assert_allclose(theirs.observations, ours.observations, atol=1e-5)
        np.testing.assert_allclose(theirs.actions, ours.actions, atol=1e-6)
    if "rosbag2" not in name:  # Those are resampled.
        np.testing.assert_allclose(found.rewards, DATA.rewards, atol=1e-6)
    says_ends = "lerobot" not in name and "rosbag2" not in name
    terminated = [each.terminated and says_ends for each in DATA.episodes]
    assert [each.terminated for each in found.episodes] == terminated
    if name != "minari":
        assert found.about["interval"] == pytest.approx(1 / RATE)
    found.save(tmp_path / "again.npz")
    assert Trajectories.load(tmp_path / "again.npz").has_same_numbers(found)


def test_rewards_of_a_log_that_is_resampled_are_left_out(written: Write):
    source, options = written("csv")
    found = read_log(source, dataclasses.replace(options, rate=RATE / 2))
    assert not found.has_rewards
    assert "the reward, as the log is resampled, is ignored" in summarise(found).notes


def test_every_reader_has_a_writer():
    assert {name.split()[0] for name in WRITERS} == set(READERS)


def test_lerobot_says_limits_axes_and_what_it_ignores(written: Write):
    source, _ = written("lerobot v3.0")
    found = read_log(source, LogOptions(observations="observation.state.1"))
    assert found.spaces.observation_names == ("observation.state.1",)
    actions = np.concatenate([columns([each])["u0"] for each in DATA.episodes])
    assert found.spaces.action_low == np.float32(actions.min())
    assert found.spaces.action_high == np.float32(actions.max())
    assert "observation.images.top (video) is ignored" in summarise(found).notes
    limited = read_log(source, LogOptions(limits="-9:9"))
    assert (limited.spaces.action_low, limited.spaces.action_high) == (-9, 9)


def test_hdf5_without_next_observations_marks_no_state_as_terminal(written: Write):
    source, options = written("hdf5")
    with h5py.File(source, "a") as file:
        del file["next_observations"]
    found = read_log(source, options)
    assert [each.length for each in found.episodes] == [length - 1 for length in LENGTHS]
    assert not any(each.terminated for each in found.episodes)
    assert any("1 terminal states were not logged" in note for note in summarise(found).notes)


def change_csv(line: int, text: str) -> Callable[[str], None]:
    def change(source: str) -> None:
        lines = Path(source).read_text().splitlines()
        lines[line] = text
        Path(source).write_text("\n".join(lines))

    return change


def change_parquet(**changes: Any) -> Callable[[str], None]:
    def change(source: str) -> None:
        table = parquet.read_table(source)
        for name, values in changes.items():
            place = table.schema.get_field_index(name)
            given = values(table.num_rows) if callable(values) else values
            table = table.set_column(place, name, pyarrow.array(given))
        parquet.write_table(table, source)

    return change


def change_hdf5(name: str, values: Any) -> Callable[[str], None]:
    def change(source: str) -> None:
        with h5py.File(source, "a") as file:
            del file[name]
            if values is not None:
                file[name] = values

    return change


def change_json(name: str, edit: Callable[[dict], Any]) -> Callable[[str], None]:
    def change(source: str) -> None:
        path = Path(source) / "meta" / name
        content = json.loads(path.read_text())
        edit(content)
        path.write_text(json.dumps(content))

    return change


def write(name: str, text: str) -> Callable[[str], None]:
    def change(source: str) -> None:
        (Path(source) / name).write_text(text)

    return change


def truncate(pattern: str, share: float = 0.6) -> Callable[[str], None]:
    def change(source: str) -> None:
        path = Path(source) if pattern == "." else sorted(Path(source).glob(pattern))[0]
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])

    return change


def remove(pattern: str) -> Callable[[str], None]:
    return lambda source: sorted(Path(source).glob(pattern))[0].unlink()


def nothing(source: str) -> None:
    """Leave the log as it is."""


BIG = "1" + "0" * 400
FILES = "data/chunk-*/*.parquet"

HOSTILE: list[tuple[str, Callable[[str], None], dict[str, Any], str]] = [
    # Format, what is done to a good log, options that are changed, and what the sentence says
    ("csv", change_csv(3, "nan,1,1,0,0.04,0"), {}, "x0 has 1 numbers that are not finite"),
    ("csv", change_csv(3, f"{BIG},1,1,0,0.04,0"), {}, "not finite"),
    ("csv", change_csv(3, "1,1,1,0,0.02,0"), {}, "times to increase; row 2 repeats 0.02 s"),
    ("csv", change_csv(3, "1,1,1,0,0.01,0"), {}, "row 2 goes back to 0.01 s from 0.02 s"),
    ("csv", change_csv(3, "1,1,1,0,nan,0"), {}, "times to be finite, below 1e.12 s; row 2 has nan"),
    ("csv", change_csv(3, "a,1,1,0,0.04,0"), {}, "to be a number; got 'a' in line 4"),
    ("csv", change_csv(3, "1,1,1,0,0.04,7"), {}, "to be 0 or 1; got '7' in line 4"),
    ("csv", change_csv(3, "1,1,1,5,0.04,0"), {}, "rows of an episode to be together"),
    ("csv", truncate(".", 0.0), {}, "missing from an empty file"),
    ("csv", nothing, {"observations": "x9"}, "x9 is missing from"),
    ("csv", nothing, {"observations": "x0,x0"}, "observation_names to be one or more different"),
    ("csv", nothing, {"rate": -1.0}, "--rate to be positive"),
    ("csv", nothing, {"rate": 50.0, "time": None}, "Name their column by --time"),
    ("csv", nothing, {"delay": "soon"}, "--delay to be auto or seconds"),
    ("csv", nothing, {"limits": "1:-1"}, "each with LOW below HIGH"),
    ("csv", nothing, {"limits": "1"}, "LOW:HIGH for each action"),
    ("csv", nothing, {"limits": "-1e-6:1e-6"}, "numbers beyond its limits"),
    ("csv", nothing, {"format": "bvh"}, "the format to be one of npz, csv"),
    ("parquet", change_parquet(u0=np.ones), {}, "actions in .* to vary; u0 is always 1"),
    ("parquet", change_parquet(x0=np.ones, x1=np.ones), {}, "x0 is always 1"),
    ("parquet", change_parquet(u0=lambda n: ["a"] * n), {}, "column u0 .*; got the type string"),
    ("parquet", change_parquet(u0=lambda n: [[1.0]] * n), {}, "got the type list"),
    ("parquet", change_parquet(u0=lambda n: [{"a": 1}] * n), {}, "got the type struct"),
    ("parquet", change_parquet(u0=lambda n: [1e300] * (n - 1) + [1.0]), {}, "not finite|vary"),
    ("parquet", change_parquet(run=np.arange), {}, "an episode to have two rows or more"),
    ("parquet", change_parquet(run=lambda n: [None] + ["a"] * (n - 1)), {}, "with 1 empty"),
    ("parquet", change_parquet(run=lambda n: [{"a": 1}] * n), {}, "to have text or a whole number"),
    ("csv", nothing, {"rate": 1e12}, "at most 10000000 rows at 1e.12 Hz"),
    ("csv", change_csv(3, "1,1,1,0,1e308,0"), {}, "finite, below 1e.12 s; row 2 has 1e.308"),
    ("parquet", truncate("."), {}, "to be a table of numbers"),
    ("hdf5", change_hdf5("actions", np.zeros((3, 1))), {}, "a row for each of 26 .*; got 3"),
    ("hdf5", change_hdf5("actions", None), {}, "to have actions, as D4RL's files do"),
    ("hdf5", change_hdf5("actions", ["a"] * 26), {}, "to be numbers with 2 axes; got the type obj"),
    ("hdf5", change_hdf5("actions", h5py.ExternalLink("x.h5", "a")), {}, "in the file itself"),
    ("hdf5", change_hdf5("terminals", np.zeros((26, 2))), {}, "numbers with 1 axes"),
    ("hdf5", change_hdf5("next_observations", np.zeros((26, 1))), {}, "the shape of observations"),
    ("hdf5", truncate("."), {}, "to be an HDF5 file"),
    ("hdf5", nothing, {"rate": 5.0}, "--rate for a log of the format csv"),
    ("lerobot v3.0", truncate("meta/info.json"), {}, "description of a LeRobot dataset"),
    ("lerobot v3.0", truncate(FILES), {}, "a file of a LeRobot dataset"),
    ("lerobot v3.0", remove(FILES), {}, "as many as meta/info.json says, 29; its files have"),
    ("lerobot v3.0", write("meta/stats.json", '{"action": {}}'), {}, "the min of each axis"),
    ("lerobot v3.0", write("meta/stats.json", f'{{"a": {BIG}}}'), {}, "the min of each axis"),
    ("lerobot v3.0", write("meta/stats.json", '{"a": 1e400}'), {}, "a number out of range"),
    (
        "lerobot v3.0",
        change_json("info.json", lambda info: info["features"]["action"].update(shape=[3])),
        {},
        "every row of action in .* to have 3 numbers",
    ),
    (
        "lerobot v3.0",
        change_json("info.json", lambda info: info.update(codebase_version="v9")),
        {},
        "of version 2 or 3; got 'v9'",
    ),
    (
        "lerobot v3.0",
        change_json("info.json", lambda info: info.update(total_frames=10**15)),
        {},
        "at most 4294967296 bytes",
    ),
    ("lerobot v3.0", nothing, {"actions": "hand"}, "it has observation.state, action, timestamp"),
    ("lerobot v3.0", nothing, {"actions": "action.x"}, "to have the axis x; it has 0"),
    ("lerobot v2.1", remove(FILES), {}, "its files have 16"),
    ("lerobot v2.1", write("meta/episodes_stats.jsonl", "{"), {}, "statistics of a LeRobot"),
    ("rosbag2 mcap", truncate("*.mcap"), {}, "to be a bag of ROS 2"),
    ("rosbag2 mcap", truncate("metadata.yaml"), {}, "to be a bag of ROS 2"),
    ("rosbag2 mcap", remove("*.mcap"), {}, "to be a bag of ROS 2"),
    ("rosbag2 sqlite3", truncate("*.db3", 0.3), {}, "to be a bag of ROS 2"),
    ("rosbag2 mcap", nothing, {"actions": None}, "Name them by --observations and --actions"),
    ("rosbag2 mcap", nothing, {"actions": "/c.data"}, "the topic /c; it has /commands, /joint"),
    ("rosbag2 mcap", nothing, {"actions": "/commands.x"}, "no x in it, but layout, data"),
    ("rosbag2 mcap", nothing, {"actions": "/joint_states.name"}, "something else .* than numbers"),
    ("rosbag2 mcap", nothing, {"actions": "/joint_states.effort"}, "to have numbers; got none"),
    ("rosbag2 mcap", nothing, {"actions": "/commands.data.4"}, "1 numbers and no number 4"),
    ("rosbag2 mcap", nothing, {"rate": 1e-3}, "observations and actions for at least 1e.03 s"),
    ("minari", nothing, {"actions": "a"}, "--actions for a log of the format csv or parquet"),
]


@pytest.mark.parametrize(("name", "change", "options", "what"), HOSTILE)
def test_a_hostile_log_is_one_sentence_and_writes_nothing(
    written: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    change: Callable[[str], None],
    options: dict[str, Any],
    what: str,
):
    source, given = written(name)
    change(source)
    out = tmp_path / "out" / "log.npz"
    words = [
        f"--{key}={value}"
        for key, value in dataclasses.asdict(dataclasses.replace(given, **options)).items()
        if value is not None
    ]
    with pytest.raises(SystemExit) as stop:
        main(["data", source, *words, "--out", str(out), "--json"])
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert re.search(what, told), told
    assert not out.exists()
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("share", [0.02, 0.35, 0.97, 0.999])
@pytest.mark.parametrize("name", ["parquet", "hdf5", "rosbag2 mcap", "rosbag2 sqlite3"])
def test_files_cut_anywhere_are_refused_or_whole(written: Write, name: str, share: float):
    source, options = written(name)
    path = Path(source)
    if path.is_dir():
        path = next(each for each in path.iterdir() if each.suffix in (".mcap", ".db3"))
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"^Expected"):
        read_log(source, options)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "hdf5", "mcap", "db3", "npz"])
def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path, suffix: str):
    pipe = tmp_path / f"log.{suffix}"
    os.mkfifo(pipe)
    options = (
        LogOptions() if suffix in ("hdf5", "npz") else LogOptions(observations="a", actions="b")
    )
    with pytest.raises(ValueError, match="a regular file; got a pipe"):
        read_log(pipe, options)


def test_a_folder_of_neither_kind_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match=r"a LeRobot dataset, with meta/info.json, or a bag"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("pyarrow.parquet", "parquet"),
        ("pyarrow.parquet", "lerobot v3.0"),
        ("h5py", "hdf5"),
        ("rosbags.rosbag2", "rosbag2 mcap"),
        ("minari", "minari"),
    ],
)
def test_what_is_not_installed_is_named(
    written: Write, monkeypatch: pytest.MonkeyPatch, module: str, name: str
):
    source, options = written(name)
    monkeypatch.setitem(sys.modules, module, None)
    package = module.split(".")[0]
    with pytest.raises(ValueError, match=rf"Expected {package} to be .*empowerment\[readers\]"):
        read_log(source, options)


def test_a_bag_is_found_in_its_folder_without_metadata(written: Write, tmp_path: Path):
    source, options = written("rosbag2 mcap")
    (Path(source) / "metadata.yaml").unlink()
    assert len(read_log(source, options).episodes) == len(LENGTHS)
    shutil.copy(next(Path(source).glob("*.mcap")), tmp_path / "one.mcap")
    assert len(read_log(tmp_path / "one.mcap", options).episodes) == len(LENGTHS)


def test_messages_that_are_defined_by_idl_are_read(tmp_path: Path):
    text = "module mine { module msg { struct Pair { string label; double x; float y[2]; }; }; };"
    types = get_typestore(Stores.ROS2_HUMBLE)
    types.register(get_types_from_idl(text))
    name = "mine/msg/Pair"
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        definition = f"{'=' * 80}\nIDL: {name}\n{text}\n"
        topic = writer.add_connection("/p", name, msgdef=definition, rihs01="RIHS01_" + "0" * 64)
        for row in range(9):
            values = np.array([row, 2 * row], np.float32)
            message = types.types[name]("l" * row, float(-row), values)
            writer.write(topic, row * 10**8, types.serialize_cdr(message, name))
    data = read_log(tmp_path / "bag", LogOptions(observations="/p.y", actions="/p.x"))
    np.testing.assert_allclose(data.episodes[0].observations[:, 1], 2 * np.arange(9), atol=1e-5)
    np.testing.assert_array_equal(data.episodes[0].actions[:, 0], -np.arange(8.0))
    with pytest.raises(ValueError, match=r"to have at most 100 bytes; got 112"):
        read_rosbag(
            str(tmp_path / "bag"), LogOptions(observations="/p.y", actions="/p.y"), max_bytes=100
        )
