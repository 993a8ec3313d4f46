import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.capacity import AdditiveChannel, exact_empowerment
from empowerment.channel import (
    Codebook,
    Estimate,
    empowerment,
    fit_inputs,
    information_bound,
    make_channel,
    train_channel,
)
from empowerment.channel.codebook import pairwise_log_prob
from empowerment.channel.codebook_size import first_reader
from empowerment.distributions import Gaussian
from empowerment.worlds import Bounded, Box, LinearGaussian, Pendulum, mean_observation


def make(steps: int, num_codes: int, key, intent_size: int = 2) -> tuple[Codebook, Bounded]:
    world = Bounded(Pendulum())
    inputs = fit_inputs(world, steps=steps, key=key)
    channel = Codebook(
        inputs,
        steps=steps,
        action_size=1,
        intent_size=intent_size,
        num_codes=num_codes,
        width=16,
        key=key,
    )
    return channel, world


@pytest.mark.parametrize(("num_codes", "intent_size"), [(9, 2), (7, 2), (5, 1), (11, 3)])
def test_codes_are_plans_with_weights(getkey, num_codes: int, intent_size: int):
    channel, _ = make(3, num_codes, getkey(), intent_size)
    plans, log_weights = channel.codes(jnp.array([0.3, -1.0]))
    assert plans.shape == (num_codes, 3, 1)
    assert float(jnp.exp(log_weights).sum()) == pytest.approx(1, abs=1e-5)
    assert channel.draw(jnp.zeros(2), key=getkey()).shape == (3, 1)
    assert len(np.unique(np.asarray(channel.intents), axis=0)) == num_codes


def test_bound_is_the_information_of_a_discrete_channel(getkey):
    # The judge: the same inputs and weights as a discrete channel through Gaussian noise.
    channel, world = make(2, 16, getkey())
    channel = eqx.tree_at(lambda c: c.head.weight, channel, 20 * channel.head.weight)
    state = jnp.array([0.4, 0.7])
    plans, log_weights = channel.codes(state)
    futures = np.asarray(jax.vmap(lambda plan: mean_observation(world, state, plan))(plans), float)
    weights = np.exp(np.asarray(log_weights, float))
    divergence = AdditiveChannel(futures, np.full(2, 0.05), spacing=0.5).divergence(weights)
    found = empowerment(channel, world, state, key=getkey())
    assert float(found.value) == pytest.approx(float(weights @ divergence), abs=2e-3)
    assert float(found.standard_error) < 0.02


@pytest.mark.statistical
def test_one_draw_is_unbiased():
    key = jax.random.key(3)  # Fixed: the assertion is statistical, four standard errors.
    channel, world = make(2, 16, key)
    state = jnp.array([0.4, 0.7])
    keys = jax.random.split(jax.random.key(4), 4000)
    draw = jax.jit(jax.vmap(lambda key: information_bound(channel, world, state, key=key)))
    draws = draw(keys)
    value = empowerment(channel, world, state, key=key).value
    error = float(draws.std()) / math.sqrt(draws.size)
    assert abs(float(draws.mean() - value)) < 4 * error + 1e-4


@pytest.mark.statistical
def test_standard_error_is_the_spread_of_estimates():
    draws = np.random.default_rng(0).normal(size=(2000, 64))
    found = jax.vmap(Estimate.of)(jnp.asarray(draws, float))
    # Three standard errors of a standard deviation from 2000 estimates.
    assert float(found.standard_error.mean()) == pytest.approx(float(found.value.std()), rel=0.05)


def test_pairs_are_log_densities(getkey):
    values, means = jax.random.normal(getkey(), (2, 5, 3))
    scales = jnp.exp(jax.random.normal(getkey(), (5, 3)))
    pairs = pairwise_log_prob(values, means, scales)
    for row in range(5):
        for column in range(5):
            expected = Gaussian(means[column], scales[column]).log_prob(values[row])
            assert float(pairs[row, column]) == pytest.approx(float(expected), rel=1e-4, abs=1e-4)


