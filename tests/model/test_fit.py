"""From data to what a model is trained on: three parts, and how much rows past the end count."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from empowerment.data import Episode, Spaces, Trajectories
from empowerment.model import (
    DVBF,
    ModelSettings,
    Sequences,
    prepare,
    split,
    training as model_training,
)

ONE = np.ones(1)
SPACES = Spaces(-9 * ONE, 9 * ONE, -ONE, ONE, ("x",), ("u",))


def episode(number: int, length: int, *, terminated: bool = False) -> Episode:
    """An episode whose observations begin with its number."""
    random = np.random.default_rng(number)
    rows = np.concatenate([[[number]], random.normal(size=(length, 1))])
    actions = random.uniform(-1, 1, (length, 1))
    return Episode(rows, actions, terminated=terminated, truncated=not terminated)


def data_of(*lengths: int, first: int = 0, terminated: bool = False) -> Trajectories:
    numbered = enumerate(lengths, first)
    made = [episode(number, length, terminated=terminated) for number, length in numbered]
    return Trajectories(tuple(made), SPACES, {})


def numbers(data: Trajectories | None) -> list[int]:
    return [] if data is None else [int(each.observations[0, 0]) for each in data.episodes]


@given(lengths=st.lists(st.integers(4, 40), min_size=2, max_size=60), seed=st.integers(0, 99))
def test_episodes_are_in_one_of_three_parts(lengths: list[int], seed: int):
    data = data_of(*lengths)
    parts = split((data,), seed, window=5)
    train, validation, test = map(numbers, (parts.train, parts.validation, parts.test))
    kept, left = map(numbers, data.split(0.1, seed=seed))
    assert train == kept
    assert sorted(validation + test) == left
    assert validation
    again = split((data,), seed, window=5)
    assert (numbers(again.validation), numbers(again.test)) == (validation, test)


def test_test_data_is_about_half_of_what_is_left_and_stays_as_parts_are_added():
    first, second = data_of(*[10] * 100), data_of(*[10] * 40, first=100)
    alone, both = split((first,), 3, window=5), split((first, second), 3, window=5)
    assert [len(numbers(part)) for part in vars(alone).values()] == [90, 5, 5]
    assert [len(numbers(part)) for part in vars(both).values()] == [126, 7, 7]
    for one, two in zip(vars(alone).values(), vars(both).values(), strict=True):
        assert set(numbers(one)) == {number for number in numbers(two) if number < 100}


@pytest.mark.parametrize("lengths", [[50], [50, 50], [50] * 10], ids=len)
def test_with_few_episodes_there_is_no_test_data(lengths: list[int]):
    data = data_of(*lengths)
    parts = split((data,), 0, window=5)
    kept, left = data.split(0.1, seed=0)
    assert parts.test is None
    assert (parts.train.num_transitions, parts.validation.num_transitions) == (
        kept.num_transitions,
        left.num_transitions,
    )


def test_validation_keeps_what_it_needs_to_have_a_window():
    """Of 20 episodes one alone has a window: it is for validation, wherever it is drawn."""
    for seed in range(40):
        data = data_of(*[4] * 19, 12)
        left = data.split(0.1, seed=seed)[1]
        if 19 not in numbers(left):
            continue
        parts = split((data,), seed, window=10)
        assert 19 in numbers(parts.validation)
        assert parts.test is None or len(numbers(parts.test)) == len(left.episodes) - 1
        return
    raise AssertionError("Expected one of the seeds to hold it out.")


def test_the_end_is_absorbing_in_training_with_the_weight_that_is_set():
    data, cut = data_of(*[6] * 4, terminated=True), data_of(*[9] * 4)
    for weight in (0.0, 0.25, 1.0):
        made = prepare(data, data, length=8, seed=0, absorbing_weight=weight)
        chosen = jnp.arange(made.train_windows.starts.size)
        rows = np.asarray(made.train_windows.take(chosen)[0])[:, :, 0]
        actions = np.asarray(made.train_windows.take(chosen)[1])[:, :, 0]
        ended = np.arange(8)[None] + np.tile(np.arange(7), 4)[:, None] > 6
        assert np.all(rows[:, 1:][ended[:, 1:]] == rows[:, :-1][ended[:, 1:]])
        assert np.abs(actions[ended[:, 1:]]).max() > 0.5
        weights = made.train_windows.take_weights(chosen)
        if weight == 1:
            assert weights is None
        else:
            np.testing.assert_array_equal(weights, np.where(ended, weight, 1.0))
        judged = made.validation_windows.take_weights(chosen)
        np.testing.assert_array_equal(judged, np.where(ended, 0.0, 1.0))
    made = prepare(cut, cut, length=8, seed=0, absorbing_weight=0.25)
    assert made.train_windows.weights is None
    assert made.validation_windows.weights is None
    for bad in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match="absorbing_weight to be at least 0 and finite"):
            ModelSettings(absorbing_weight=bad).check()


def other_after_the_end(windows: Sequences) -> Sequences:
    """The same data but for observations of rows that do not count."""
    assert windows.weights is not None
    other = windows.observations + 3 * (windows.weights == 0).astype(float)[:, None]
    return eqx.tree_at(lambda made: made.observations, windows, other)


def test_rows_of_weight_zero_are_neither_learnt_from_nor_judged():
    data = data_of(*[6] * 4, terminated=True)
    made = prepare(data, data, length=8, seed=0, absorbing_weight=0.0)
    model = DVBF(made.observations, made.actions, latent_size=2, width=8, key=jax.random.key(0))
    pair = made.train_windows, other_after_the_end(made.train_windows)
    call = {"weights": jnp.ones(2), "learning_rates": jnp.full(2, 1e-2), "batch_size": 8}
    state = model_training.init(model, key=jax.random.key(1))
    one, two = (model_training.step(state, each, **call)[0].model for each in pair)
    assert not eqx.tree_equal(one, model)
    assert eqx.tree_equal(one, two, rtol=1e-5, atol=1e-6)
    scores = [float(model_training.probe(model, each, key=jax.random.key(2))) for each in pair]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)
