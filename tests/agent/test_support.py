"""Which points the data support, where that is known."""

import numpy as np
import pytest

from empowerment.agent.support import USUAL, is_supported, nearest


def walks(count: int, seed: int, *, length: int = 100) -> list[np.ndarray]:
    """Episodes whose rows are normal, each about a middle of its own near zero."""
    random = np.random.default_rng(seed)
    return [
        0.2 * random.normal(size=(1, 3)) + random.normal(size=(length, 3)) for _ in range(count)
    ]


def test_the_nearest_is_that_of_a_plain_loop():
    random = np.random.default_rng(0)
    points, reference = random.normal(size=(300, 4)), random.normal(size=(70, 4))
    plain = [min(float(np.linalg.norm(one - other)) for other in reference) for one in points]
    np.testing.assert_allclose(nearest(points, reference), plain, atol=1e-6)


def test_new_data_of_the_same_system_are_supported_as_often_as_said():
    fresh = np.concatenate(walks(40, seed=1))
    share = is_supported(fresh, walks(60, seed=2), seed=0).mean()
    assert share == pytest.approx(USUAL, abs=0.01)


@pytest.mark.parametrize(("shift", "least", "most"), [(2.0, 0.5, 0.97), (4.0, 0.0, 0.5), (9, 0, 0)])
def test_what_is_elsewhere_is_not(shift: float, least: float, most: float):
    moved = np.concatenate(walks(20, seed=1)) + np.array([shift, 0, 0])
    share = is_supported(moved, walks(60, seed=2), seed=0).mean()
    assert least <= share <= most


def test_a_column_that_never_changes_is_no_reason_to_fail():
    episodes = [np.column_stack([each, np.full(len(each), 3.0)]) for each in walks(10, seed=3)]
    assert is_supported(episodes[0], episodes, seed=0).mean() > 0.9
    elsewhere = episodes[0] + np.array([0, 0, 0, 20.0])
    assert not is_supported(elsewhere, episodes, seed=0).any()
