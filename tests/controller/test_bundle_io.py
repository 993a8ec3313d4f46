"""The files of a controller: what is written is read, and nothing else is."""

import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controllers_for_tests import filter_bundle, pendulum_bundle, without_filter
from numpy.random import Generator
from safetensors.numpy import load, save

from empowerment.agent import to_bundle
from empowerment.controller import Controller, read_bundle, write_bundle
from empowerment.controller.bundle_io import MANIFEST, WEIGHTS
from empowerment.files import encode

FILTER = filter_bundle()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_bundle(FILTER, tmp_path / "run")
    return tmp_path / "run"


def test_what_is_written_is_read(folder: Path):
    found = read_bundle(folder)
    assert found.description == FILTER.description
    for name, array in FILTER.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
    assert {path.name for path in folder.iterdir()} == {MANIFEST, WEIGHTS}


def test_a_policy_is_written_with_what_it_is_for(tmp_path: Path, random: Generator):
    policy, world = without_filter(random)
    bundle = to_bundle(
        policy=policy,
        world=world,
        model=None,
        about={"experiment": "pendulum"},
        environment="empowerment/Pendulum-v0",
        interval=0.05,
    )
    write_bundle(bundle, tmp_path)
    about = Controller.load(tmp_path, engine="numpy").description
    assert about.observation_names == ("angle", "velocity")
    assert about.action_names == ("torque",)
    assert (about.low, about.high) == ((-2.0,), (2.0,))
    assert about.environment == "empowerment/Pendulum-v0"
    assert about.interval == 0.05
    assert about.angles == (0,)
    assert about.about == {"experiment": "pendulum"}
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert manifest["networks"] == {"policy": ["tanh", "tanh", "identity"]}


