"""Randomness whose seed a failing test prints."""

import numpy as np
import pytest


@pytest.fixture
def random(getkey) -> np.random.Generator:
    """A generator, new in every run; set EMPOWERMENT_SEED to repeat a failure."""
    return np.random.default_rng(getkey.seed)
