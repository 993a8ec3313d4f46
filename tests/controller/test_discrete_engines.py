"""Controllers that choose: every engine and export takes the same choice, and is told of it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from controllers_for_tests import by_engine, discrete_bundle, with_filter
from numpy.random import Generator

from empowerment.agent import to_bundle
from empowerment.cli import main
from empowerment.controller import Bundle, Controller, read_bundle, write_bundle
from empowerment.controller.bundle_io import MANIFEST, from_json
from empowerment.controller.choices import choose, encode
from empowerment.controller.controller import EngineName, make_engine
from empowerment.controller.export import export
from empowerment.controller.export.c_code import c_files
from empowerment.controller.export.c_compiled import CompiledC
from empowerment.controller.export.exporting import _npz
from empowerment.controller.export.onnx_graph import onnx_model, runtime_step
from empowerment.controller.export.validation import MARGIN, Step, validate
from empowerment.controller.reference import reference_step
from empowerment.model import Filter

ENDINGS = {"c": ".h", "npz": ".npz", "onnx": ".onnx"}
ENGINE_NAMES: list[EngineName] = ["numpy", "numba"]
KINDS: dict[str, Bundle] = {
    "one": discrete_bundle((3,), angles=(1,)),
    "two": discrete_bundle((2, 5)),
    "one, filtered": discrete_bundle((4,), latent=3),
    "two, filtered": discrete_bundle((3, 2), latent=4),
}
FILTER = KINDS["two, filtered"]


def everywhere(bundle: Bundle) -> dict[str, Step]:
    return {
        **{name: by_engine(bundle, name) for name in ENGINE_NAMES},
        "c": CompiledC(bundle, "it", c_files(bundle, "it")),
        "npz": _npz(bundle, Path("it.npz"))[1],
        "onnx": runtime_step(onnx_model(bundle)),
    }


def with_arrays(bundle: Bundle, **arrays: np.ndarray) -> Bundle:
    changed = {name.replace("_", "."): array.astype(np.float32) for name, array in arrays.items()}
    return Bundle(bundle.description, {**bundle.arrays, **changed})


def with_equal_choices(bundle: Bundle) -> Bundle:
    """A bundle of which all logits are the same."""
    return with_arrays(
        bundle,
        policy_1_weight=np.zeros_like(bundle.arrays["policy.1.weight"]),
        policy_1_bias=np.full_like(bundle.arrays["policy.1.bias"], 0.3),
    )


def test_an_encoding_is_one_hot_column_after_column():
    action = np.array([2, 0, 1], np.float32)
    encoded = encode(action, (3, 2, 2))
    assert encoded.dtype == np.float32
    assert encoded.tolist() == [0, 0, 1, 1, 0, 0, 1]
    assert choose(encoded, (3, 2, 2)).tolist() == [2, 0, 1]
    assert choose(np.array([[1.0, 1.0, 0.0], [-3.0, -1.0, -1.0]]), (3,)).tolist() == [[0], [1]]
    assert encode(action, ()) is choose(action, ()) is action


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_and_export_chooses_the_same(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 300)
    bundle = KINDS[kind]
    about = bundle.description
    steps = everywhere(bundle)
    for step in steps.values():
        found = validate(bundle, step)
        assert found.num_undecided < 5
        assert found.largest_error < 1e-5
    # Actions are in single precision, the one-hot encoding of the last is in memory.
    observation = np.full(about.observation_size, 0.3, np.float32)
    for step in steps.values():
        action, memory = step(observation, np.zeros(about.memory_size, np.float32))
        assert action.dtype == np.float32
        assert action.shape == (len(about.choices),)
        encoded = memory[1 + about.latent_size :]
        np.testing.assert_array_equal(encoded, encode(action, about.choices))


def test_filter_and_policy_are_those_of_jax(random: Generator):
    choices = (3, 2)
    policy, world, model = with_filter(random, choices=choices)
    bundle = to_bundle(policy=policy, world=world, model=model)
    observations = 1.5 * random.normal(size=(40, 5)).astype(np.float32)
    own, controller = Filter(model), Controller(bundle, engine="numba")
    act = jax.jit(lambda state: world.squash(policy(state).mean))
    update = jax.jit(lambda *inputs: own.update(*inputs))
    state = own.init(jnp.asarray(observations[:1]))
    for index, observation in enumerate(observations):
        if index:
            state = update(state, act(state), observation)
        action = controller.step(observation)
        np.testing.assert_array_equal(encode(action, choices), act(state))
        np.testing.assert_allclose(controller._engine.memory[1:5], state, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["two", "two, filtered"])
def test_actions_vary(kind: str, random: Generator):
    controller = Controller(KINDS[kind], engine="numpy")
    actions = np.stack([controller.step(3 * random.normal(size=5)) for _ in range(200)])
    for column, count in enumerate(KINDS[kind].description.choices):
        assert len(np.unique(actions[:, column])) > 1
        assert set(actions[:, column]) <= set(range(count))


@pytest.mark.parametrize("kind", KINDS)
def test_a_tie_is_the_first(kind: str):
    bundle = with_equal_choices(KINDS[kind])
    memory = np.zeros(bundle.description.memory_size, np.float32)
    observation = np.zeros(5, np.float32)
    assert not reference_step(bundle, observation, memory)[0].any()
    for step in everywhere(bundle).values():
        assert not step(observation, memory)[0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_of_few_is_chosen_wherever_it_is(kind: str):
    bundle = with_equal_choices(KINDS[kind])
    choices, memory = bundle.description.choices, np.zeros(bundle.description.memory_size)
    last = np.array(choices, float) - 1
    bundle = with_arrays(bundle, policy_1_bias=encode(last, choices) - 7)
    for step in everywhere(bundle).values():
        action, _ = step(np.zeros(5, np.float32), memory.astype(np.float32))
        np.testing.assert_array_equal(action, last)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_the_filter_sees_the_encoding_of_the_last_action(engine: EngineName, random: Generator):
    about = FILTER.description
    controller, latent = Controller(FILTER, engine=engine), slice(1, 1 + about.latent_size)
    observations = random.normal(size=(30, 5)).astype(np.float32)
    action = controller.step(observations[0])
    for observation in observations[1:]:
        state = controller._engine.memory[latent].astype(float)
        told = np.concatenate([[1.0], state, encode(action, about.choices)])
        others = [
            np.concatenate([[1.0], state, encode((action + shift) % about.choices, about.choices)])
            for shift in ([1, 0], [0, 1])
        ]
        action = controller.step(observation)
        found = controller._engine.memory[latent]
        expected = reference_step(FILTER, observation, told)[1][latent]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        for other in others:
            assert (
                np.abs(reference_step(FILTER, observation, other)[1][latent] - found).max() > 1e-3
            )


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_the_filter_is_told_of_an_action_that_replaces_its_own(engine: EngineName):
    made = make_engine(FILTER, engine)
    observation, done = np.full(5, 0.2, np.float32), np.array([2, 1], np.float32)
    made.observation[...] = observation
    made.run(seen=True)
    made.set_action(done)
    before = made.memory.copy()
    np.testing.assert_array_equal(before[5:], encode(done, (3, 2)))
    made.run(seen=True)
    expected = reference_step(FILTER, observation, before)
    np.testing.assert_array_equal(made.action, expected[0])
    np.testing.assert_allclose(made.memory, expected[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@np.errstate(all="ignore")
def test_overflow_is_a_missing_observation(kind: str):
    wild = np.full(5, 3e38, np.float32)
    bundle = KINDS[kind]
    huge = 1e35 * bundle.arrays["policy.1.weight"]
    overflowing = with_arrays(bundle, policy_1_weight=huge, policy_1_bias=huge[:, 0])
    for one in (bundle, overflowing):
        for name, step in everywhere(one).items():
            memory = np.zeros(one.description.memory_size, np.float32)
            for observation in (np.ones(5, np.float32), wild, np.full(5, np.nan, np.float32)):
                action, memory = step(observation, memory)
                assert np.isfinite(memory).all(), name
                assert ((action >= 0) & (action < one.description.choices)).all(), name
                assert not (action % 1).any(), name


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"choices": (3,)}, "choices to be numbers from 2, one for each of the 2 actions"),
        ({"choices": (3, 2, 2)}, "choices to be numbers from 2"),
        ({"choices": (3, 1), "high": (2.0, 0.5)}, "choices to be numbers from 2"),
        ({"choices": (3, 65535), "high": (2.0, 65534.0)}, "at most 65536 together; got 65538"),
        ({"choices": (3, 3)}, "low and high to be 0 and the number of choices minus 1"),
        ({"low": (0.0, 0.5)}, "low and high to be 0 and the number of choices minus 1"),
        ({"low": (-1.0, 0.0)}, "low and high to be 0 and the number of choices minus 1"),
    ],
)
def test_choices_that_cannot_be_are_refused(fields: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words) as raised:
        dataclasses.replace(FILTER.description, **fields)
    assert str(raised.value).startswith("Expected ")
    assert "\n" not in str(raised.value)


def test_arrays_have_the_sizes_of_the_encoding():
    sizes = FILTER.description.sizes()
    assert sizes["policy"] == (4, 5)
    assert sizes["transition"] == (4 + 5, 8)
    assert FILTER.description.memory_size == 1 + 4 + 5
    with pytest.raises(ValueError, match=r"actions.scale to be in single precision and of shape"):
        with_arrays(FILTER, actions_scale=np.ones(2))


def test_a_bundle_that_chooses_is_written_and_read(tmp_path: Path):
    write_bundle(FILTER, tmp_path)
    assert read_bundle(tmp_path).description == FILTER.description
    assert json.loads((tmp_path / MANIFEST).read_text())["choices"] == [3, 2]


@pytest.mark.parametrize("kind", ["one", "two, filtered"])
@pytest.mark.parametrize("format", ENDINGS)
def test_an_export_is_written(
    format: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 100)
    path = tmp_path / f"it{ENDINGS[format]}"
    found, _ = export(KINDS[kind], format, path)
    assert found.num_steps == 100
    said = "index of a choice, 0 to 2"
    if format == "c":
        text = path.read_text()
        assert said in text[: text.index("*/")]
    elif format == "onnx":
        assert said in onnx.load_model(str(path)).doc_string
    else:
        with np.load(path) as archive:
            description = from_json(archive["description"].tobytes(), b"", path)
        assert description == KINDS[kind].description


class TestValidation:
    """Choices are compared exactly, unless rounding decides."""

    @pytest.fixture(autouse=True)
    def fewer_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Checking shapes at each step takes its time.
        monkeypatch.setattr("empowerment.controller.export.validation.NUM_STEPS", 200)

    def test_another_choice_is_found(self):
        def step(observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            action, after = reference_step(FILTER, observation, memory)
            return (action + 1) % FILTER.description.choices, after

        with pytest.raises(ValueError, match="off by"):
            validate(FILTER, step)

    def test_a_memory_of_another_choice_is_found(self):
        def step(observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            action, after = reference_step(FILTER, observation, memory)
            return action, np.concatenate([after[:5], 1 - after[5:]])

        with pytest.raises(ValueError, match="off by"):
            validate(FILTER, step)

    @pytest.mark.parametrize(("gap", "is_accepted"), [(0.5 * MARGIN, True), (2 * MARGIN, False)])
    def test_what_rounding_may_decide_is_counted_and_not_compared(self, gap, is_accepted):
        equal = with_equal_choices(KINDS["one, filtered"])
        bias = np.array([0.0, 0.0, gap, 0.0])
        bundle, other = (with_arrays(equal, policy_1_bias=each) for each in (bias, -bias))
        if is_accepted:
            found = validate(bundle, by_engine(other, "numpy"))
            assert 180 < found.num_undecided <= found.num_steps == 200
            assert 0 < found.largest_error < 1e-5
        else:
            with pytest.raises(ValueError, match="off by"):
                validate(bundle, by_engine(other, "numpy"))

    def test_states_are_compared_even_so(self):
        bundle = with_equal_choices(FILTER)
        start = bundle.arrays["start.1.bias"] + 0.01
        with pytest.raises(ValueError, match="off by"):
            validate(bundle, by_engine(with_arrays(bundle, start_1_bias=start), "numpy"))

    def test_the_command_says_how_many(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        for kind, bundle in (("clear", FILTER), ("equal", with_equal_choices(FILTER))):
            write_bundle(bundle, tmp_path / kind)
            words = ["export", str(tmp_path / kind), "--format", "npz"]
            main([*words, "--out", str(tmp_path / "it.npz")])
            assert ("equally good" in capsys.readouterr().err) == (kind == "equal")
