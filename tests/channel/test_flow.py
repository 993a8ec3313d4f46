"""Splines and coupling layers: inverses, determinants and tails."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.channel.flow import SPLINE_SIZE, Coupling, Flow, couplings, spline, unspline
from empowerment.distributions import FullGaussian

REACH = 4.0


def bent_layers(size: int, condition_size: int = 3) -> Coupling:
    """Stacked layers far from the identity."""
    layers = couplings(size, condition_size, width=16, depth=1, key=jax.random.key(1))
    return jax.tree.map(lambda leaf: 40 * leaf if eqx.is_array(leaf) else leaf, layers)


def flow_of(size: int) -> Flow:
    key = jax.random.key(size)
    factor = jnp.tril(0.3 * jax.random.normal(key, (size, size)), -1) + 0.8 * jnp.eye(size)
    gaussian = FullGaussian(jnp.linspace(-1.0, 1.0, size), factor)
    return Flow(gaussian, bent_layers(size), jnp.array([0.3, -1.0, 0.5]))


@pytest.mark.slow
def test_zeros_are_the_identity():
    values = jnp.linspace(-6.0, 6.0, 61)
    bent, log_slope = spline(jnp.zeros((61, SPLINE_SIZE)), values)
    np.testing.assert_allclose(bent, values, atol=1e-5)
    assert float(log_slope) == pytest.approx(0, abs=1e-4)


@pytest.mark.slow
def test_spline_is_monotone_continuous_and_the_identity_far_away():
    parameters = 2 * jax.random.normal(jax.random.key(0), (1, SPLINE_SIZE))
    places = jnp.linspace(-6.0, 6.0, 12_001)
    bent = jax.vmap(lambda place: spline(parameters, place[None])[0][0])(places)
    rises = np.diff(bent)
    assert (rises > -1e-6).all()
    log_slopes = jax.vmap(lambda place: spline(parameters, place[None])[1])(places)
    steepest = float(jnp.exp(log_slopes.max()))
    assert rises.max() < 1.5 * steepest * 1e-3  # no jumps
    outside = np.abs(places) >= REACH
    np.testing.assert_array_equal(bent[outside], places[outside])
    assert np.abs(bent - places).max() > 0.5  # it bends at all


def test_spline_is_undone(getkey):
    parameters = 2 * jax.random.normal(getkey(), (500, SPLINE_SIZE))
    values = jax.random.uniform(getkey(), (500,), minval=-5.0, maxval=5.0)
    bend = jax.jit(spline)
    bent, log_slope = bend(parameters, values)
    back, log_back = jax.jit(unspline)(parameters, bent)
    # Where a spline is flat, single precision forgets: compare as it is seen bent.
    again, _ = bend(parameters, back)
    np.testing.assert_allclose(again, bent, atol=2e-4)
    assert np.median(np.abs(back - values)) < 1e-5
    assert np.isfinite(float(log_slope))
    assert np.isfinite(float(log_back))


@functools.cache
def transforms(size: int):
    """Through the layers, back, and the Jacobian of the way there, compiled."""
    flow = flow_of(size)
    there = jax.jit(lambda value: flow._through(value, inverse=False))
    back = jax.jit(lambda value: flow._through(value, inverse=True))
    return there, back, jax.jit(jax.jacfwd(lambda value: there(value)[0]))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_layers_are_undone_and_their_determinant_is_that_of_the_jacobian(size: int):
    forward, inverse, slopes = transforms(size)
    for seed in range(5):
        value = jax.random.normal(jax.random.key(seed), (size,))
        noise, log_slope = forward(value)
        back, log_back = inverse(noise)
        np.testing.assert_allclose(back, value, atol=2e-3)
        assert np.abs(noise - value).max() > 1e-2
        expected = np.linalg.slogdet(np.asarray(slopes(value), np.float64))[1]
        assert float(log_slope) == pytest.approx(expected, abs=2e-3)
        assert float(log_back) == pytest.approx(-expected, abs=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 5])
def test_every_axis_is_bent_and_depends_on_the_others(size: int):
    slopes = transforms(size)[2]
    values = jax.random.normal(jax.random.key(3), (20, size))
    # Where a neighbour is beyond the reach of a spline it has no say: look at many places.
    largest = np.max([np.abs(slopes(value)) for value in values], axis=0)
    assert (largest > 1e-4).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2])
def test_condition_matters(size: int):
    flow = flow_of(size)
    other = Flow(flow.gaussian, flow.layers, -flow.condition)
    value = jnp.full((size,), 0.2)
    assert abs(float(flow.log_prob(value) - other.log_prob(value))) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("value", [-REACH, REACH, 0.0, 100.0, -1e6])
def test_gradients_are_finite_at_edges_and_far_away(value: float):
    flow = flow_of(2)
    gradient = jax.jit(jax.grad(lambda value: flow.log_prob(value)))(jnp.array([value, 0.5]))
    assert np.isfinite(gradient).all()

    def undone(value: jax.Array) -> jax.Array:
        back, log_slope = flow._through(value, inverse=True)
        return back.sum() + log_slope

    assert np.isfinite(jax.jit(jax.grad(undone))(jnp.array([value, 0.5]))).all()