@pytest.mark.slow
def test_bound_has_a_slope_in_the_state(getkey):
    channel, world = make(3, 16, getkey())

    def bound(state):
        return empowerment(channel, world, state, num_samples=64, key=jax.random.key(0)).value

    slope = jax.grad(bound)(jnp.array([0.5, 1.0]))
    step = 1e-2
    for axis in range(2):
        change = step * jnp.eye(2)[axis]
        middle = jnp.array([0.5, 1.0])
        difference = (bound(middle + change) - bound(middle - change)) / (2 * step)
        assert float(slope[axis]) == pytest.approx(float(difference), abs=2e-3)


def test_short_training_comes_close_and_stays_below(getkey):
    channel, world = make(1, 16, getkey(), intent_size=1)
    trained = train_channel(channel, world, num_updates=300, batch_size=16, key=getkey())
    state = jnp.array([0.5, 0.5])
    truth = exact_empowerment(Pendulum(), state, steps=1, key=getkey())
    found = empowerment(trained.model, world, state, key=getkey())
    assert truth.value - 0.1 < float(found.value) < truth.upper + 1e-3


def test_a_reading_by_the_true_noise_is_bayes_rule(getkey):
    """Where the density is known, reading with its precision gives the same information."""
    channel, world = make(2, 9, getkey())
    channel = eqx.tree_at(lambda c: c.head.weight, channel, 20 * channel.head.weight)
    reading = eqx.tree_at(
        lambda c: c.reader, channel, jnp.eye(2) / 0.05, is_leaf=lambda leaf: leaf is None
    )
    state = jnp.array([0.4, 0.7])
    judge = eqx.filter_jit(empowerment)
    known = judge(channel, world, state, num_samples=1024, key=getkey())
    read = judge(reading, world, state, num_samples=16 * 1024, key=getkey())
    assert float(read.value) == pytest.approx(
        float(known.value), abs=4 * float(read.standard_error)
    )
    blurred = eqx.tree_at(lambda c: c.reader, reading, jnp.eye(2) / 0.2)
    worse = judge(blurred, world, state, num_samples=16 * 1024, key=getkey())
    assert float(worse.value) < float(known.value)


@pytest.mark.slow
def test_where_the_density_is_not_known_the_code_is_read(getkey):
    world = Bounded(Pendulum(process_noise=0.02))
    channel = make_channel(world, family="codebook", steps=2, width=16, key=getkey())
    assert isinstance(channel, Codebook)
    assert channel.reader is not None
    trained = train_channel(channel, world, num_updates=200, batch_size=16, key=getkey()).model
    assert isinstance(trained, Codebook)
    assert trained.reader is not None
    assert not np.array_equal(trained.reader, channel.reader)
    quiet = exact_empowerment(Pendulum(), jnp.zeros(2), steps=2, key=getkey())
    found = empowerment(trained, world, jnp.zeros(2), num_samples=512, key=getkey())
    assert 0.5 < float(found.value) < quiet.value


def test_reading_begins_with_the_noise_that_there_is():
    """Two steps of a linear system: noise of each step, and of what is seen."""
    dynamics = jnp.array([[0.9, 0.4], [-0.3, 1.1]])
    shows = jnp.array([[1.0, 0.0], [0.4, 1.0]])
    noise, resolution = jnp.array([0.3, 0.2]), jnp.array([0.1, 0.4])
    world = LinearGaussian(
        dynamics=dynamics,
        control=jnp.eye(2),
        observation=shows,
        process_noise=noise,
        resolution=resolution,
        states=Box((-1.0, -1.0), (1.0, 1.0), ("a", "b")),
        actions=Box((-1.0, -1.0), (1.0, 1.0), ("left", "right")),
    )
    reader = np.asarray(first_reader(Bounded(world), 2))
    own = np.diag(noise**2)
    state = own + dynamics @ own @ dynamics.T
    wanted = shows @ state @ shows.T + np.diag(resolution**2)
    np.testing.assert_allclose(np.linalg.inv(reader.T @ reader), wanted, rtol=0.1)


@pytest.mark.slow
def test_a_channel_in_a_noisy_world_does_not_begin_by_misreading(getkey):
    world = Bounded(Pendulum(process_noise=0.1))
    channel = make_channel(world, family="codebook", steps=3, width=16, key=getkey())
    found = empowerment(channel, world, jnp.array([0.3, 0.5]), num_samples=512, key=getkey())
    assert float(found.value) > -0.1
