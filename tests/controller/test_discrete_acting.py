"""Acting by choices: safety, Stable-Baselines3, and the spaces of environments."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from controllers_for_tests import discrete_bundle, pendulum_bundle
from numpy.random import Generator

from empowerment.cli import main
from empowerment.controller import Bundle, Controller, Safety, write_bundle
from empowerment.controller.reference import features, run_network

ONE, TWO = discrete_bundle((3,), angles=(1,)), discrete_bundle((2, 5))
ONE_FILTERED, FILTER = discrete_bundle((4,), latent=3), discrete_bundle((3, 2), latent=4)


class TestSafety:
    def test_by_default_it_is_the_first_of_each(self):
        controller = Controller(FILTER, safety=Safety(max_missing=1), engine="numpy")
        assert controller.step(None).tolist() == [0, 0]
        assert controller.fault is not None

    def test_after_a_fault_it_is_what_was_named(self):
        safety = Safety(max_missing=1, safe_action=(2.0, 1.0))
        controller = Controller(FILTER, safety=safety, engine="numpy")
        controller.step(np.zeros(5))
        assert controller.step(None).tolist() == [2, 1]
        assert controller.step(np.zeros(5)).tolist() == [2, 1]

    @pytest.mark.parametrize(
        ("safety", "words"),
        [
            ({"safe_action": (0.5, 0.0)}, "whole numbers, since actions are discrete"),
            ({"safe_action": (3.0, 0.0)}, "safe action to be within"),
            ({"safe_action": (-1.0, 0.0)}, "safe action to be within"),
            ({"safe_action": (1.0,)}, "safe action to be within"),
            ({"safe_action": (np.nan, 0.0)}, "safe action to be within"),
            ({"max_change": 1.0}, "max_change to be None, since actions are discrete"),
        ],
    )
    def test_settings_that_cannot_be_are_refused(self, safety: dict[str, Any], words: str):
        with pytest.raises(ValueError, match=words):
            Controller(FILTER, safety=Safety(**safety), engine="numpy")

    def test_the_record_has_indices(self, tmp_path: Path, random: Generator):
        safety = Safety(max_missing=1, record=tmp_path / "fault.json")
        controller = Controller(FILTER, safety=safety, engine="numpy")
        actions = [controller.step(random.normal(size=5)).tolist() for _ in range(8)]
        controller.step(None)
        controller.close()
        steps = json.loads((tmp_path / "fault.json").read_text())["steps"]
        assert [step["action"] for step in steps[:8]] == actions
        assert all(len(step["state"]) == 4 for step in steps)


class TestPredict:
    """Stable-Baselines3: integers, and no axis for the column of a `Discrete` space."""

    @pytest.mark.parametrize("deterministic", [True, False])
    @pytest.mark.parametrize(("bundle", "shape"), [(ONE_FILTERED, ()), (FILTER, (2,))])
    def test_actions_are_integers(self, bundle: Bundle, shape: tuple[int, ...], deterministic):
        controller = Controller(bundle, engine="numpy")
        for batch in ((), (3,)):
            action, state = controller.predict(np.zeros((*batch, 5)), None, None, deterministic)
            assert isinstance(action, np.ndarray)
            assert action.dtype == np.int64
            assert action.shape == (*batch, *shape)
            controller.predict(np.zeros((*batch, 5)), state, None, deterministic)

    def test_it_is_the_same_as_step(self, random: Generator):
        controller, alone = (Controller(FILTER, engine="numpy") for _ in range(2))
        state = None
        for observation in random.normal(size=(20, 5)).astype(np.float32):
            action, state = controller.predict(observation, state, deterministic=True)
            np.testing.assert_array_equal(action, alone.step(observation))

    @pytest.mark.statistical
    @pytest.mark.parametrize("share", [0.0, 0.5])
    def test_drawn_actions_are_those_of_the_softmax_and_of_chance(self, share: float):
        bundle = Bundle(replace(ONE.description, uniform_share=share), ONE.arrays)
        count = 4000
        observation = np.array([0.3, -0.2, 0.5, 0.1, 0.0], np.float32)
        controller = Controller(bundle, engine="numpy")
        drawn = controller.predict(np.tile(observation, (count, 1)))[0]
        logits = run_network(bundle, "policy", features(bundle, observation.astype(float)))
        expected = (1 - share) * np.exp(logits) / np.exp(logits).sum() + share / 3
        shares = np.bincount(drawn, minlength=3) / count
        assert (np.abs(shares - expected) < 4 * np.sqrt(expected * (1 - expected) / count)).all()


class Recording(gymnasium.Env):
    """An environment that checks and keeps its actions."""

    observation_space = gymnasium.spaces.Box(-9, 9, (5,), np.float32)
    actions: list[Any]

    def __init__(self, **settings: Any):
        self.action_space = settings["space"]
        Recording.actions = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        return np.ones(5, np.float32), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.actions.append(action)
        return np.ones(5, np.float32), 0.0, False, False, {}


DISCRETE = {"one": ONE, "two": TWO}
SPACES = {
    "one": gymnasium.spaces.Discrete(3, start=4),
    "two": gymnasium.spaces.MultiDiscrete([2, 5], start=[1, -1]),
}


@pytest.fixture
def recording() -> Iterator[str]:
    for kind, space in SPACES.items():
        gymnasium.register(f"Recording{kind}-v0", Recording, kwargs={"space": space})
    yield "Recording"
    for kind in SPACES:
        del gymnasium.registry[f"Recording{kind}-v0"]


@pytest.mark.parametrize("kind", SPACES)
def test_the_command_acts_in_the_space_of_the_environment(
    kind: str, recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_bundle(DISCRETE[kind], tmp_path)
    words = ["control", str(tmp_path), "--rate", "100", "--engine", "numpy"]
    main([*words, "--env", f"{recording}{kind}-v0", "--duration", "0.1", "--json"])
    assert json.loads(capsys.readouterr().out)["environment"] == f"Recording{kind}-v0"
    expected = Controller(DISCRETE[kind], engine="numpy").step(np.ones(5)) + SPACES[kind].start
    np.testing.assert_array_equal(np.ravel(Recording.actions[1]), expected)
    np.testing.assert_array_equal(np.ravel(Recording.actions[-1]), SPACES[kind].start)


def test_the_command_refuses_other_choices(
    recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def refuse(bundle: Bundle, kind: str, *words: str) -> str:
        write_bundle(bundle, tmp_path)
        command = ["control", str(tmp_path), "--rate", "100", "--engine", "numpy", *words]
        with pytest.raises(SystemExit) as stopped:
            main([*command, "--env", f"{recording}{kind}-v0"])
        assert stopped.value.code == 2
        said = capsys.readouterr().err
        assert len(said.strip().splitlines()) == 1
        return said

    assert "with 2, 5 choices, as the run has" in refuse(TWO, "one")
    assert "with 2, 2 choices, as the run has" in refuse(discrete_bundle((2, 2)), "two")
    assert "as the run has; got" in refuse(pendulum_bundle(), "one")
    assert "max_change to be None" in refuse(ONE, "one", "--max-change", "1")
