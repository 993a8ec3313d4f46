"""Strict numerics for the whole suite, and keys whose seed a failing test prints."""

import atexit
import os
import shutil
import tempfile

# Most of the time of these tests is spent on compiling, most of that on what makes code a little
# faster. This is read when JAX comes in, here and in processes that tests start.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")

import hypothesis
import jax
import matplotlib as mpl
import numpy as np
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
mpl.use("Agg")

# What one test has compiled, the next does not compile again, in processes that it starts neither.
_compiled = tempfile.mkdtemp(prefix="empowerment-compiled-")
atexit.register(shutil.rmtree, _compiled, ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", _compiled)
os.environ["JAX_COMPILATION_CACHE_DIR"] = _compiled

hypothesis.settings.register_profile("local", deadline=None, max_examples=25)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=25, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


class GetKey:
    """Hand out fresh keys; the seed shows in the report of a failing test."""

    def __init__(self, seed: int):
        self.seed = seed
        self.count = 0

    def __call__(self) -> jax.Array:
        self.count += 1
        return jax.random.fold_in(jax.random.key(self.seed), self.count)

    def __repr__(self) -> str:
        return f"GetKey(seed={self.seed})"


@pytest.fixture
def getkey(request: pytest.FixtureRequest) -> GetKey:
    """A source of keys, new in every run; set EMPOWERMENT_SEED to repeat a failure."""
    fixed = os.environ.get("EMPOWERMENT_SEED")
    seed = int(fixed) if fixed else int(np.random.default_rng().integers(2**31))
    request.node.user_properties.append(("seed", seed))
    print(f"seed of this test: EMPOWERMENT_SEED={seed}")
    return GetKey(seed)
