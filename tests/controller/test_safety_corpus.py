"""NumPy, numba and C give the same actions, faults and counts, whatever happens to them."""

import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controllers_for_tests import filter_bundle, pendulum_bundle, watched_bundle
from safety_corpus import CORPUS, SPREAD, WATCHED, Spell, expected_faults

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, write_bundle
from empowerment.controller.controller import EngineName
from empowerment.controller.export import c_safety, export
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import FLAGS, CompiledC
from empowerment.controller.export.onnx_graph import onnx_model, runtime_step
from empowerment.controller.export.validation import kind_of

BUNDLES = {
    "filter": filter_bundle(),
    "published": filter_bundle(as_published=True),
    "pendulum": pendulum_bundle(),
    "choices": filter_bundle(choices=(3, 2)),
    "watched": watched_bundle(SPREAD),
}
SAFE = {
    "filter": (-1.0, 1.0),
    "published": (-1.0, 1.0),
    "pendulum": (0.5,),
    "choices": (1.0, 1.0),
    "watched": (-1.0, 0.5),
}
SPELLS = {"watched": WATCHED}
"""Those of a kind of controller; of others, the corpus."""

Trace = tuple[list[str | None], np.ndarray, list[int], np.ndarray | None]
"""The fault after each cycle, the actions, and the counts and levels at the end."""


def by_python(bundle: Bundle, safety: Safety, spell: Spell, engine: EngineName) -> Trace:
    now, faults, actions = 10**18, [], []
    controller = Controller(bundle, safety=safety, engine=engine, clock=lambda: now)
    for index, (gap, observation) in enumerate(spell.cycles(bundle.description.observation_size)):
        if index in spell.resets:
            controller.reset()
        now += round(gap * 1e9 * (safety.interval or 0.02))
        actions.append(controller.step(observation))
        faults.append(kind_of(controller.fault))
    counts = [getattr(controller, f"num_{each}") for each in ("steps", "missing", "late", "faults")]
    return faults, np.array(actions), counts, controller.levels


@cache
def in_c(bundle: Bundle, safety: Safety) -> CompiledC:
    return CompiledC(bundle, "it", c_files(bundle, "it", safety), ("-O0",))


def by_c(bundle: Bundle, safety: Safety, spell: Spell) -> Trace:
    now, faults, actions = 10**18, [], []
    compiled = in_c(bundle, safety)
    compiled.init()
    for index, (gap, observation) in enumerate(spell.cycles(bundle.description.observation_size)):
        if index in spell.resets:
            compiled.reset()
        now += round(gap * 1e9 * (safety.interval or 0.02))
        action, fault = compiled.control(observation, now)
        actions.append(action)
        faults.append(fault)
    return faults, np.array(actions), compiled.counts, compiled.levels


ENGINES: dict[str, Callable[[Bundle, Safety, Spell], Trace]] = {
    "numpy": partial(by_python, engine="numpy"),
    "numba": partial(by_python, engine="numba"),
    "c": by_c,
}


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("kind", ["filter", "pendulum"])
def test_python_and_c_answer_alike(kind: str, name: str):
    compare(kind, name, ["numpy", "c"])


@pytest.mark.parametrize("name", ["a reset", "all kinds of holes", "late and missing"])
@pytest.mark.parametrize("kind", ["published", "choices"])
def test_other_kinds_of_controllers_answer_alike(kind: str, name: str):
    compare(kind, name, ["numpy", "c"])


