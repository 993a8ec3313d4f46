"""The monitor of the model in exports: in C as in Python, in npz for a controller, in ONNX not."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controllers_for_tests import watched_bundle
from numpy.random import Generator
from test_monitor import (
    Oscillator,
    monitored_oscillator,
    reversed_force,
    stuck,
)

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, write_bundle
from empowerment.controller.bundle_io import read_npz
from empowerment.controller.export import c_code, c_monitor, export
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import CompiledC
from empowerment.controller.export.validation import kind_of


@pytest.mark.parametrize("change", [stuck, reversed_force])
def test_c_finds_a_change_in_the_same_cycle(change: Any, random: Generator):
    bundle = monitored_oscillator()
    controller, system = Controller(bundle, engine="numpy"), Oscillator(random)
    compiled = CompiledC(bundle, "it", c_files(bundle, "it"), ("-O0",))
    faults = []
    for time in range(400):
        seen = system.observe()
        given = change(system, seen) if time >= 250 else seen
        given = None if time % 37 == 36 else given
        action = controller.step(given)
        found, fault = compiled.control(given, time)
        np.testing.assert_allclose(found, action, atol=1e-5)
        levels, wanted = compiled.levels, controller.levels
        assert levels is not None
        assert wanted is not None
        np.testing.assert_allclose(levels, wanted, rtol=1e-3, atol=1e-5)
        assert fault == kind_of(controller.fault)
        faults.append(fault)
        system.apply(action)
    assert faults[249] is None
    assert faults[-1] == "unfamiliar"


@pytest.mark.parametrize(
    ("ours", "planted"),
    [
        (">= @UPPER@_RUNNING", "> @UPPER@_RUNNING"),
        ("    it->settling--;\n", ""),
        ("decoder(predicted, expected);", "decoder(it->state + 1, expected); (void)predicted;"),
        (" - @NAME@_offset[i]", " - @NAME@_per_spread[i]"),
    ],
)
def test_a_mistake_in_the_monitor_is_found_and_nothing_is_written(
    ours: str, planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    code = c_monitor._PARTS["MONITOR"]
    assert ours in code
    monkeypatch.setitem(c_monitor._PARTS, "MONITOR", code.replace(ours, planted))
    with pytest.raises(ValueError, match="Nothing was written"):
        export(monitored_oscillator(), "c", tmp_path / "it.h")
    assert not list(tmp_path.iterdir())


def test_a_header_without_a_monitor_has_nothing_of_it():
    bundle = monitored_oscillator()
    without = c_files(bundle, "it", Safety(monitor=False))
    assert without == c_files(bundle.without_monitor(), "it")
    for word in ("decoder", "levels", "settling", "predicted"):
        assert word in c_files(bundle, "it")["it.h"]
        assert word not in without["it.h"]


def test_limits_of_the_monitor_are_those_of_the_bundle():
    bundle = watched_bundle(0.1)
    limits = bundle.description.monitor
    assert limits is not None
    other = dataclasses.replace(
        limits, threshold=7.25, most=1e6, weight=1.0, running=1 << 40, settling=77
    )
    header = c_code.c_files(
        Bundle(dataclasses.replace(bundle.description, monitor=other), bundle.arrays), "it"
    )["it.h"]
    for line in (
        "THRESHOLD 7.25f ",
        "LARGEST_SQUARE 1000000.0f ",
        "LEVEL_WEIGHT 1.0f ",
        "RUNNING 1099511627776u ",
        "SETTLING 77u ",
        "AFTER_MISSING 2u ",
    ):
        assert f"#define IT_{line}" in header


def test_scales_that_overflow_are_refused(tmp_path: Path):
    bundle = watched_bundle(0.1)
    arrays = {**bundle.arrays, "innovations.scale": np.full(3, 1e-30, np.float32)}
    arrays["observations.scale"] = np.full(3, 1e-30, np.float32)
    with pytest.raises(ValueError, match="finite in single precision"):
        export(Bundle(bundle.description, arrays), "c", tmp_path / "it.h")
    assert not list(tmp_path.iterdir())


def test_an_npz_makes_a_controller_with_its_monitor(tmp_path: Path, random: Generator):
    bundle = monitored_oscillator()
    _, (path,) = export(bundle, "npz", tmp_path / "controller.npz")
    found = read_npz(path)
    assert found.description == bundle.description
    controllers = [Controller(each, engine="numpy") for each in (bundle, found)]
    system = Oscillator(random)
    for time in range(60):
        seen = system.observe() if time < 40 else np.array([1.0, 0.0], np.float32)
        one, other = (each.step(seen) for each in controllers)
        np.testing.assert_array_equal(one, other)
        system.apply(one)
    assert controllers[0].fault == controllers[1].fault is not None


def test_the_command_exports_the_monitor_or_says_that_it_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_bundle(monitored_oscillator(), tmp_path / "run")
    words = ["export", str(tmp_path / "run"), "--out"]
    main([*words, str(tmp_path / "it.h"), "--format", "c"])
    assert "IT_THRESHOLD" in (tmp_path / "it.h").read_text()
    assert "monitor" not in capsys.readouterr().err
    main([*words, str(tmp_path / "it.h"), "--format", "c", "--no-monitor"])
    assert "IT_THRESHOLD" not in (tmp_path / "it.h").read_text()
    main([*words, str(tmp_path / "it.onnx"), "--format", "onnx"])
    said = capsys.readouterr().err
    assert "The graph is the step alone" in said
    assert "the monitor of the model" in said
    with pytest.raises(SystemExit) as stopped:
        main([*words, str(tmp_path / "other.npz"), "--format", "npz", "--no-monitor"])
    assert stopped.value.code == 2
    assert (
        "Expected --no-monitor for the formats c, ros2 and wasm only; got npz."
        in capsys.readouterr().err
    )
    assert not (tmp_path / "other.npz").exists()
