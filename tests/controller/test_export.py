"""Exports: the same numbers elsewhere, or no file at all."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from controllers_for_tests import (
    discrete_bundle,
    filter_bundle,
    pendulum_bundle,
    watched_bundle,
    with_bound,
)
from numpy.random import Generator

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, write_bundle
from empowerment.controller.bundle_io import from_json
from empowerment.controller.export import export
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import FLAGS, CompiledC
from empowerment.controller.export.exporting import _OTHERS
from empowerment.controller.export.onnx_graph import OPSET, onnx_model
from empowerment.controller.export.validation import Step, validate
from empowerment.controller.reference import reference_bound, reference_step

ENDINGS = {"c": ".h", "npz": ".npz", "onnx": ".onnx"}
KINDS: dict[str, Bundle] = {
    "filter": filter_bundle(),
    "wide": filter_bundle(seen=44, latent=16, width=128),
    "deep": filter_bundle(depth=3, done=1),
    "published": filter_bundle(as_published=True),
    "many first": filter_bundle(num_initial=3),
    "pendulum": pendulum_bundle(),
}


def step_of(bundle: Bundle, format: str, path: Path) -> Step:
    """The step of an export, without a comparison with the original."""
    if format == "c":
        return CompiledC(bundle, path.stem, c_files(bundle, path.stem))
    return _OTHERS[format](bundle, path)[1]


@pytest.mark.parametrize("format", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_export_is_the_same_as_the_original(
    format: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    steps = 1000 if kind == "filter" else 150  # Checking shapes at each step takes its time.
    if steps < 1000:
        monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", steps)
    found, files = export(KINDS[kind], format, tmp_path / f"it{ENDINGS[format]}")
    assert found.num_steps == steps
    assert 0 < found.largest_error < 2e-6
    assert 0 < found.p50 <= found.p99
    assert files == sorted(tmp_path.iterdir(), key=lambda path: len(path.name))


BOUNDS: dict[str, Bundle] = {
    "filter": with_bound(KINDS["filter"]),
    "published": with_bound(KINDS["published"]),
    "pendulum": with_bound(KINDS["pendulum"]),
    "choices": with_bound(discrete_bundle((3, 2), latent=4)),
    "angles": with_bound(discrete_bundle((2,), angles=(1, 3))),
}


@pytest.mark.parametrize("format", ENDINGS)
@pytest.mark.parametrize("kind", BOUNDS)
def test_empowerment_is_exported_too(
    format: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 150)
    bundle, path = BOUNDS[kind], tmp_path / f"it{ENDINGS[format]}"
    found, _ = export(bundle, format, path, with_empowerment=True)
    assert found.largest_error < 1e-5
    # And with another bound it is not the same: it was compared.
    other = with_bound(bundle, seed=1)
    step = step_of(other, format, path)
    with pytest.raises(ValueError, match="off by"):
        validate(bundle, step)


@pytest.mark.parametrize("format", ENDINGS)
@pytest.mark.parametrize("kind", ["filter", "pendulum"])
def test_a_state_that_is_not_known_has_no_empowerment(format: str, kind: str, tmp_path: Path):
    bundle = BOUNDS[kind]
    step = step_of(bundle, format, tmp_path / f"it{ENDINGS[format]}")
    missing = np.full(bundle.description.observation_size, np.nan, np.float32)
    memory = np.zeros(bundle.description.memory_size, np.float32)
    _, memory, value = step(missing, memory)
    assert np.isnan(value).all()
    _, memory, value = step(np.zeros_like(missing), memory)
    assert np.isfinite(value).all()
    assert value.shape == (1,)
    _, memory, value = step(missing, memory)
    assert np.isfinite(value).all() == (kind == "filter")


@pytest.mark.parametrize("format", ENDINGS)
def test_empowerment_is_exported_only_if_asked_for(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 10)
    ending = ENDINGS[format]
    for name, kind in (("with", BOUNDS["filter"]), ("without", KINDS["filter"])):
        export(kind, format, tmp_path / name / f"it{ending}")
    for file in (tmp_path / "with").iterdir():
        assert file.read_bytes() == (tmp_path / "without" / file.name).read_bytes()
    with pytest.raises(ValueError, match="a bound on empowerment"):
        export(KINDS["filter"], format, tmp_path / f"it{ending}", with_empowerment=True)
    assert not (tmp_path / f"it{ending}").exists()


def test_a_program_in_c_knows_how_empowered_it_is(tmp_path: Path):
    write_bundle(BOUNDS["filter"], tmp_path / "run")
    words = ["export", str(tmp_path / "run"), "--format", "c", "--with-empowerment", "--out"]
    main([*words, str(tmp_path / "robot.h")])
    (tmp_path / "main.c").write_text("""