def change_weights(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change arrays and make the manifest fit, as someone who means harm would."""
    arrays = {name: array.copy() for name, array in load((folder / WEIGHTS).read_bytes()).items()}
    change(arrays)
    sign(folder, save(arrays))


def sign(folder: Path, data: bytes) -> None:
    (folder / WEIGHTS).write_bytes(data)
    change_manifest(folder, lambda m: m.update(bytes=len(data)))


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change fields, and the hash with them unless that is what is changed."""
    manifest = json.loads((folder / MANIFEST).read_text())
    written = manifest.pop("sha256")
    change(manifest)
    if "sha256" not in manifest:
        weights = (folder / WEIGHTS).read_bytes() if (folder / WEIGHTS).is_file() else b""
        manifest["sha256"] = hashlib.sha256(weights + encode(manifest)).hexdigest()
        assert len(manifest["sha256"]) == len(written)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def poke(name: str, value: float) -> Callable[[dict[str, Any]], object]:
    return lambda arrays: arrays[name].ravel().__setitem__(0, value)


def reshaped(name: str, *shape: int) -> Callable[[dict[str, Any]], object]:
    return lambda arrays: arrays.update({name: np.zeros(shape, np.float32)})


def outside(folder: Path, name: str) -> None:
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(folder.parent / name)


def huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # A hole: it takes no room on disk, but would in memory.


def header(length: int, rest: bytes = b"{}") -> bytes:
    return struct.pack("<Q", length) + rest


def lying_header(**entry: Any) -> bytes:
    text = json.dumps({"policy.0.bias": entry}).encode()
    return header(len(text), text + bytes(16))


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (
        lambda f: (f / MANIFEST).unlink(),
        r"controller.json to be a file; it cannot be read \(No such file",
    ),
    "no weights": (
        lambda f: (f / WEIGHTS).unlink(),
        "controller.safetensors to be a file; it cannot be read",
    ),
    "truncated weights": (
        lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-9]),
        "damaged or was replaced",
    ),
    "flipped bit": (lambda f: flip(f / WEIGHTS, -5), "SHA-256 differs"),
    "flipped bit in header": (lambda f: flip(f / WEIGHTS, 20), "SHA-256 differs"),
    "empty weights": (lambda f: sign(f, b""), "header of"),
    "few bytes": (lambda f: sign(f, b"1234567"), "header of"),
    "huge header": (lambda f: sign(f, header(2**63)), "header of"),
    "header beyond the end": (lambda f: sign(f, header(1000)), "header of"),
    "header is no json": (lambda f: sign(f, header(4, b"{{{{")), "to be a safetensors file"),
    "offsets beyond the end": (
        lambda f: sign(f, lying_header(dtype="F32", shape=[4], data_offsets=[0, 1 << 40])),
        "to be a safetensors file",
    ),
    "shape that overflows": (
        lambda f: sign(f, lying_header(dtype="F32", shape=[2**62, 8], data_offsets=[0, 16])),
        "to be a safetensors file",
    ),
    "negative shape": (
        lambda f: sign(f, lying_header(dtype="F32", shape=[-4], data_offsets=[0, 16])),
        "to be a safetensors file",
    ),
    "unknown type": (
        lambda f: sign(f, lying_header(dtype="F8_E4M3", shape=[16], data_offsets=[0, 16])),
        "Expected",
    ),
    "nan": (lambda f: change_weights(f, poke("policy.0.weight", np.nan)), "weights to be finite"),
    "infinite": (lambda f: change_weights(f, poke("start.0.bias", np.inf)), "weights to be finite"),
    "no scale": (
        lambda f: change_weights(f, poke("observations.scale", 0.0)),
        "observations.scale to be above zero",
    ),
    "other precision": (
        lambda f: change_weights(f, lambda a: a.update({"policy.0.bias": np.zeros(32)})),
        "in single precision",
    ),
    "wrong shape": (
        lambda f: change_weights(f, reshaped("policy.1.weight", 32, 31)),
        r"policy.1.weight to be in single precision and of shape \(32, 32\)",
    ),
    "wrong rank": (
        lambda f: change_weights(f, reshaped("policy.0.bias", 32, 1)),
        "in single precision and of shape",
    ),
    "one missing": (lambda f: change_weights(f, lambda a: a.pop("start.0.bias")), "start.0.bias"),
    "one too many": (lambda f: change_weights(f, reshaped("../../etc/passwd", 1)), "unexpected"),
    "weights are a link": (lambda f: outside(f, WEIGHTS), "it is a link"),
    "manifest is a link": (lambda f: outside(f, MANIFEST), "it is a link"),
    "weights are a pipe": (
        lambda f: ((f / WEIGHTS).unlink(), os.mkfifo(f / WEIGHTS)),
        "regular file|bytes, as",
    ),
    "weights are a folder": (
        lambda f: ((f / WEIGHTS).unlink(), (f / WEIGHTS).mkdir()),
        "regular file|cannot be read",
    ),
    "huge weights": (lambda f: huge(f / WEIGHTS), "to have at most"),
    "huge manifest": (lambda f: huge(f / MANIFEST), "to have at most"),
    "empty manifest": (lambda f: (f / MANIFEST).write_bytes(b""), "JSON that is cut off"),
    "not text": (lambda f: (f / MANIFEST).write_bytes(b"\xff\xfe\x00"), "malformed JSON"),
    "deep": (lambda f: (f / MANIFEST).write_bytes(b"[" * 200_000), "nested too deeply"),
    "long number": (lambda f: (f / MANIFEST).write_bytes(b"9" * 100_000), "out of range"),
    "not a number": (
        lambda f: (f / MANIFEST).write_text('{"low": NaN}'),
        "malformed JSON: invalid character",
    ),
    "a list": (lambda f: (f / MANIFEST).write_text("[]"), "manifest of a controller"),
    "another format": (
        lambda f: change_manifest(f, lambda m: m.update(format="pickle")),
        "manifest of a controller",
    ),
    "a field too many": (lambda f: change_manifest(f, lambda m: m.update(path="/etc")), "path"),
    "a field missing": (lambda f: change_manifest(f, lambda m: m.pop("low")), "low"),
    "no hash": (lambda f: change_manifest(f, lambda m: m.update(sha256=None)), "sha256"),
}
WRONG: list[tuple[str, str, list[Any]]] = [
    ("low", "finite limits", [[0.0], [-1e39, 0.0]]),
    ("low", "low below high", [[5.0, 5.0]]),
    ("low", r"str instead of float at low\[0\]", [["0", "0"]]),
    ("low", "int instead of array at low", [3]),
    ("high", r"bool instead of float at high\[0\]", [[True, True]]),
    ("action_names", "1 to 65536 names", [[]]),
    ("action_names", r"int instead of str at action_names\[0\]", [[1, 2]]),
    ("observation_names", "1 to 65536 names", [["x"] * 70_000]),
    ("observation_names", "shape", [["x"]]),
    ("latent_size", "latent_size to be an integer", [10**12, -1]),
    ("latent_size", "float instead of int at latent_size", [4.0]),
    ("latent_size", "shape", [3]),
    ("latent_size", "networks to be policy", [0]),
    ("num_initial", "num_initial to be an integer", [10**6]),
    ("num_initial", "bool instead of int at num_initial", [True]),
    ("num_initial", "shape", [2]),
    ("action_repeat", "action_repeat to be an integer", [0]),
    ("residual", "int instead of bool at residual", [1]),
    ("scales", "the unknown value 'exp' at scales", ["exp"]),
    ("least_scale", "least_scale to be from", [0, -1e-3, 1e300]),
    ("least_scale", "out of range at least_scale", [10**400]),
    ("least_scale", "str instead of float at least_scale", ["small"]),
    ("log_scales", "a negative and a positive number", [[1.0, -4.0], [-4.0, -1.0]]),
    ("log_scales", "within -20 and 20", [[-21.0, 1.0]]),
    ("log_scales", r"out of range at log_scales\[1\]", [[-4.0, 10**400]]),
    ("log_scales", "array of length 2 at log_scales", [[-4.0]]),
    ("log_scales", "float instead of array at log_scales", [-4.0]),
    ("interval", "above zero", [0]),
    ("interval", "out of range at interval", [10**400]),
    ("interval", r"str instead of float \| null at interval", ["fast"]),
    ("environment", r"int instead of str \| null at environment", [7]),
    ("angles", "different axes", [[9], [0, 0]]),
    ("angles", r"array instead of int at angles\[0\]", [[[0]]]),
    ("angles", "shape", [[0]]),
    ("networks", "networks to be", [{}, {"policy": ["os.system", "identity"]}]),
    ("networks", "instead of (object|array) at networks", [[], {"policy": "tanh"}]),
    ("about", "str instead of object at about", ["words"]),
]
FIELDS = [(name, value, words) for name, words, values in WRONG for value in values]


