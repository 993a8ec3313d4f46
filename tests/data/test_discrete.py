"""Discrete actions and observations that are no vectors: encoded, decoded, flattened, refused."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Text, Tuple

from empowerment.data import (
    RandomActor,
    Trajectories,
    collect,
    make_environment,
    spaces_of,
    split_agents,
    to_space,
    windows,
)
from empowerment.data.spaces import Spaces


class Echo(gymnasium.Env):
    """Takes any action of its space, and refuses any other; the observation is given."""

    def __init__(self, action_space: Space, observation_space: Space | None = None, last: int = 9):
        self.action_space = action_space
        self.observation_space = observation_space or Box(-1.0, 1.0, (2,))
        self._last = last

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self._time += 1
        return self.observation_space.sample(), 0.0, self._time == self._last, False, {}


ACTIONS: dict[str, tuple[Space, tuple[int, ...]]] = {
    "discrete": (Discrete(3), (3,)),
    "from one": (Discrete(4, start=1), (4,)),
    "several": (MultiDiscrete([3, 2]), (3, 2)),
    "several from": (MultiDiscrete([3, 2], start=[5, -1]), (3, 2)),
    "switches": (MultiBinary(3), (2, 2, 2)),
}


@pytest.mark.parametrize("kind", ACTIONS)
def test_discrete_actions_are_collected_as_numbers_from_zero(kind: str, tmp_path: Path):
    space, choices = ACTIONS[kind]
    data, report = collect(lambda: Echo(space), steps=300, seed=1)
    assert not report.failed
    assert data.spaces.action_choices == choices
    actions = np.concatenate([episode.actions for episode in data.episodes])
    for column, count in zip(actions.T, choices, strict=True):
        assert set(column) == set(range(count))
        shares = np.bincount(column.astype(int)) / len(column)
        np.testing.assert_allclose(shares, 1 / count, atol=0.12)
    data.save(tmp_path / "data.npz")
    again = Trajectories.load(tmp_path / "data.npz")
    assert again.spaces == data.spaces
    assert again.spaces.action_choices == choices


def test_encoding_is_one_hot():
    spaces = spaces_of(Echo(MultiDiscrete([3, 2])), "echo")
    assert spaces.encoded_names == (
        "action_0=0", "action_0=1", "action_0=2", "action_1=0", "action_1=1",
    )  # fmt: skip
    actions = np.array([[0, 1], [2, 0]], np.float32)
    encoded = spaces.encode(actions)
    np.testing.assert_array_equal(encoded, [[1, 0, 0, 0, 1], [0, 0, 1, 1, 0]])
    for odd in (3.0, -1.0, 0.5):
        with pytest.raises(ValueError, match="whole numbers from 0 to 2"):
            spaces.encode(np.array([[odd, 0]], np.float32))


def test_an_action_becomes_one_of_its_space():
    for space, choices in ACTIONS.values():
        last = np.array(choices, np.float32) - 1
        assert space.contains(to_space(last, space))
        assert space.contains(to_space(0 * last, space))
    assert to_space(np.array([2.0], np.float32), Discrete(4, start=1)) == 3


def test_windows_are_encoded_and_so_are_actions_after_the_end():
    data, _ = collect(lambda: Echo(Discrete(3)), steps=45, seed=2)
    cut = windows(data, 6, seed=0)
    assert cut.actions.shape[1] == 3
    frozen = cut.actions[~cut.recorded]
    assert set(frozen.sum(axis=1)) == {0.0, 1.0}  # The last row of an episode is padding.
    np.testing.assert_array_equal(
        cut.actions[cut.recorded][:9], data.spaces.encode(data.episodes[0].actions)
    )


def test_alike_agents_have_choices_each():
    data, _ = collect(lambda: Echo(MultiDiscrete([3, 3])), steps=20, seed=0)
    assert split_agents(data, 2).spaces.action_choices == (3,)


@pytest.mark.parametrize(
    ("choices", "high"), [((1,), (0.0,)), ((3,), (3.0,)), ((2, 2), (1.0,)), ((5000,), (4999.0,))]
)
def test_choices_that_cannot_be_are_refused(choices: tuple[int, ...], high: tuple[float, ...]):
    zeros = np.zeros(1)
    with pytest.raises(ValueError, match="Expected discrete actions to have two choices or more"):
        Spaces(zeros, zeros + 1, zeros, np.array(high), ("x",), ("u",), choices)


FLAT: dict[str, tuple[Space, int]] = {
    "dictionary": (Dict(place=Box(-1, 1, (2,)), kind=Discrete(3)), 5),
    "tuple": (Tuple((Box(-1, 1, (1,)), MultiBinary(2))), 3),
    "discrete": (Discrete(6), 6),
    "matrix": (Box(-1, 1, (2, 3)), 6),
}


@pytest.mark.parametrize("kind", FLAT)
def test_observations_of_other_kinds_are_flattened(kind: str):
    space, size = FLAT[kind]
    data, _ = collect(lambda: Echo(Discrete(2), space), steps=20, seed=0)
    assert data.observation_size == size


REFUSED: dict[str, tuple[Space, Space, str]] = {
    "image": (Box(0, 255, (8, 8, 3), np.uint8), Discrete(2), "such as an image. Reduce it to"),
    "image within": (Dict(eye=Box(0, 255, (8, 8), np.uint8)), Discrete(2), "Box of numbers"),
    "text": (Text(5), Discrete(2), "TransformObservation can make vectors"),
    "too many": (Box(-1, 1, (100_000,)), Discrete(2), "at most 4096 numbers; got 100000"),
    "one choice": (Box(-1, 1, (2,)), Discrete(1), "two choices or more"),
    "tuple of actions": (Box(-1, 1, (2,)), Tuple((Discrete(2), Discrete(3))), "TransformAction"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_learnt_from_is_refused_with_a_remedy(kind: str):
    observation_space, action_space, words = REFUSED[kind]
    environment = make_environment(lambda: Echo(action_space, observation_space))
    with pytest.raises(ValueError, match=words) as caught:
        spaces_of(environment, "echo")
    assert "\n" not in str(caught.value)


def test_random_actors_take_every_choice():
    spaces = spaces_of(Echo(MultiDiscrete([2, 5])), "echo")
    actor = RandomActor(spaces)
    actor.reset(seed=0)
    actions = np.stack([actor(np.zeros(2, np.float32)) for _ in range(100)])
    assert [len(set(column)) for column in actions.T] == [2, 5]