#include <stdio.h>
#include "robot.h"
int main(void) {
  float o[ROBOT_OBSERVATION_SIZE] = {0.1f}, s[ROBOT_STATE_SIZE] = {0}, a[ROBOT_ACTION_SIZE];
  int i;
  for (i = 0; i < 4; i++) {
    robot_step(o, s, a, s);
    printf("%.9g ", (double)robot_empowerment(o, s));
  }
  return 0;
}
""")
    command = ["cc", *FLAGS, "-o", "program", "main.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run(tmp_path / "program", capture_output=True, text=True, check=True).stdout
    bundle, memory, wanted = BOUNDS["filter"], np.zeros(7), []
    observation = np.array([0.1, 0, 0, 0, 0])
    for _ in range(4):
        memory = reference_step(bundle, observation, memory)[1]
        wanted.append(reference_bound(bundle, observation, memory))
    np.testing.assert_allclose(np.array(said.split(), float), wanted, rtol=1e-5)


@pytest.mark.parametrize("format", ENDINGS)
def test_a_failed_validation_writes_nothing(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("empowerment.controller.export.validation.TOLERANCE", 1e-12)
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 100)
    with pytest.raises(ValueError, match="Nothing was written"):
        export(KINDS["filter"], format, tmp_path / f"it{ENDINGS[format]}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [np.nan, 1e-3])
def test_what_is_wrong_is_found(wrong: float):
    def step(observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(2, wrong, np.float32), memory

    with pytest.raises(ValueError, match="off by"):
        validate(KINDS["filter"], step)


def test_c_has_symbols_of_its_own_and_no_allocation():
    texts = c_files(KINDS["filter"], "left_arm")
    code = "".join(texts.values())
    assert set(texts) == {"left_arm.h", "left_arm_weights.h"}
    assert not re.search(r"\b(malloc|calloc|realloc|free|alloca)\b", code)
    assert re.findall(r"#include <(\w+)\.h>", code) == ["math", "stddef", "stdint", "string"]
    defined = re.findall(r"^static (?:inline|const) \w+ \*?(\w+)", code, re.MULTILINE)
    assert defined
    assert all(name.startswith("left_arm_") for name in defined)
    assert all(name.startswith("LEFT_ARM_") for name in re.findall(r"#define (\w+)", code))
    assert len(set(defined)) == len(defined)


@pytest.mark.parametrize(
    ("kind", "compiler"),
    [("filter", "cc"), ("pendulum", "cc"), ("watched", "cc"), ("watched", "c++")],
)
def test_c_is_single_precision_and_calls_nothing_else(kind: str, compiler: str, tmp_path: Path):
    texts = c_files(with_bound(KINDS.get(kind) or watched_bundle(0.1)), "it")
    assert not re.search(r"\bdouble\b|stdio|printf", "".join(texts.values()))
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "main.c").write_text("""
#include "it.h"
int run(it_controller *it, const float *o, uint64_t now, float *a);
float value(it_controller *it, const float *o);
int run(it_controller *it, const float *o, uint64_t now, float *a) {
  if (now == 0) it_init(it);
  return it_control(it, o, now, a);
}
float value(it_controller *it, const float *o) { return it_empowerment(o, it->state); }
""")
    flags = ["-x", "c++", "-std=c++17", *FLAGS[1:]] if compiler == "c++" else FLAGS
    command = [compiler, *flags, "-O1", "-c", "-o", "main.o", "main.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run(
        ["nm", "-u", "main.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    known = {"expf", "log1pf", "cosf", "sinf", "sincosf", "memcpy", "memset"}
    assert set(re.findall(r"\bU ([a-z]\w+)", said)) <= known


def test_two_controllers_live_in_one_c_program(tmp_path: Path):
    for name, kind in (("one", "filter"), ("two", "pendulum")):
        for file, text in c_files(KINDS[kind], name).items():
            (tmp_path / file).write_text(text)
    # In place: the next state may be the array of the last.
    (tmp_path / "main.c").write_text("""
