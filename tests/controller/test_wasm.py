"""Exports to WebAssembly as far as there is no clang: what is compiled, and what is refused.

The modules themselves are tested by `make wasm-test`, in `tests/controller/in_wasm.py`.
"""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from controllers_for_tests import pendulum_bundle, watched_bundle, with_bound
from safety_corpus import SPREAD, WATCHED

from empowerment.cli import main
from empowerment.controller import Controller, write_bundle
from empowerment.controller.export import export
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import FLAGS
from empowerment.controller.export.wasm import wasm_source

EMPTY = b"\0asm\x01\0\0\0"


def plant(folder: Path, module: bytes, complaint: str = "") -> Path:
    """Write a clang that writes a module, or complains; and the only folder for programs."""
    (folder / "programs").mkdir()
    (folder / "module").write_bytes(module)
    clang = folder / "programs" / "clang-14"
    outcome = f"echo '{complaint}' >&2; exit 1" if complaint else f"/bin/cp {folder}/module $out"
    clang.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n' + outcome + "\n"
    )
    clang.chmod(0o755)
    for name in ("cc", "as", "ld"):
        (folder / "programs" / name).symlink_to(shutil.which(name) or name)
    return folder / "programs"


def test_without_clang_the_command_refuses_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    write_bundle(pendulum_bundle(), tmp_path / "run")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(SystemExit) as stopped:
        main(["export", str(tmp_path / "run"), "--format=wasm", "--out", str(tmp_path / "it.wasm")])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Expected clang with the target wasm32 to be installed; got none. Install clang" in said
    assert len(said.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_clang_without_the_target_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    complaint = "error: no such target"
    monkeypatch.setenv("PATH", str(plant(tmp_path, EMPTY, complaint)))
    with pytest.raises(ValueError, match=f"clang-14 reports: {complaint}. Install clang, lld"):
        export(pendulum_bundle(), "wasm", tmp_path / "it.wasm")
    assert not (tmp_path / "it.wasm").exists()


@pytest.mark.parametrize(
    ("module", "complaint"),
    [
        (EMPTY + b"\x01\x01\0\x02\x85\0" + bytes(5), "import nothing; it does"),
        (b"ELF", "a module of WebAssembly; got something else"),
    ],
)
def test_a_module_that_needs_something_is_refused(
    module: bytes, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(plant(tmp_path, module)))
    with pytest.raises(ValueError, match=complaint):
        export(pendulum_bundle(), "wasm", tmp_path / "it.wasm")
    assert not (tmp_path / "it.wasm").exists()


def test_what_clang_compiles_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 100)
    module = EMPTY + b"\x01\x01\0\x03\x85\0" + bytes(5)
    monkeypatch.setenv("PATH", str(plant(tmp_path, module)))
    found, files = export(pendulum_bundle(), "wasm", tmp_path / "it.wasm")
    assert files == [tmp_path / "it.wasm"]
    assert files[0].read_bytes() == module
    assert found.largest_error < 1e-6


def test_the_functions_of_a_module_are_those_of_the_controller(tmp_path: Path):
    # Compiled for this machine: the same source as that of a module.
    bundle = with_bound(watched_bundle(SPREAD))
    texts = c_files(bundle, "it")
    for file, text in {**texts, "module.c": wasm_source("it", texts["it.h"])}.items():
        (tmp_path / file).write_text(text)
    library = tmp_path / "module.so"
    command = ["cc", *FLAGS, "-shared", "-fPIC", "-o", library, "module.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    it = ctypes.CDLL(str(library))
    it.wasm_control.argtypes = [ctypes.c_int, ctypes.c_double]
    it.wasm_count.restype, it.wasm_empowerment.restype = ctypes.c_double, ctypes.c_float
    places = {}
    for name, size in (("observation", 3), ("action", 2), ("levels", 3)):
        function = getattr(it, f"wasm_{name}")
        function.restype = ctypes.POINTER(ctypes.c_float)
        places[name] = np.ctypeslib.as_array(function(), (size,))
    assert (it.wasm_observation_size(), it.wasm_action_size(), it.wasm_state_size()) == (3, 2, 6)
    controller = Controller(bundle, engine="numpy")
    it.wasm_init()
    np.testing.assert_array_equal(places["action"], controller.safe_action)
    for time, (_, observation) in enumerate(WATCHED["a shift after holes"].cycles(3)):
        if observation is not None:
            places["observation"][:] = observation
        fault = it.wasm_control(observation is not None, 20.0 * time)
        np.testing.assert_allclose(places["action"], controller.step(observation), atol=1e-5)
        assert fault == (4 if controller.fault else 0)
        assert np.isfinite(it.wasm_empowerment())
    levels = controller.levels
    assert levels is not None
    np.testing.assert_allclose(places["levels"], levels, rtol=1e-4)
    assert controller.fault is not None
    assert it.wasm_unfamiliar_axis() == 2
    for odd in (np.nan, -1.0, 1e300):  # No time: nothing to convert.
        it.wasm_control(1, odd)
    counts = [it.wasm_count(kind) for kind in range(-1, 5)]
    assert counts == [0, controller.num_steps + 3, controller.num_missing, 0, 1, 0]
    it.wasm_reset()
    assert it.wasm_control(0, 0.0) == 0
