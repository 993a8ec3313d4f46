"""Distributions against SciPy, against their integrals and against their own samples."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from empowerment.distributions import (
    AbstractDistribution,
    Categorical,
    FullGaussian,
    Gaussian,
    Uniform,
)

FACTOR = [[0.5, 0.0, 0.0], [-1.0, 2.0, 0.0], [0.3, 0.7, 0.1]]
DISTRIBUTIONS = {
    "full": FullGaussian(jnp.array([0.5, -2.0, 3.0]), jnp.array(FACTOR)),
    "gaussian": Gaussian(jnp.array([0.5, -2.0, 3.0]), jnp.array([0.1, 1.0, 20.0])),
    "uniform": Uniform(jnp.array([-1.0, 4.0]), jnp.array([1.0, 4.5])),
    "categorical": Categorical(jnp.array([0.5, 0.0, 0.2, 0.3])),
}
NUM_SAMPLES = 20_000


@functools.cache
def draw(name: str, seed: int = 0) -> np.ndarray:
    keys = jax.random.split(jax.random.key(seed), NUM_SAMPLES)
    sample = jax.jit(jax.vmap(lambda key: DISTRIBUTIONS[name].sample(key=key)))
    return np.asarray(sample(keys))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_samples_are_possible(name: str):
    distribution = DISTRIBUTIONS[name]
    log_probs = jax.vmap(distribution.log_prob)(jnp.asarray(draw(name)))
    assert log_probs.shape == (NUM_SAMPLES,)
    assert np.isfinite(log_probs).all()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_key_gives_one_sample_and_another_key_another(name: str):
    keys = [jax.random.key(seed) for seed in range(10)]
    first, again = ([DISTRIBUTIONS[name].sample(key=key) for key in keys] for _ in "12")
    np.testing.assert_array_equal(jnp.stack(first), jnp.stack(again))
    assert len(np.unique(jnp.stack(first), axis=0)) > 1


@pytest.mark.parametrize(
    ("distribution", "limits"),
    [
        (Gaussian(jnp.array([0.3]), jnp.array([0.7])), (-7.0, 7.0)),
        (Gaussian(jnp.array([-20.0]), jnp.array([3.0])), (-50.0, 10.0)),
        (Uniform(jnp.array([-2.0]), jnp.array([0.5])), (-3.0, 1.0)),
    ],
)
def test_density_integrates_to_one(distribution: AbstractDistribution, limits: tuple[float, float]):
    places = np.linspace(*limits, 200_001, dtype=np.float32)
    densities = np.exp(jax.vmap(distribution.log_prob)(jnp.asarray(places)[:, None]))
    # The edges of the uniform density cost one cell of the grid.
    assert scipy.integrate.trapezoid(densities, places) == pytest.approx(1, abs=1e-4)


def test_probabilities_sum_to_one():
    distribution = DISTRIBUTIONS["categorical"]
    probabilities = np.exp(jax.vmap(distribution.log_prob)(jnp.arange(4)))
    np.testing.assert_allclose(probabilities, [0.5, 0.0, 0.2, 0.3], rtol=1e-6)


def test_gaussian_agrees_with_scipy():
    mean, scale = np.array([0.5, -2.0, 3.0]), np.array([0.1, 1.0, 20.0])
    ours = DISTRIBUTIONS["gaussian"]
    for value in np.random.default_rng(0).normal(mean, scale, (20, 3)):
        expected = scipy.stats.norm.logpdf(value, mean, scale).sum()
        actual = ours.log_prob(jnp.asarray(value, dtype=float))
        assert float(actual) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_full_gaussian_agrees_with_scipy():
    mean, covariance = [0.5, -2.0, 3.0], np.array(FACTOR) @ np.array(FACTOR).T
    theirs = scipy.stats.multivariate_normal(mean, covariance.tolist())
    for value in theirs.rvs(20, random_state=0):
        actual = DISTRIBUTIONS["full"].log_prob(jnp.asarray(value, dtype=float))
        assert float(actual) == pytest.approx(theirs.logpdf(value), rel=1e-4, abs=1e-4)


def test_full_gaussian_draws_with_the_density_of_what_it_draws():
    full = DISTRIBUTIONS["full"]
    for seed in range(10):
        value, log_prob = full.sample_and_log_prob(key=jax.random.key(seed))
        np.testing.assert_array_equal(value, full.sample(key=jax.random.key(seed)))
        assert float(log_prob) == pytest.approx(float(full.log_prob(value)), abs=1e-4)


@pytest.mark.statistical  # nine comparisons at four standard errors: 6e-4 in all
def test_full_gaussian_samples_have_its_mean_and_covariance():
    samples, covariance = draw("full"), np.array(FACTOR) @ np.array(FACTOR).T
    variance = np.diag(covariance)
    mean_error = np.sqrt(variance / NUM_SAMPLES)
    assert (np.abs(samples.mean(axis=0) - [0.5, -2.0, 3.0]) < 4 * mean_error).all()
    # Isserlis: the variance of a product is that of both and of their covariance.
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / NUM_SAMPLES)
    assert (np.abs(np.cov(samples.T) - covariance) < 4 * error).all()


@pytest.mark.statistical  # six comparisons at four standard errors: 4e-4 in all
def test_gaussian_samples_have_its_mean_and_scale():
    gaussian = DISTRIBUTIONS["gaussian"]
    assert isinstance(gaussian, Gaussian)
    samples, scale = draw("gaussian"), np.asarray(gaussian.scale)
    mean_error = scale / np.sqrt(NUM_SAMPLES)
    scale_error = scale / np.sqrt(2 * NUM_SAMPLES)
    assert (np.abs(samples.mean(axis=0) - gaussian.mean) < 4 * mean_error).all()
    assert (np.abs(samples.std(axis=0) - scale) < 4 * scale_error).all()


@pytest.mark.statistical  # four comparisons at four standard errors: 3e-4 in all
def test_uniform_samples_fill_the_box():
    uniform = DISTRIBUTIONS["uniform"]
    assert isinstance(uniform, Uniform)
    low, high = np.asarray(uniform.low), np.asarray(uniform.high)
    samples, width = draw("uniform"), high - low
    assert ((low <= samples) & (samples <= high)).all()
    error = width / np.sqrt(12 * NUM_SAMPLES)
    assert (np.abs(samples.mean(axis=0) - (low + high) / 2) < 4 * error).all()
    # The variance of a uniform sample variance is (9/5 - 1) sigma^4 / n.
    variance_error = width**2 / 12 * np.sqrt(0.8 / NUM_SAMPLES)
    assert (np.abs(samples.var(axis=0) - width**2 / 12) < 4 * variance_error).all()


@pytest.mark.statistical  # three comparisons at four standard errors: 2e-4 in all
def test_categorical_samples_have_its_frequencies():
    frequencies = np.bincount(draw("categorical"), minlength=4) / NUM_SAMPLES
    expected = np.array([0.5, 0.0, 0.2, 0.3])
    error = np.sqrt(expected * (1 - expected) / NUM_SAMPLES)
    assert frequencies[1] == 0  # impossible, not merely rare
    assert (np.abs(frequencies - expected) <= 4 * error).all()


def test_gradients_pass_through_a_gaussian_sample():
    key = jax.random.key(3)
    mean, scale = jnp.array([1.0, -1.0]), jnp.array([0.5, 2.0])

    def total(mean: jax.Array, scale: jax.Array) -> jax.Array:
        return Gaussian(mean, scale).sample(key=key).sum()

    to_mean, to_scale = jax.grad(total, argnums=(0, 1))(mean, scale)
    noise = (Gaussian(mean, scale).sample(key=key) - mean) / scale
    np.testing.assert_allclose(to_mean, [1.0, 1.0])
    np.testing.assert_allclose(to_scale, noise, rtol=1e-5)
    assert (np.asarray(to_scale) != 0).all()


def test_scale_of_zero_is_a_point_mass():
    mean = jnp.array([1.0, -1.0])
    sample = Gaussian(mean, jnp.zeros(2)).sample(key=jax.random.key(0))
    np.testing.assert_array_equal(sample, mean)


@pytest.mark.parametrize("value", [(-1.1, 4.2), (0.0, 4.6), (2.0, 0.0)])
def test_uniform_is_impossible_outside(value: tuple[float, float]):
    assert DISTRIBUTIONS["uniform"].log_prob(jnp.array(value)) == -jnp.inf


def test_uniform_is_flat_inside():
    uniform = DISTRIBUTIONS["uniform"]
    values = jnp.array([(-1.0, 4.0), (0.0, 4.2), (1.0, 4.5)])
    np.testing.assert_allclose(jax.vmap(uniform.log_prob)(values), [0.0] * 3, atol=1e-6)


def test_impossible_outcome_has_minus_infinite_log_probability():
    assert DISTRIBUTIONS["categorical"].log_prob(jnp.array(1)) == -jnp.inf