def refuse(folder: Path, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        Controller.load(folder)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 600
    assert str(folder) in sentence


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused_in_one_sentence(kind: str, folder: Path):
    damage, words = HOSTILE[kind]
    damage(folder)
    refuse(folder, words)


@pytest.mark.parametrize(("name", "value", "words"), FIELDS, ids=lambda value: f"{value!r:.20}")
def test_hostile_fields_are_refused(name: str, value: Any, words: str, folder: Path):
    change_manifest(folder, lambda manifest: manifest.update({name: value}))
    refuse(folder, words)


def test_layers_that_do_not_end_plainly_are_refused(folder: Path):
    change_manifest(folder, lambda m: m["networks"].update(policy=["tanh"] * 3))
    refuse(folder, "end in identity")
    change_manifest(folder, lambda m: m["networks"].update(policy=["identity"] * 33))
    refuse(folder, "1 to 32")


def test_random_damage_is_refused_or_harmless(folder: Path, random: Generator):
    whole = {name: (folder / name).read_bytes() for name in (WEIGHTS, MANIFEST)}
    for _ in range(300):
        name = (WEIGHTS, MANIFEST)[int(random.integers(2))]
        data = bytearray(whole[name])
        for place in random.integers(0, len(data), random.integers(1, 4)):
            data[place] = random.integers(256)
        if name == WEIGHTS:
            sign(folder, bytes(data))
        else:
            (folder / name).write_bytes(data)
        try:
            controller = Controller.load(folder, engine="numpy")
        except ValueError:
            pass
        else:
            low, high = controller.bundle.limits
            with np.errstate(all="ignore"):
                action = controller.step(np.zeros(5, np.float32))
            assert ((low <= action) & (action <= high)).all()
        for each, kept in whole.items():
            (folder / each).write_bytes(kept)


def test_no_bit_of_a_manifest_can_flip_unnoticed(folder: Path):
    path = folder / MANIFEST
    written = path.read_bytes()
    read_bundle(folder)
    first_line = [(place, bit) for place in range(60) for bit in range(8)]
    for place, bit in [*first_line, *((place, place % 8) for place in range(len(written)))]:
        flipped = bytearray(written)
        flipped[place] ^= 1 << bit
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=str(folder)):
            read_bundle(folder)


def test_a_run_that_is_no_folder_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="A finished training run writes one"):
        Controller.load(tmp_path / "nothing")


def test_a_pendulum_has_no_filter(tmp_path: Path):
    write_bundle(pendulum_bundle(), tmp_path)
    assert Controller.load(tmp_path, engine="numpy").description.latent_size == 0
