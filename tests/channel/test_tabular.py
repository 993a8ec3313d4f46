"""Learning without a model, and the discrete bound against the exact capacity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.model_free import ModelFree, model_free_loss, train_model_free

from empowerment.capacity import discrete_empowerment
from empowerment.channel import Channel, empowerment, make_channel
from empowerment.channel.tabular import discrete_bound, train_discrete
from empowerment.networks import network
from empowerment.worlds import WORLDS, Bounded, Grid, Pendulum

WORLD = Bounded(Pendulum())


@pytest.mark.parametrize("steps", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
@pytest.mark.parametrize("name", ["room", "maze", "doorways", "slippery"])
def test_discrete_bound_explains_the_exact_capacity(name: str, steps: int):
    world = WORLDS[name]()
    assert isinstance(world, Grid)
    kernel = np.asarray(world.kernel)
    exact = np.array(
        [discrete_empowerment(kernel, cell, steps=steps).value for cell in range(len(kernel))]
    )
    bound = np.asarray(train_discrete(world, steps=steps, num_updates=300, key=jax.random.key(0)))
    assert (bound <= exact + 1e-5).all()
    # Around the identity, which asks for more than a correlation.
    unexplained = np.sum((exact - bound) ** 2) / np.sum((exact - exact.mean()) ** 2)
    assert 1 - unexplained >= 0.99


def test_discrete_bound_is_the_information_if_planning_is_bayes():
    random = np.random.default_rng(0)
    channel = random.dirichlet(np.ones(4), size=6)
    source = random.dirichlet(np.ones(6))
    joint = source[:, None] * channel
    information = np.sum(joint * np.log(channel / joint.sum(axis=0)))
    logits = jnp.asarray(np.log(source), float), jnp.asarray(np.log(joint), float)
    bound = discrete_bound(*logits, jnp.asarray(channel, float))
    assert float(bound) == pytest.approx(information, abs=1e-5)
    # Any other planning loses its mean divergence from Bayes, Eq. 4.
    other = random.dirichlet(np.ones(6), size=4).T
    divergence = np.sum(joint * np.log(joint / joint.sum(axis=0) / other))
    worse = discrete_bound(
        logits[0], jnp.asarray(np.log(other), float), jnp.asarray(channel, float)
    )
    assert float(worse) == pytest.approx(information - divergence, abs=1e-5)
    assert divergence > 0.01


@pytest.mark.slow
def test_model_free_gradients_never_pass_through_the_world():
    channel = make_channel(WORLD, family="paper", steps=2, width=8, key=jax.random.key(0))
    assert isinstance(channel, Channel)
    normaliser = network(channel.inputs.size, 1, width=8, depth=1, key=jax.random.key(1))
    model = ModelFree(channel, normaliser)
    state, key = jnp.array([0.5, 1.0]), jax.random.key(2)

    def losses(model: ModelFree) -> jax.Array:
        return model_free_loss(model, WORLD, state, key=key)[0]

    gradient = eqx.filter_grad(losses)(model)
    code_key, _ = jax.random.split(key)
    features = channel.inputs.features(state)
    code = channel.source(features).sample(key=code_key)

    # The source's gradient is that of the regression alone, at a fixed code.
    bound = model_free_loss(model, WORLD, state, key=key)[1]
    residual = bound - normaliser(features)[0]

    def log_source(source) -> jax.Array:
        return source(features).log_prob(code)

    expected = eqx.filter_grad(log_source)(channel.source)
    for ours, theirs in zip(
        jax.tree.leaves(gradient.channel.source), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(ours, -2 * residual * theirs, rtol=1e-3, atol=1e-5)
    assert any((np.asarray(leaf) != 0).any() for leaf in jax.tree.leaves(gradient.channel.planning))


@pytest.mark.slow
def test_learning_without_a_model_stays_below_the_capacity():
    channel = train_model_free(
        WORLD, steps=1, num_updates=1500, batch_size=64, key=jax.random.key(3)
    )
    estimate = empowerment(channel, WORLD, jnp.zeros(2), num_samples=4096, key=jax.random.key(4))
    # One step at a resolution of 0.05: 1.354 nats everywhere.
    assert float(estimate.value - 3 * estimate.standard_error) <= 1.354
    assert float(estimate.value) > 0.8


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"family": "intent"}, "density of plans.*got 'intent'"),
        ({"num_updates": 0}, "at least 1; got 0 and 8"),
        ({"steps": 0}, "steps to be at least 1; got 0"),
    ],
)
def test_model_free_refuses(options: dict, complaint: str):
    options = {"steps": 1, "num_updates": 1, "batch_size": 8} | options
    with pytest.raises(ValueError, match=complaint):
        train_model_free(WORLD, **options, key=jax.random.key(0))


def test_discrete_refuses():
    world = Grid(". .")
    with pytest.raises(ValueError, match="steps to be at least 1; got 0"):
        train_discrete(world, steps=0, num_updates=1, key=jax.random.key(0))
    with pytest.raises(ValueError, match="num_updates to be at least 1; got 0"):
        train_discrete(world, steps=1, num_updates=0, key=jax.random.key(0))
