"""The contract that every family keeps, and what sets families apart."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from empowerment.capacity import exact_landscape
from empowerment.channel import (
    Channel,
    Codebook,
    Inputs,
    empowerment,
    information_bound,
    train_channel,
)
from empowerment.channel.choice import make_channel
from empowerment.channel.families import FAMILIES, Sizes
from empowerment.channel.planning import FlowPlanning
from empowerment.channel.source import FlowSource, IntentSource
from empowerment.distributions import AbstractDistribution, Gaussian
from empowerment.networks import full_size, network
from empowerment.types import Action, State
from empowerment.worlds import (
    AbstractWorld,
    Ball,
    Bounded,
    Box,
    LinearGaussian,
    Pendulum,
    double_integrator,
)

WORLD = Bounded(Pendulum())
STATE = jnp.array([0.7, -1.0])
STEPS = (1, pytest.param(3, marks=pytest.mark.slow))
EACH = [
    pytest.param(family, marks=[] if family == "paper" else [pytest.mark.slow])
    for family in FAMILIES
]


@functools.cache
def channel_of(family: str, steps: int) -> Channel:
    """A small channel with parameters far from where training starts."""
    return eqx.filter_jit(far_channel)(family, steps)


def far_channel(family: str, steps: int) -> Channel:
    made = FAMILIES[family](
        Inputs(WORLD.states, jnp.array([[3.0, 0.0], [-1.0, 4.0]])),
        Sizes(steps=steps, action=1, observation=2, width=16, depth=1),
        key=jax.random.key(0),
    )
    assert isinstance(made, Channel)
    arrays, rest = eqx.partition((made.source, made.planning), eqx.is_inexact_array)
    leaves, form = jax.tree.flatten(arrays)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [
        leaf + 0.2 * jax.random.normal(key, leaf.shape)
        for key, leaf in zip(keys, leaves, strict=True)
    ]
    source, planning = eqx.combine(jax.tree.unflatten(form, moved), rest)
    return Channel(source=source, planning=planning, inputs=made.inputs, steps=steps)


def sides(family: str, steps: int) -> dict[str, AbstractDistribution]:
    """Both distributions of a channel at one place."""
    channel = channel_of(family, steps)
    features = channel.inputs.features(STATE)
    return {
        "source": channel.source(features),
        "planning": channel.planning(features, jnp.array([0.5, -0.8])),
    }


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("side", ["source", "planning"])
@pytest.mark.parametrize("family", EACH)
def test_a_draw_comes_with_its_own_density(family: str, side: str, steps: int):
    distribution = sides(family, steps)[side]
    keys = jax.random.split(jax.random.key(2), 64)
    draw = jax.jit(jax.vmap(lambda key: distribution.sample_and_log_prob(key=key)))
    values, log_probs = draw(keys)
    assert values.ndim == 2
    again = jax.jit(jax.vmap(lambda value: distribution.log_prob(value)))(values)
    np.testing.assert_allclose(log_probs, again, rtol=1e-3, atol=5e-3)
    assert len(np.unique(values, axis=0)) == 64


@pytest.mark.parametrize("side", ["source", "planning"])
@pytest.mark.parametrize("family", EACH)
def test_density_of_one_action_integrates_to_one_and_is_that_of_the_draws(family: str, side: str):
    distribution = sides(family, 1)[side]
    places = np.linspace(-30, 30, 60_001, dtype=np.float32)
    log_prob = jax.jit(jax.vmap(lambda value: distribution.log_prob(value)))
    densities = np.exp(np.asarray(log_prob(jnp.asarray(places)[:, None]), np.float64))
    total = scipy.integrate.cumulative_trapezoid(densities, places, initial=0)
    assert total[-1] == pytest.approx(1, abs=2e-3)
    keys = jax.random.split(jax.random.key(3), 4000)
    draws = jax.jit(jax.vmap(lambda key: distribution.sample(key=key)))(keys)[:, 0]
    # Fixed keys, ten comparisons, each wrong once in ten thousand.
    judged = scipy.stats.kstest(draws, lambda value: np.interp(value, places, total))
    assert judged.pvalue > 1e-4


@pytest.mark.parametrize("side", ["source", "planning"])
@pytest.mark.parametrize("family", EACH)
def test_density_of_two_actions_integrates_to_one(family: str, side: str):
    distribution = sides(family, 2)[side]
    ticks = np.linspace(-12, 12, 601, dtype=np.float32)
    grid = jnp.asarray(np.stack(np.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2))
    densities = np.exp(
        np.asarray(jax.jit(jax.vmap(lambda value: distribution.log_prob(value)))(grid))
    )
    total = densities.astype(np.float64).sum() * (ticks[1] - ticks[0]) ** 2
    assert total == pytest.approx(1, abs=3e-3)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("family", EACH)
def test_information_is_finite_and_differentiable(family: str, steps: int):
    channel = channel_of(family, steps)

    @eqx.filter_jit
    def both(channel: Channel, states: jax.Array, keys: jax.Array):
        def total(channel: Channel, states: jax.Array) -> jax.Array:
            each = jax.vmap(lambda s, k: information_bound(channel, WORLD, s, key=k))
            return each(states, keys).sum()

        value, gradient = eqx.filter_value_and_grad(total)(channel, states)
        return value, gradient, jax.grad(total, argnums=1)(channel, states)

    states = jnp.array([[0.0, 0.0], [3.0, -7.9], [-2.0, 5.0]])
    value, gradient, slope = both(channel, states, jax.random.split(jax.random.key(4), 3))
    assert np.isfinite(value)
    assert slope.shape == (3, 2)
    assert np.isfinite(slope).all()
    assert (np.asarray(slope) != 0).any()
    for part in (gradient.source, gradient.planning):
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(part)]
        assert all(np.isfinite(leaf).all() for leaf in leaves)
        assert any((leaf != 0).any() for leaf in leaves)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("family", EACH)
def test_plans_have_their_shape_and_vary(family: str, steps: int):
    channel = channel_of(family, steps)
    keys = jax.random.split(jax.random.key(5), 8)
    plans = jax.jit(jax.vmap(lambda key: channel.draw(STATE, key=key)))(keys)
    assert plans.shape == (8, steps, 1)
    assert plans.dtype == jnp.float32
    assert (np.std(plans, axis=0) > 0).all()


def couples(family: str, first: int, second: int) -> float:
    """How much planning ties two actions: a mixed second derivative of its log-density."""
    planning = sides(family, 3)["planning"]
    hessian = jax.jit(jax.hessian(lambda value: planning.log_prob(value)))
    return float(hessian(jnp.array([0.4, -0.3, 0.6]))[first, second])


def test_the_paper_ties_neighbours_only():
    assert abs(couples("paper", 0, 1)) > 1e-3
    assert abs(couples("paper", 1, 2)) > 1e-3
    assert couples("paper", 0, 2) == 0


@pytest.mark.parametrize(
    "family",
    ["autoregressive", "gaussian", pytest.param("flow", marks=pytest.mark.slow)],
)
def test_richer_families_tie_all_actions(family: str):
    assert abs(couples(family, 0, 2)) > 1e-3


@pytest.mark.parametrize("family", ["paper", "autoregressive"])
def test_first_action_is_drawn_without_the_others(family: str):
    """Its density is what is left after the others are summed out: nothing of them in it."""
    planning = sides(family, 2)["planning"]
    ticks = jnp.linspace(-30.0, 30.0, 20_001)
    log_prob = jax.jit(jax.vmap(lambda value: planning.log_prob(value)))

    def marginal(first: float) -> float:
        plans = jnp.stack([jnp.full_like(ticks, first), ticks], axis=1)
        return float(jax.nn.logsumexp(log_prob(plans))) + np.log(0.003)

    draw = jax.jit(jax.vmap(lambda key: planning.sample(key=key)))
    one_step = draw(jax.random.split(jax.random.key(6), 4000))[:, 0]
    mean, scale = float(one_step.mean()), float(one_step.std())
    for offset in (-1.0, 0.0, 1.0):
        expected = scipy.stats.norm.logpdf(mean + offset * scale, mean, scale)
        assert marginal(mean + offset * scale) == pytest.approx(expected, abs=0.1)


def test_an_intent_has_no_more_axes_than_is_perceived():
    for steps, size in ((1, 1), (2, 2), (3, 2)):
        source = channel_of("intent", steps).source
        assert isinstance(source, IntentSource)
        assert source.intent_size == size


# The gap of the bound, Eq. 4, where everything is known in closed form.

LINEAR = LinearGaussian(
    dynamics=jnp.eye(2),
    control=jnp.array([[1.0, 0.3], [-0.5, 0.8]]),
    observation=jnp.array([[1.0, 0.0], [0.4, 1.0]]),
    process_noise=jnp.array([0.3, 0.2]),
    resolution=jnp.array([0.1, 0.4]),
    states=Box((-1.0, -1.0), (1.0, 1.0), ("a", "b")),
    actions=Box((-jnp.inf,) * 2, (jnp.inf,) * 2, ("left", "right")),
)
WHITENER = np.array([[1.5, 0.0], [-0.4, 2.0]])
SOURCE_MEAN = np.array([0.2, -0.1])
SOURCE_FACTOR = np.array([[0.8, 0.0], [0.5, 1.2]])


def linear_channel(offset: np.ndarray, gain: np.ndarray, factor: np.ndarray) -> Channel:
    """The Gaussian family with a fixed source, and planning of mean offset + gain @ seen."""

    def fixed(in_size: int, weight: np.ndarray, mean: np.ndarray, factor: np.ndarray):
        made = network(in_size, full_size(2), width=1, depth=0, key=jax.random.key(0))
        bias = np.concatenate([mean, np.log(np.diag(factor)), factor[np.tril_indices(2, -1)]])
        arrays = jnp.asarray(weight, float), jnp.asarray(bias, float)
        return eqx.tree_at(lambda n: (n.layers[0].weight, n.layers[0].bias), made, arrays)

    to_mean = np.zeros((full_size(2), 4))
    to_mean[:2, 2:] = gain
    source = fixed(2, np.zeros((full_size(2), 2)), SOURCE_MEAN, SOURCE_FACTOR)
    planning = fixed(4, to_mean, offset, factor)
    inputs = Inputs(LINEAR.states, jnp.asarray(WHITENER, float))
    return Channel(
        source=FlowSource(source, None, 2, 1),
        planning=FlowPlanning(planning, None, 2),
        inputs=inputs,
        steps=1,
    )


def posterior() -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Information, posterior offset, gain and covariance, mean and covariance of what is seen."""
    observe = np.asarray(LINEAR.observation, np.float64)
    noise = observe @ np.diag(np.asarray(LINEAR.process_noise, np.float64) ** 2) @ observe.T
    noise += np.diag(np.asarray(LINEAR.resolution, np.float64) ** 2)
    reach = WHITENER @ observe @ np.asarray(LINEAR.control, np.float64)
    prior = SOURCE_FACTOR @ SOURCE_FACTOR.T
    seen_mean = reach @ SOURCE_MEAN
    seen = reach @ prior @ reach.T + WHITENER @ noise @ WHITENER.T
    gain = prior @ reach.T @ np.linalg.inv(seen)
    covariance = prior - gain @ reach @ prior
    information = 0.5 * np.log(np.linalg.det(prior) / np.linalg.det(covariance))
    return information, SOURCE_MEAN - gain @ seen_mean, gain, covariance, seen_mean, seen


