import jax
import jax.numpy as jnp
import pytest

from empowerment.capacity import exact_landscape
from empowerment.channel import certify, make_channel, train_channel
from empowerment.worlds import Ball, Bounded, Pendulum

pytestmark = pytest.mark.slow

STATES = jnp.array([[0.0, 0.0], [3.0, 1.0], [0.9, 6.5]])


@pytest.fixture(scope="module")
def intervals():
    """Intervals of a briefly trained channel, and of an untrained one."""
    world = Bounded(Pendulum())
    untrained = make_channel(world, family="codebook", steps=2, width=32, key=jax.random.key(0))
    trained = train_channel(
        untrained, world, num_updates=300, batch_size=16, key=jax.random.key(1)
    ).model
    keys = jax.random.split(jax.random.key(2), len(STATES))

    def of_all(channel):
        return jax.lax.map(
            lambda both: certify(channel, world, both[0], key=both[1]), (STATES, keys)
        )

    return of_all(trained), of_all(untrained)


def test_interval_holds_the_exact_value(intervals):
    exact = exact_landscape(Pendulum(), STATES, steps=2, key=jax.random.key(0))
    for index, capacity in enumerate(exact):
        for interval in intervals:
            # The exact value is itself known to within half a thousandth.
            assert float(interval.lower[index]) <= capacity.upper
            assert float(interval.upper[index]) >= capacity.lower - 5e-4


def test_training_narrows_the_interval(intervals):
    trained, untrained = intervals
    assert float(jnp.max(trained.upper - trained.lower)) < 0.2
    assert float(jnp.min(untrained.upper - untrained.lower)) > 0.2


def test_ball_in_the_middle(getkey):
    world = Bounded(Ball(resolution=0.2))
    channel = make_channel(world, family="codebook", steps=1, width=16, key=getkey())
    interval = certify(channel, world, jnp.array([5.0, 5.0]), key=getkey())
    assert float(interval.lower) <= 2 * 1.219 <= float(interval.upper) + 1e-3
