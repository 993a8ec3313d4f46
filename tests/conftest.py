"""Strict numerics, fixed seeds and one compilation cache for the whole suite."""

import atexit
import gc
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any

# Compilation dominates the run time: optimise nothing, generate code by the older way, which takes
# a third less, and cache everything in one directory per session, which xdist's workers and the
# tests' subprocesses inherit. There is a worker for each core: threads of its own would only wait
# for each other. JAX and NumPy read this on import.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_multi_thread_eigen=false --xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # Nobody reads them in programs.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _cache = tempfile.mkdtemp(prefix="empowerment-compiled-")
    atexit.register(shutil.rmtree, _cache, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _cache
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"  # no minimum

import hypothesis
import jax
import matplotlib as mpl
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
mpl.use("Agg")

hypothesis.settings.register_profile("fixed", deadline=None, max_examples=25, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=25)
hypothesis.settings.load_profile(os.environ.get("EMPOWERMENT_PROFILE", "fixed"))


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: all that is imported stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was imported to itself: to search it for garbage again and again takes long."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


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
    """A source of keys; its seed is the test's own, or EMPOWERMENT_SEED if that is set."""
    fixed = os.environ.get("EMPOWERMENT_SEED")
    seed = int(fixed) if fixed else zlib.crc32(request.node.nodeid.encode()) % 2**31
    request.node.user_properties.append(("seed", seed))
    print(f"seed of this test: EMPOWERMENT_SEED={seed}")
    return GetKey(seed)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray cluster: a head without cores, and two nodes with one each that import the tests."""
    import ray
    from ray.cluster_utils import Cluster

    here = [str(request.path.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    node = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={**node, "num_cpus": 0})
    try:
        for _ in range(2):
            made.add_node(wait=False, **node)
        made.wait_for_nodes(timeout=120)  # A busy machine takes longer than Ray expects.
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def short_fit() -> Iterator[None]:
    """Fit surrogates by few updates, and calibrate by few windows, to test what is around it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("empowerment.policy.surrogate._UPDATES_PER_AXIS", 200)
        patch.setattr("empowerment.model.calibration._NUM_WINDOWS", 32)
        yield