def mean_divergence(offset: np.ndarray, gain: np.ndarray, factor: np.ndarray) -> float:
    """The mean over what is seen of the divergence of planning from the posterior."""
    _, true_offset, true_gain, covariance, seen_mean, seen = posterior()
    precision = np.linalg.inv(factor @ factor.T)
    miss, slope = true_offset - offset, true_gain - gain
    at_mean = miss + slope @ seen_mean
    squared = at_mean @ precision @ at_mean + np.trace(precision @ slope @ seen @ slope.T)
    volume = np.log(np.linalg.det(factor @ factor.T) / np.linalg.det(covariance))
    return 0.5 * (np.trace(precision @ covariance) - 2 + volume + squared)


@pytest.mark.statistical  # four comparisons at four standard errors: 3e-4 in all
@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.3, 1.0])
def test_gap_is_the_mean_divergence_of_planning(wrong: float):
    information, offset, gain, covariance, _, _ = posterior()
    random = np.random.default_rng(0)
    offset = offset + wrong * random.normal(size=2)
    gain = gain + wrong * random.normal(size=(2, 2))
    factor = np.linalg.cholesky(covariance) @ np.diag(np.exp(wrong * random.normal(size=2)))
    gap = mean_divergence(offset, gain, factor)
    assert (gap > 1e-3) if wrong else gap == pytest.approx(0, abs=1e-9)
    channel = linear_channel(offset, gain, factor)
    keys = jax.random.split(jax.random.key(7), 40_000)
    one = jax.vmap(lambda key: information_bound(channel, LINEAR, jnp.array([0.4, -0.7]), key=key))
    draws = np.asarray(eqx.filter_jit(one)(keys), np.float64)
    error = draws.std(ddof=1) / np.sqrt(len(draws))
    assert abs(draws.mean() - (information - gap)) < 4 * error
    assert error < 0.02 * max(gap, 1)