#include <stdio.h>
#include "one.h"
#include "two.h"
int main(void) {
  float o[ONE_OBSERVATION_SIZE] = {0}, s[ONE_STATE_SIZE] = {0}, a[ONE_ACTION_SIZE];
  float p[TWO_OBSERVATION_SIZE] = {0}, t[TWO_STATE_SIZE] = {0}, b[TWO_ACTION_SIZE];
  int i;
  for (i = 0; i < 5; i++) one_step(o, s, a, s);
  two_step(p, t, b, t);
  printf("%.9g %.9g %.9g\\n", (double)a[0], (double)a[1], (double)b[0]);
  return 0;
}
""")
    command = ["cc", *FLAGS, "-o", "program", "main.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run(tmp_path / "program", capture_output=True, text=True, check=True).stdout
    found = np.array(said.split(), float)
    controller = Controller(KINDS["filter"], engine="numpy")
    first = [controller.step(np.zeros(5, np.float32)) for _ in range(5)][-1]
    second = Controller(KINDS["pendulum"], engine="numpy").step(np.zeros(2, np.float32))
    np.testing.assert_allclose(found, [*first, *second], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["filter", "published", "pendulum"])
def test_c_keeps_its_limits_whatever_comes(kind: str, random: Generator):
    bundle = KINDS[kind]
    low, high = bundle.limits
    step = CompiledC(bundle, "it", c_files(bundle, "it"))
    memory = np.zeros(bundle.description.memory_size, np.float32)
    for _ in range(3000):
        bits = random.bytes(4 * bundle.description.observation_size)
        action, memory = step(np.frombuffer(bits, np.float32).copy(), memory)
        assert ((low <= action) & (action <= high)).all()
        assert np.isfinite(memory).all()


def test_names_cannot_leave_their_comment():
    bundle = pendulum_bundle()
    hostile = {"observation_names": ("*/ int x;", "@ARRAYS@"), "action_names": ("a\nb",)}
    description = type(bundle.description)(**{**vars(bundle.description), **hostile})
    code = c_files(Bundle(description, bundle.arrays), "it")["it.h"]
    head = code[: code.index("*/")]
    assert "Action: a b" in head
    CompiledC(bundle, "it", c_files(Bundle(description, bundle.arrays), "it"))


def test_onnx_says_what_it_is():
    model = onnx.load_model_from_string(onnx_model(KINDS["filter"]))
    onnx.checker.check_model(model, full_check=True)
    assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
    assert [each.name for each in model.graph.input] == ["observation", "state"]
    assert [each.name for each in model.graph.output] == ["action", "next_state"]


def test_npz_has_everything_by_name(tmp_path: Path):
    bundle = KINDS["filter"]
    export(bundle, "npz", tmp_path / "it.npz")
    with np.load(tmp_path / "it.npz") as archive:
        assert set(archive.files) == {"description", *bundle.arrays}
        text = archive["description"].tobytes()
        np.testing.assert_array_equal(archive["policy.0.weight"], bundle.arrays["policy.0.weight"])
    assert from_json(text, b"", tmp_path) == bundle.description


def test_the_command_says_how_exact_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_bundle(KINDS["filter"], tmp_path / "run")
    words = ["export", str(tmp_path / "run"), "--format", "npz", "--out"]
    main([*words, str(tmp_path / "it.npz")])
    said = capsys.readouterr()
    assert "in 1000 random steps" in said.err
    assert str(tmp_path / "it.npz") in said.err
    main([*words, str(tmp_path / "it.npz"), "--json"])
    assert json.loads(capsys.readouterr().out)["largest_error"] < 1e-6


@pytest.mark.parametrize(
    ("format", "file", "complaint"),
    [
        ("npz", "it.h", "to end in .npz"),
        ("c", "left-arm.h", "begin the names of functions"),
        ("c", "1.h", "begin the names of functions"),
    ],
)
def test_files_that_cannot_be_are_refused(
    format: str, file: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_bundle(KINDS["filter"], tmp_path / "run")
    words = ["export", str(tmp_path / "run"), "--format", format, "--out"]
    with pytest.raises(SystemExit) as stopped:
        main([*words, str(tmp_path / file)])
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_without_a_compiler_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="Expected a C compiler"):
        export(KINDS["filter"], "c", tmp_path / "it.h")
    assert not list(tmp_path.iterdir())
