"""The pace of an environment, against processes whose pace is known in closed form."""

import numpy as np
import pytest

from empowerment.data import Episode, Trajectories, repeat_of
from empowerment.data.spaces import free_spaces

_STEPS, _EPISODES = 4000, 6


def walks(half_lives: list[float]) -> Trajectories:
    """Autoregressive columns: differences over k steps are 1 - decay ** k of their limit."""
    random = np.random.default_rng(0)
    decay = 0.5 ** (1 / np.asarray(half_lives, float))
    episodes = []
    for _ in range(_EPISODES):
        rows = [random.normal(size=decay.size)]
        for noise in random.normal(size=(_STEPS, decay.size)):
            rows.append(decay * rows[-1] + np.sqrt(1 - decay**2) * noise)
        actions = np.zeros((_STEPS, 1))
        episodes.append(Episode(np.array(rows), actions, terminated=False, truncated=True))
    spaces = free_spaces([f"x{at}" for at in range(decay.size)], ["u"])
    return Trajectories(tuple(episodes), spaces, {})


@pytest.mark.parametrize("half_life", [2, 20, 45, 80])
def test_an_action_is_repeated_so_that_six_are_left_while_a_quarter_changes(half_life):
    steps = np.ceil(np.log2(4 / 3) * half_life)  # Where 1 - 0.5 ** (k / half_life) = 1/4.
    assert repeat_of(walks([half_life])) == max(1, steps // 6)


def test_the_fastest_column_decides():
    assert repeat_of(walks([80, 3, 400])) == 1


def test_what_hardly_changes_is_repeated_sixteen_times_at_most():
    assert repeat_of(walks([3000])) == 16


def test_few_rows_and_constant_columns_repeat_nothing():
    data = walks([80])
    path = data.episodes[0].observations
    for observations in (path[:50], np.ones((500, 1))):
        actions = np.zeros((len(observations) - 1, 1))
        episode = Episode(observations, actions, terminated=False, truncated=True)
        assert repeat_of(Trajectories((episode,), data.spaces, {})) == 1