# Training.


@functools.cache
def truth() -> tuple[jax.Array, np.ndarray]:
    states = jnp.array([[0.0, 0.0], [np.pi, 0.0], [1.0, -3.0]])
    found = exact_landscape(Pendulum(), states, steps=2, key=jax.random.key(0))
    return states, np.array([capacity.value for capacity in found])


@pytest.mark.parametrize(
    "family",
    [pytest.param(f, marks=[] if f == "gaussian" else [pytest.mark.slow]) for f in FAMILIES],
)
def test_training_raises_the_bound_but_never_above_the_capacity(family: str):
    channel = make_channel(WORLD, family=family, steps=2, width=32, depth=1, key=jax.random.key(8))
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        trained = train_channel(
            channel, WORLD, num_updates=400, batch_size=64, key=jax.random.key(9)
        )
    states, exact = truth()
    judge = eqx.filter_jit(
        lambda channel: jax.vmap(
            lambda state, key: empowerment(channel, WORLD, state, num_samples=1024, key=key)
        )(states, jax.random.split(jax.random.key(10), len(states)))
    )
    before, after = judge(channel), judge(trained.model)
    assert (after.value - 3 * after.standard_error <= exact).all()
    assert (after.value > before.value + 0.5).all()
    assert (after.value > 1.0).all()
    assert (after.standard_error < 0.1).all()


