"""Certified intervals against brute force, and what is not certified."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.odd_worlds import Foggy, Product, Scalar, Shaky, Squash, Steady, truth

from empowerment.capacity import exact_landscape
from empowerment.channel import AbstractChannel, certify, make_channel, train_channel
from empowerment.channel.certificate import certify_at
from empowerment.worlds import AbstractWorld, Ball, Bounded, Pendulum


def made(world: AbstractWorld, steps: int, num_updates: int) -> tuple[AbstractChannel, Bounded]:
    bounded = Bounded(world)
    make_key, train_key = jax.random.split(jax.random.key(5))
    channel = make_channel(bounded, family="codebook", steps=steps, width=16, key=make_key)
    if not num_updates:
        return channel, bounded
    trained = train_channel(channel, bounded, num_updates=num_updates, batch_size=8, key=train_key)
    return trained.model, bounded


@pytest.mark.parametrize(
    ("world", "num_updates"),
    [
        (Foggy(), 0),
        pytest.param(Steady(), 100, marks=pytest.mark.slow),
        pytest.param(Foggy(), 100, marks=pytest.mark.slow),
        pytest.param(Steady(), 0, marks=pytest.mark.slow),
        pytest.param(Shaky(), 0, marks=pytest.mark.slow),
        pytest.param(Shaky(), 100, marks=pytest.mark.slow),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, AbstractWorld) else None,
)
def test_interval_holds_the_truth_where_noise_varies(
    world: AbstractWorld, num_updates: int, getkey
):
    channel, bounded = made(world, 1, num_updates)
    places = (-0.6, 0.8)
    keys = jax.random.split(getkey(), 2)
    intervals = certify_at(channel, bounded, jnp.array(places)[:, None], keys)
    for index, place in enumerate(places):
        low, high = truth(world, place)
        lower, upper = float(intervals.lower[index]), float(intervals.upper[index])
        assert lower <= high
        assert upper >= low
        assert upper - high < 0.03
        assert upper > lower


STATES = jnp.array([[0.0, 0.0], [3.0, 1.0], [0.9, 6.5]])


@pytest.fixture(scope="module")
def pendulum() -> tuple[np.ndarray, np.ndarray]:
    """Intervals of an untrained channel over three steps, by six keys, and exact values."""
    channel, world = made(Pendulum(), 3, 0)
    keys = jax.random.split(jax.random.key(2), (6, len(STATES)))
    rows = [certify_at(channel, world, STATES, key) for key in keys]
    exact = exact_landscape(Pendulum(), STATES, steps=3, key=jax.random.key(0))
    bounds = np.array([[capacity.lower, capacity.upper] for capacity in exact])
    return np.stack([np.stack([row.lower, row.upper]) for row in rows]), bounds


def test_interval_of_every_key_holds_the_exact_value(pendulum):
    intervals, exact = pendulum
    assert np.all(intervals[:, 0] <= exact[:, 1])
    assert np.all(intervals[:, 1] >= exact[:, 0])


def test_upper_bound_is_tight_without_training(pendulum):
    intervals, exact = pendulum
    assert np.all(intervals[:, 1] - exact[:, 1] < 0.05)


def test_lower_end_is_below_the_estimate(monkeypatch: pytest.MonkeyPatch, getkey):
    # Few samples of a flow: its standard error is large, and the interval must allow for it.
    monkeypatch.setattr("empowerment.channel.certificate._NUM_SEARCHED", 128)  # for the other end
    world = Bounded(Scalar())
    channel = make_channel(world, family="gaussian", steps=1, width=16, depth=1, key=getkey())
    state = jnp.zeros(1)
    keys = jax.random.split(getkey(), 32)
    states = jnp.tile(state, (32, 1))
    lower = np.asarray(certify_at(channel, world, states, keys, num_samples=64).lower)
    precise = channel.estimate(world, state, num_samples=20_000, key=getkey())
    assert np.all(lower <= float(precise.value) + 3 * float(precise.standard_error))
    assert lower.mean() < float(precise.value) - 2 * lower.std()


@pytest.mark.slow
def test_ball_in_the_middle(getkey):
    channel, world = made(Ball(resolution=0.2), 1, 0)
    interval = certify(channel, world, jnp.array([5.0, 5.0]), key=getkey())
    assert float(interval.lower) <= 2 * 1.219 <= float(interval.upper)
    assert float(interval.upper) < 2 * 1.219 + 0.1


@pytest.mark.parametrize(
    ("world", "steps", "message"),
    [
        (Product(Scalar(), 3), 1, "at most two perceived axes"),
        (Squash(), 1, "known in closed form"),
        (Scalar(), 1, "outside of jit"),
    ],
    ids=["three axes", "not affine", "traced"],
)
def test_what_cannot_be_certified_is_refused(
    world: AbstractWorld, steps: int, message: str, getkey
):
    channel, bounded = made(world, steps, 0)
    state = jnp.zeros(world.states.size)
    asked = eqx.filter_jit(certify) if "jit" in message else certify
    with pytest.raises(ValueError, match=f"^Expected .*{message}"):
        asked(channel, bounded, state, key=getkey())
