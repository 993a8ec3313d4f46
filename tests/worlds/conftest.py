"""The continuous worlds that all keep the same contract."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from empowerment.worlds import (
    AbstractWorld,
    Ball,
    Bounded,
    Box,
    CartPole,
    Chain,
    LinearGaussian,
    Pendulum,
    double_integrator,
)


def make_linear() -> LinearGaussian:
    """Three states, two of whose mixtures are seen, two forces, noise everywhere."""
    return LinearGaussian(
        dynamics=jnp.array([[0.9, 0.2, 0.0], [-0.1, 0.8, 0.3], [0.0, 0.1, 1.05]]),
        control=jnp.array([[0.5, 0.0], [0.0, 1.0], [0.3, -0.2]]),
        observation=jnp.array([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]]),
        process_noise=jnp.array([0.1, 0.2, 0.05]),
        resolution=jnp.array([0.3, 0.1]),
        states=Box((-1.0, -2.0, -3.0), (1.0, 2.0, 3.0), ("a", "b", "c")),
        actions=Box((-1.0, -jnp.inf), (1.0, jnp.inf), ("left", "right")),
    )


FACTORIES: dict[str, Callable[[], AbstractWorld]] = {
    "pendulum": Pendulum,
    "noisy-pendulum": lambda: Pendulum(process_noise=0.1),
    "ball": Ball,
    "cart": double_integrator,
    "cart-pole": CartPole,
    "chain": lambda: Chain(num_links=2, driven=(1,)),
    "long-chain": lambda: Chain(num_links=3, driven=(1,)),
    "linear": make_linear,
    "bounded-pendulum": lambda: Bounded(Pendulum()),
    "bounded-ball": lambda: Bounded(Ball(process_noise=0.2)),
}


SLOW = ("long-chain",)  # The code of the other chain, which takes longer to compile.


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in FACTORIES
    ]
)
def world(request: pytest.FixtureRequest) -> AbstractWorld:
    """Each world of the registry in turn."""
    return FACTORIES[request.param]()


@pytest.fixture
def linear() -> LinearGaussian:
    """The linear world of the registry."""
    return make_linear()


def draw_inside(box: Box, key: jax.Array) -> jax.Array:
    """Draw from the middle of a box, away from clips; normal where there is no limit."""
    unit = jax.random.uniform(key, (box.size,), box.low.dtype, -0.8, 0.8)
    half = 0.5 * (box.high - box.low)
    return box.centre + jnp.where(jnp.isfinite(half), half, jnp.ones_like(half)) * unit


@pytest.fixture
def draw() -> Callable[[Box, jax.Array], jax.Array]:
    """A way to draw from the middle of a box."""
    return draw_inside