# Choosing by name.


@pytest.mark.parametrize(
    ("steps", "few", "many"),
    [
        (1, 32, 32),
        (5, 81, 144),
        pytest.param(2, 32, 49, marks=pytest.mark.slow),
        pytest.param(10, 324, 529, marks=pytest.mark.slow),
    ],
)
def test_codes_are_as_many_as_can_be_told_apart(steps: int, few: int, many: int):
    channel = make_channel(WORLD, family="auto", steps=steps, key=jax.random.key(0))
    assert isinstance(channel, Codebook)
    assert few <= len(channel.intents) <= many
    assert channel.intents.shape[1] == min(steps, 2)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_channels_fit_a_world_with_two_actions(family: str):
    world = Bounded(Ball())
    channel = make_channel(world, family=family, steps=2, width=8, key=jax.random.key(0))
    plan = channel.draw(world.states.centre, key=jax.random.key(1))
    assert plan.shape == (2, 2)
    bound = information_bound(channel, world, world.states.centre, key=jax.random.key(2))
    assert np.isfinite(bound)


class Singular(AbstractWorld):
    """A world with a hole: the successor is not finite for positions below minus a half."""

    states: Box
    actions: Box

    def __init__(self):
        self.states = Box((-1.0,), (1.0,), ("position",))
        self.actions = Box((-1.0,), (1.0,), ("force",))

    def initial(self) -> AbstractDistribution:
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        moved = jnp.where(state < -0.5, jnp.log(state + 0.5), state + action)
        return Gaussian(moved, jnp.zeros_like(state))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, jnp.full_like(state, 0.1))


def boundless() -> Bounded:
    cart = double_integrator()
    states = Box((-jnp.inf, -1.0), (jnp.inf, 1.0), ("position", "velocity"))
    return Bounded(eqx.tree_at(lambda cart: cart.states, cart, states))


@pytest.mark.parametrize(
    ("world", "options", "complaint"),
    [
        (WORLD, {"family": "magic"}, r"one of paper, .*linearised; got 'magic'"),
        (WORLD, {"steps": 0}, r"steps to be at least 1; got 0"),
        (Pendulum(), {}, r"before the squash; got Pendulum\. Wrap it: Bounded\(world\)"),
        (LINEAR, {}, r"before the squash; got LinearGaussian"),
        (boundless(), {}, r"region of states to be finite.*got \[-inf"),
        (Bounded(Singular()), {}, r"finite everywhere in the region.* of state \[-0\."),
    ],
)
def test_what_cannot_be_trained_is_refused(world: AbstractWorld, options: dict, complaint: str):
    options = {"family": "intent", "steps": 1} | options
    with pytest.raises(ValueError, match=complaint):
        make_channel(world, **options, key=jax.random.key(0))