@pytest.mark.parametrize("name", WATCHED)
def test_python_and_c_watch_alike(name: str):
    compare("watched", name, ["numpy", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", BUNDLES)
def test_numba_answers_alike(kind: str):
    for name, spell in SPELLS.get(kind, CORPUS).items():
        if kind != "choices" or "max_change" not in spell.safety:
            compare(kind, name, ["numpy", "numba"])


def compare(kind: str, name: str, engines: list[str]) -> None:
    """Compare implementations on a spell, and with the faults that are expected."""
    bundle, spell = BUNDLES[kind], SPELLS.get(kind, CORPUS)[name]
    safety = Safety(safe_action=SAFE[kind], **spell.safety)
    (faults, actions, counts, levels), *others = (
        ENGINES[each](bundle, safety, spell) for each in engines
    )
    assert faults == expected_faults(spell)
    assert others
    for their_faults, their_actions, their_counts, their_levels in others:
        assert their_faults == faults
        assert their_counts == counts
        np.testing.assert_allclose(their_actions, actions, rtol=1e-5, atol=1e-5)
        assert (levels is None) == (their_levels is None)
        if levels is not None and their_levels is not None:
            np.testing.assert_allclose(their_levels, levels, rtol=1e-4, atol=1e-5)
    low, high = bundle.limits
    assert ((low <= actions) & (actions <= high)).all()
    safe = np.array(SAFE[kind], np.float32)
    for fault, action in zip(faults, actions, strict=True):
        assert fault is None or np.array_equal(action, safe)


@pytest.mark.parametrize("kind", ["filter", "pendulum", "choices", "watched"])
def test_onnx_acts_alike_as_far_as_it_goes(kind: str):
    bundle = BUNDLES[kind]
    size = bundle.description.observation_size
    step, count = runtime_step(onnx_model(bundle.without_monitor())), 0
    for spell in SPELLS.get(kind, CORPUS).values():
        if "max_change" in spell.safety:  # A limit on changes is not in the graph,
            continue
        faults, actions, _, _ = by_python(bundle, Safety(**spell.safety), spell, "numpy")
        memory = np.zeros(bundle.description.memory_size, np.float32)
        cycles = list(spell.cycles(size))
        for (_, observation), fault, wanted in zip(cycles, faults, actions, strict=True):
            if fault is not None:  # and nothing is latched: what follows a fault is not compared.
                break
            given = np.full(size, np.nan, np.float32) if observation is None else observation
            action, memory = step(given, memory)
            np.testing.assert_allclose(action, wanted, rtol=1e-5, atol=1e-5)
            count += 1
    assert count > 200


def test_wild_numbers_are_missing_in_c_too():
    bundle = BUNDLES["published"]
    compiled = CompiledC(bundle, "it", c_files(bundle, "it", Safety(max_missing=2)), ("-O0",))
    wild = np.full(5, 3e38, np.float32)
    assert [compiled.control(each, 0)[1] for each in (np.zeros(5), wild, wild)][1:] == [
        None,
        "missing",
    ]


@pytest.mark.parametrize(
    ("ours", "planted"),
    [
        ("it->missing = 0;\n", ""),
        (">= @UPPER@_MAX_MISSING", "> @UPPER@_MAX_MISSING"),
        ("missed -= 1;", ""),
        ("late_count > @UPPER@_MOST", "late_count >= @UPPER@_MOST"),
        (
            "sizeof @NAME@_safe);\n  return it->fault",
            "0 * sizeof @NAME@_safe);\n  return it->fault",
        ),
        ("  it->num_late += missed;\n", ""),
    ],
)
def test_a_mistake_in_what_watches_is_found_and_nothing_is_written(
    ours: str, planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert ours in c_safety.SAFETY
    wrong = c_safety.SAFETY.replace(ours, planted)
    monkeypatch.setattr("empowerment.controller.export.c_code.SAFETY", wrong)
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 450)
    safety = Safety(max_missing=4, interval=0.01)
    with pytest.raises(ValueError, match="Nothing was written"):
        export(BUNDLES["pendulum"], "c", tmp_path / "it.h", safety=safety)
    assert not list(tmp_path.iterdir())


ATTACK = """\
#include <stdio.h>
#include <stdlib.h>
#include "it.h"

static uint64_t seed = 88172645463325252u;

static uint32_t draw(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (uint32_t)(seed >> 32);
}

int main(int count, char **words) {
  static it_controller it;
  float observation[IT_OBSERVATION_SIZE], action[IT_ACTION_SIZE];
  uint64_t now = 0;
  long i, faults[5] = {0, 0, 0, 0, 0};
  int j;
  it_init(&it);
  for (i = 0; i < atol(words[count - 1]); i++) {
    const uint32_t kind = draw() % 8u;
    int fault;
    for (j = 0; j < IT_OBSERVATION_SIZE; j++) {
      uint32_t bits = draw();
      observation[j] = (float)(int32_t)bits / 1073741824.0f;
      if (kind == 0u && draw() % 3u == 0u) observation[j] = NAN;
      if (kind == 1u && draw() % 3u == 0u) observation[j] = draw() % 2u ? INFINITY : -INFINITY;
      if (kind == 2u) memcpy(&observation[j], &bits, sizeof bits);
    }
    now += IT_INTERVAL;
    if (draw() % 16u == 0u) now += IT_INTERVAL;
    if (draw() % 64u == 0u) now += (uint64_t)draw() << (draw() % 32u);
    fault = it_control(&it, kind == 3u ? NULL : observation, now, action);
    for (j = 0; j < IT_ACTION_SIZE; j++)
      if (!(action[j] >= it_low[j] && action[j] <= it_high[j])) return 1;
    for (j = 0; j < IT_STATE_SIZE; j++)
      if (!isfinite(it.state[j])) return 2;
    faults[fault]++;
    if (fault && draw() % 4u == 0u) it_reset(&it);
  }
  for (j = 0; j < 5; j++) printf("%ld ", faults[j]);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("filter", 20_000),
        pytest.param("filter", 1_000_000, marks=pytest.mark.slow),
        pytest.param("published", 1_000_000, marks=pytest.mark.slow),
        pytest.param("pendulum", 1_000_000, marks=pytest.mark.slow),
        ("watched", 20_000),
        pytest.param("watched", 1_000_000, marks=pytest.mark.slow),
    ],
)
def test_c_is_clean_under_sanitizers_whatever_comes(kind: str, steps: int, tmp_path: Path):
    safety = Safety(max_missing=3, interval=0.001, max_change=0.1, late_share=0.02)
    for file, text in c_files(BUNDLES[kind], "it", safety).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "main.c").write_text(ATTACK)
    sanitize = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = ["cc", *FLAGS, *sanitize, "-o", "attack", "main.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    # The preloaded libraries of a test runner may come before the sanitizer's own.
    said = subprocess.run(
        [tmp_path / "attack", str(steps)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr[-2000:]
    counts = list(map(int, said.stdout.split()))
    assert sum(counts) == steps
    assert min(counts[:4]) > 0  # Every fault was met.
    assert (counts[4] > 0) == (kind == "watched")


def test_the_command_exports_the_limits(tmp_path: Path):
    write_bundle(BUNDLES["filter"], tmp_path / "run")
    words = f"export {tmp_path / 'run'} --format c --out {tmp_path / 'it.h'} --rate 250"
    main([*words.split(), "--safe-action=-1,1", "--max-missing", "7", "--max-change", "0.25"])
    header, weights = ((tmp_path / name).read_text() for name in ("it.h", "it_weights.h"))
    assert "#define IT_MAX_MISSING 7u" in header
    assert "#define IT_INTERVAL 4000000u" in header
    assert "it_safe[2] = {\n  -1.0f, 1.0f\n}" in weights
    assert "it_change[2] = {\n  0.25f, 0.25f\n}" in weights


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"format": "npz", "rate": "9"}, "--rate for the formats c, ros2 and wasm only"),
        (
            {"format": "onnx", "max-missing": "9"},
            "--max-missing for the formats c, ros2 and wasm only",
        ),
        ({"format": "c", "rate": "0"}, "--rate to be positive"),
        ({"format": "c", "safe-action": "x"}, "--safe-action to be numbers"),
        ({"format": "c", "safe-action": "9,9"}, "the safe action to be within"),
        ({"format": "c", "max-missing": "0"}, "max_missing to be at least 1"),
        ({"format": "c", "max-missing": f"{10**10}"}, "max_missing to be at most 2147483647 in C"),
        ({"format": "c", "max-change": "-1"}, "max_change to be above zero"),
    ],
)
def test_limits_that_cannot_be_are_refused(
    words: dict[str, Any], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_bundle(BUNDLES["filter"], tmp_path / "run")
    ending = {"c": "h"}.get(words["format"], words["format"])
    given = [f"--{name}={value}" for name, value in words.items()]
    with pytest.raises(SystemExit) as stopped:
        main(["export", str(tmp_path / "run"), "--out", str(tmp_path / f"it.{ending}"), *given])
    assert stopped.value.code == 2
    assert what in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
