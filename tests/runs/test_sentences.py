"""Sentences about an evaluation."""

import pytest

from empowerment.runs import summarise

FIGURES = {
    "environment": "Mine-v0",
    "episodes": 3,
    "empowerment_mean": 5.5,
    "survived_fraction": 1.0,
    "uniform": {"empowerment_mean": 5.2, "survived_fraction": 1.0},
}


@pytest.mark.parametrize(("ceiling", "is_told"), [(5.545, True), (6.931, False)])
def test_a_mean_at_its_ceiling_is_told(ceiling: float, is_told: object):
    sentences = summarise({**FIGURES, "empowerment_ceiling": ceiling})
    assert any("at the ceiling of its codebook, 5.54 nats" in each for each in sentences) is is_told
