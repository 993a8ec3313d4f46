"""NumPy randomness from the seed of the test."""

import numpy as np
import pytest


@pytest.fixture
def random(getkey) -> np.random.Generator:
    """A generator; its seed is the test's own, or EMPOWERMENT_SEED if that is set."""
    return np.random.default_rng(getkey.seed)
