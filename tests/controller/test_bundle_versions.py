"""Bundles of version 1, and constants that come from the bundle rather than from the code."""

import dataclasses
import hashlib
import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controllers_for_tests import by_engine, filter_bundle, pendulum_bundle
from numpy.random import Generator

from empowerment.controller import Bundle, Controller, read_bundle, write_bundle
from empowerment.controller.bundle_io import MANIFEST, WEIGHTS
from empowerment.controller.controller import EngineName
from empowerment.controller.export import export
from empowerment.controller.export.validation import validate
from empowerment.controller.reference import reference_step
from empowerment.files import encode

VERSION_1 = "empowerment controller, version 1"


def to_version_1(folder: Path, **others: Any) -> None:
    """Rewrite a manifest as version 1 had it, and add other fields."""
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["least_scale"], manifest["log_scales"], manifest["choices"]
    del manifest["uniform_share"], manifest["bound_error"], manifest["monitor"]
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    manifest |= {"format": VERSION_1, "num_first": manifest.pop("num_initial"), "sha256": digest}
    manifest |= others
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_version_1_is_still_read(tmp_path: Path, random: Generator):
    write_bundle(filter_bundle(num_initial=3), tmp_path)
    newer = Controller.load(tmp_path, engine="numpy")
    to_version_1(tmp_path)
    older = Controller.load(tmp_path, engine="numpy")
    assert older.description == newer.description
    for observation in random.normal(size=(5, 5)):
        np.testing.assert_array_equal(older.step(observation), newer.step(observation))


def test_version_2_is_still_read(tmp_path: Path):
    write_bundle(filter_bundle(), tmp_path)
    newer = read_bundle(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    del manifest["choices"], manifest["uniform_share"], manifest["bound_error"], manifest["monitor"]
    manifest["format"] = "empowerment controller, version 2"
    manifest["sha256"] = hashlib.sha256((tmp_path / WEIGHTS).read_bytes()).hexdigest()
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    assert read_bundle(tmp_path).description == newer.description
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "choices": []}))
    with pytest.raises(ValueError, match="of version 2; got the unexpected choices"):
        read_bundle(tmp_path)


def test_version_3_is_still_read_and_has_no_bound(tmp_path: Path):
    write_bundle(filter_bundle(), tmp_path)
    newer = read_bundle(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    del manifest["bound_error"], manifest["monitor"], manifest["sha256"]
    manifest["format"] = "empowerment controller, version 3"
    digest = hashlib.sha256((tmp_path / WEIGHTS).read_bytes() + encode(manifest)).hexdigest()
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "sha256": digest}))
    older = read_bundle(tmp_path)
    assert older.description == newer.description
    with pytest.raises(ValueError, match="with a bound on empowerment; this one was written"):
        older.check_bound()
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "sha256": "0" * 64}))
    with pytest.raises(ValueError, match="SHA-256 differs"):
        read_bundle(tmp_path)


@pytest.mark.parametrize(
    "others", [{"least_scale": 1.0}, {"num_initial": 1}, {"choices": [2, 2]}, {"format": "other"}]
)
def test_versions_are_not_mixed(others: dict[str, Any], tmp_path: Path):
    write_bundle(filter_bundle(), tmp_path)
    to_version_1(tmp_path, **others)
    with pytest.raises(ValueError, match=r"unexpected|manifest of a controller"):
        read_bundle(tmp_path)


def with_constants(bundle: Bundle, **constants: Any) -> Bundle:
    return Bundle(dataclasses.replace(bundle.description, **constants), bundle.arrays)


@pytest.mark.parametrize("as_published", [False, True], ids=["softplus", "square"])
def test_the_least_scale_of_a_bundle_is_used_everywhere(
    as_published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 100)
    usual = filter_bundle(as_published=as_published)
    write_bundle(with_constants(usual, least_scale=0.5), tmp_path)
    bundle = read_bundle(tmp_path)
    names: list[EngineName] = ["numpy"]
    if importlib.util.find_spec("numba") is not None:
        names.append("numba")
    for name in names:
        validate(bundle, by_engine(bundle, name))
        with pytest.raises(ValueError, match="off by"):
            validate(bundle, by_engine(usual, name))
    if shutil.which("cc") is not None:
        export(bundle, "c", tmp_path / "it.h")
    if importlib.util.find_spec("onnxruntime") is not None:
        export(bundle, "onnx", tmp_path / "it.onnx")


def test_the_log_scales_of_a_bundle_bound_the_spread_of_its_actions():
    bundle = with_constants(pendulum_bundle(), log_scales=(-1e-9, 1e-9))  # A scale of one.
    noise, memory = np.array([0.3]), np.zeros(2)
    mean, sample = (
        np.arctanh(reference_step(bundle, np.array([0.3, -0.2]), memory, each)[0] / 2.0)
        for each in (None, noise)
    )
    np.testing.assert_allclose(sample - mean, noise, rtol=1e-6)
