"""The parts of the model, against slow and obvious ways to do the same."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import norm

from empowerment.data import Episode, Spaces, Trajectories
from empowerment.distributions import Gaussian, divergence_from_standard, product
from empowerment.errors import DivergedError
from empowerment.model import (
    DVBF,
    Filter,
    Latent,
    LearntWorld,
    Scaling,
    calibrate,
    elbo,
    evaluate_model,
    fit_scaling,
    learnt_world,
    predict,
    prepare,
    training as model_training,
)
from empowerment.optimise import Callback, Snapshot
from empowerment.storage import load_tree, save_tree
from empowerment.worlds import Bounded, unroll

numbers = st.floats(-3, 3)
scales = st.floats(0.05, 3)


@given(numbers, scales, numbers, scales)
def test_the_product_is_bayes_rule(mean: float, scale: float, other: float, width: float):
    """The density of the product, up to a constant, on a fine grid."""
    found = product(
        Gaussian(jnp.array([mean]), jnp.array([scale])),
        Gaussian(jnp.array([other]), jnp.array([width])),
    )
    places = np.linspace(-12, 12, 48001)
    log = -0.5 * ((places - mean) / scale) ** 2 - 0.5 * ((places - other) / width) ** 2
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    middle = weights @ places
    assert float(found.mean[0]) == pytest.approx(middle, abs=2e-4)
    spread = np.sqrt(weights @ (places - middle) ** 2)
    assert float(found.scale[0]) == pytest.approx(spread, abs=2e-4)


def make(
    *,
    as_published: bool = False,
    num_initial: int = 1,
    outlier_probability: float = 0.0,
    seed: int = 0,
) -> DVBF:
    units = Scaling(jnp.array([1.0, -2.0, 0.0]), jnp.array([2.0, 0.5, 1.0]))
    actions = Scaling(jnp.array([0.0, 1.0]), jnp.array([2.0, 3.0]))
    return DVBF(
        units,
        actions,
        latent_size=4,
        width=8,
        num_initial=num_initial,
        as_published=as_published,
        outlier_probability=outlier_probability,
        key=jax.random.key(seed),
    )


def sequence(times: int = 9, seed: int = 1):
    random = np.random.default_rng(seed)
    return (
        jnp.asarray(random.normal(size=(times, 3)), float),
        jnp.asarray(random.uniform(-1, 1, (times - 1, 2)), float),
    )


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ({}, None),
        ({"as_published": True, "num_initial": 3}, None),
        ({"outlier_probability": 0.05}, [1, 1, 0.5, 1, 0.25, 0, 2, 0.5, 0]),
    ],
    ids=str,
)
def test_the_bound_equals_a_plain_loop(options: dict, weights: list[float] | None):
    model = make(**options)
    pairs = [sequence(seed=seed) for seed in (1, 2)]
    key = jax.random.key(5)
    stacked = (jnp.stack(each) for each in zip(*pairs, strict=True))
    of_rows = None if weights is None else jnp.array([weights, weights[::-1]], float)
    found = elbo(model, *stacked, weights=of_rows, key=key)
    first_key, noise_key, switch_key = jax.random.split(key, 3)
    beginnings = [jax.random.normal(key, (4,)) for key in jax.random.split(first_key)]
    noises = jax.random.normal(noise_key, (8, 2, 4))
    switches = jax.random.randint(switch_key, (2,), 0, 4)
    for index, (observations, actions) in enumerate(pairs):
        wanted = by_a_loop(
            model,
            observations,
            actions,
            beginnings[index],
            noises[:, index],
            int(switches[index]),
            np.ones(9) if of_rows is None else np.asarray(of_rows[index]),
        )
        parts = found.reconstruction, found.divergence, found.prediction, found.value
        np.testing.assert_allclose([part[index] for part in parts], wanted, rtol=1e-4)


def by_a_loop(model: DVBF, observations, actions, beginning, noise, switch: int, weights):
    first = model.recognise(observations[: model.num_initial])
    state = model.start(first.mean + first.scale * beginning)
    blind = state
    states, divergence = [state], float(divergence_from_standard(first))
    prediction = 0.0
    for time in range(1, 9):
        expected = model.step(state, actions[time - 1])
        blind = model.step(blind, actions[time - 1]).mean
        prior, trust = expected.prior_scale, expected.inference_scale
        measured = model.measure(observations[time])
        variance = 1 / (1 / trust**2 + 1 / measured.scale**2)
        mean = variance * (expected.mean / trust**2 + measured.mean / measured.scale**2)
        state = mean + jnp.sqrt(variance) * noise[time - 1]
        ratio = variance / prior**2
        divergence += weights[time] * float(
            0.5 * jnp.sum(ratio + (mean - expected.mean) ** 2 / prior**2 - 1 - jnp.log(ratio))
        )
        if time > switch:
            seen = Gaussian(model.decoder(blind), model.drift)
            density = log_density(seen, observations[time], model.outlier_probability)
            prediction += weights[time] * density
        else:
            blind = state
        states.append(state)
    reconstruction = sum(
        weight * log_density(model.decode(z), x, model.outlier_probability)
        for z, x, weight in zip(states, observations, weights, strict=True)
    )
    return reconstruction, divergence, prediction, reconstruction - divergence


def log_density(expected: Gaussian, value, outlier_probability: float) -> float:
    """A value is far off, by a scale of three, once in a while."""
    near = norm.pdf(value, expected.mean, expected.scale)
    far = norm.pdf(value, expected.mean, 3.0)
    return float(np.log((1 - outlier_probability) * near + outlier_probability * far).sum())


def test_predictions_equal_a_plain_loop():
    model = make()
    _, actions = sequence()
    state, wanted = jnp.ones(4), []
    for action in actions:
        state = model.step(state, action).mean
        wanted.append(model.decoder(state))
    np.testing.assert_allclose(
        predict(model, jnp.ones(4), actions), jnp.stack(wanted), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_missing_observation_is_predicted(bad: float):
    model = make()
    keep = Filter(model)
    state, action = jnp.ones(4), jnp.array([0.5, 2.0])
    expected = model.step(state, model.actions.scaled(action)).mean
    seen = jnp.array([1.0, bad, 0.0])
    np.testing.assert_array_equal(keep.update(state, action, seen), expected)
    measured = keep.update(state, action, jnp.array([1.0, 0.0, 0.0]))
    assert not np.allclose(measured, expected)


def test_the_filter_is_the_mean_of_what_the_bound_samples():
    model = make()
    seen = jnp.array([2.0, -1.5, 0.3])
    state, action = 0.1 * jnp.ones(4), jnp.array([0.5, 2.0])
    expected = model.step(state, model.actions.scaled(action))
    belief = model.fuse(expected, model.measure(model.observations.scaled(seen)))
    np.testing.assert_allclose(Filter(model).update(state, action, seen), belief.mean, rtol=1e-5)


def test_units_suit_control_and_go_back():
    random = np.random.default_rng(0)
    slow = np.cumsum(random.normal(0, 0.01, 5000))
    rows = np.stack([slow, random.normal(5, 2, 5000), np.full(5000, 3.0)], axis=1)
    units = fit_scaling(rows, np.diff(rows, axis=0))
    spread, change = slow.std(), np.diff(slow).std()
    assert float(units.scale[0]) == pytest.approx(np.sqrt(spread * change), rel=1e-4)
    scaled = units.scaled(jnp.asarray(rows, float))
    assert np.all(np.isfinite(scaled))
    np.testing.assert_allclose(scaled[:, 2], 0, atol=1e-5)
    np.testing.assert_allclose(units.physical(scaled), rows, rtol=1e-3, atol=1e-3)


def integrator(
    episodes: int, length: int = 30, *, terminated: bool = False, seed: int = 3
) -> Trajectories:
    """A point that is moved by its action, and stays within walls."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(episodes):
        actions = random.uniform(-1, 1, (length, 1))
        path = [random.uniform(-2, 2)]
        for action in actions[:, 0]:
            path.append(np.clip(path[-1] + 0.5 * action, -2, 2))
        made.append(
            Episode(
                np.array(path)[:, None], actions, terminated=terminated, truncated=not terminated
            )
        )
    one = np.array([1.0])
    return Trajectories(tuple(made), Spaces(-2 * one, 2 * one, -one, one, ("x",), ("u",)), {})


@pytest.fixture(scope="module")
def fitted() -> tuple[DVBF, Trajectories, Trajectories]:
    train, validation = integrator(40).split(0.2, seed=0)
    data = prepare(train, validation, length=12, seed=0)
    model = DVBF(data.observations, data.actions, latent_size=2, width=32, key=jax.random.key(0))
    trained = model_training.train(
        model,
        data.train_windows,
        data.validation_windows,
        num_updates=600,
        batch_size=64,
        key=jax.random.key(1),
    )
    return trained.best, train, integrator(8, seed=4)


def test_a_trained_model_predicts_better_than_what_is_trivial(fitted):
    found = evaluate_model(*fitted, horizons=(1, 10, 20))
    assert found.horizons == (1, 10, 20)
    assert np.all(found.model < 0.2 * found.persistence)
    assert np.all(found.linear < found.persistence)
    assert found.model[2] < found.linear[2]
    assert np.all((found.coverage > 0.5) & (found.coverage <= 1))


@pytest.mark.slow
def test_calibrated_intervals_hold_what_they_should(fitted):
    """Judged on other data than those by which it was calibrated, and enough of both."""
    model, train, _ = fitted
    units = model.observations, model.actions
    data = prepare(train, integrator(60, seed=7), length=16, seed=0, scalings=units)
    test = integrator(60, seed=8)
    calibrated, _ = calibrate(model, data.validation_windows, key=jax.random.key(3))
    found = evaluate_model(calibrated, train, test, horizons=(1, 5, 10))
    assert np.all((found.coverage > 0.82) & (found.coverage < 0.97)), found.coverage
    loud = eqx.tree_at(lambda made: made.noise_factor, model, 3 * calibrated.noise_factor)
    assert evaluate_model(loud, train, test, horizons=(10,)).coverage[0] > 0.97


def test_a_model_is_a_world(fitted):
    model, train, _ = fitted
    world = learnt_world(model, train, length=12, resolution=0.1, seed=0)
    assert isinstance(world, LearntWorld)
    seen = world.emission(world.visited_states[0])
    learnt = model.noise * model.observations.scale
    np.testing.assert_allclose(seen.scale, np.sqrt(learnt**2 + 0.1**2), rtol=1e-4)
    state = Filter(model).init(jnp.array([[0.5]]))
    assert float(world.emission(state).mean[0]) == pytest.approx(0.5, abs=0.1)
    path = unroll(Bounded(world), state, 3 * jnp.ones((2, 1)), key=jax.random.key(0))
    assert float(world.emission(path[-1]).mean[0]) == pytest.approx(1.5, abs=0.2)
    places, box = np.asarray(world.visited_states), world.states
    spread = np.concatenate([e.observations for e in train.episodes]).std(0)
    own = learnt_world(model, train, length=12, seed=0)
    np.testing.assert_allclose(own.resolution, 0.02 * spread, rtol=1e-4)
    inside = (places >= np.asarray(box.low)) & (places <= np.asarray(box.high))
    assert np.mean(np.all(inside, axis=1)) > 0.95
    latent = Latent(world)
    np.testing.assert_array_equal(latent.emission(state).mean, state)
    assert latent.emission(state).scale.max() == 0


def test_places_cover_what_is_rare(fitted):
    """Of one state in a thousand far from the others, one place at least comes of it."""
    model, train, _ = fitted
    rare = Episode(np.full((13, 1), 1.999), np.zeros((12, 1)), terminated=False, truncated=True)
    both = Trajectories((*integrator(200).episodes, rare), train.spaces, {})
    world = learnt_world(model, both, length=12, resolution=0.1, seed=0)
    still = Filter(model).run(jnp.full((13, 1), 1.999), jnp.zeros((12, 1)))[-1]
    assert jnp.min(jnp.linalg.norm(world.visited_states - still[None], axis=1)) < 0.2


def test_training_resumes_to_the_same_bits_and_storage_keeps_them(tmp_path: Path):
    train, validation = integrator(10), integrator(3)
    data = prepare(train, validation, length=8, seed=0)
    model = DVBF(data.observations, data.actions, latent_size=2, width=8, key=jax.random.key(0))
    seen = []
    whole = model_training.train(
        model,
        data.train_windows,
        data.validation_windows,
        num_updates=40,
        batch_size=8,
        updates_per_call=10,
        callback=Callback(seen.append),
        key=jax.random.key(1),
    )
    assert len(seen) == 4
    resumed = model_training.train(
        model,
        data.train_windows,
        data.validation_windows,
        num_updates=40,
        batch_size=8,
        updates_per_call=10,
        callback=Callback(resume=lambda fresh: seen[1]),
        key=jax.random.key(1),
    )
    assert eqx.tree_equal(whole.state, resumed.state)
    assert eqx.tree_equal(whole.best, resumed.best)
    assert whole.history == resumed.history
    units = (whole.best.observations, whole.best.actions)
    assert eqx.tree_equal(units, (data.observations, data.actions))
    np.testing.assert_array_equal(whole.best.noise_factor, jnp.ones(2))
    save_tree(whole.best, tmp_path / "model.safetensors", about={})
    assert eqx.tree_equal(load_tree(model, tmp_path / "model.safetensors"), whole.best)


def test_training_stops_early_but_not_before_the_rate_falls(monkeypatch: pytest.MonkeyPatch):
    data = prepare(integrator(4), integrator(2), length=8, seed=0)
    model = DVBF(data.observations, data.actions, latent_size=2, width=8, key=jax.random.key(0))

    def train(looks: list[float]) -> tuple[Snapshot, list[DVBF]]:
        """Train while the validation data are made to say what is given."""
        left, models = iter(looks), []
        monkeypatch.setattr(model_training, "probe", lambda *_, **__: next(left))
        trained = model_training.train(
            model,
            data.train_windows,
            data.validation_windows,
            num_updates=20,
            batch_size=4,
            warm_up=False,
            updates_per_call=1,
            callback=Callback(lambda at: models.append(at.state.model)),
            key=jax.random.key(0),
        )
        return trained, models

    worse, models = train([-float(call) for call in range(20)])
    assert 10 < len(models) < 20
    assert eqx.tree_equal(worse.best, models[0])
    better, models = train([0.0, *[-1.0] * 10, *range(1, 10)])
    assert len(models) == 20
    assert better.stopped == "the budget is spent"
    assert eqx.tree_equal(better.best, models[-1])


def test_training_stops_where_nothing_is_finite():
    data = prepare(integrator(10), integrator(3), length=8, seed=0)
    model = DVBF(data.observations, data.actions, latent_size=2, width=8, key=jax.random.key(0))
    broken = eqx.tree_at(lambda m: m.raw_noise, model, jnp.full(1, jnp.nan, float))
    with pytest.raises(DivergedError, match="by update 10"):
        model_training.train(
            broken,
            data.train_windows,
            data.validation_windows,
            num_updates=20,
            batch_size=8,
            updates_per_call=10,
            key=jax.random.key(0),
        )


def test_an_action_that_never_changes_is_refused():
    one = np.array([np.inf])
    still = Episode(np.zeros((9, 1)), np.zeros((8, 1)), terminated=False, truncated=True)
    data = Trajectories((still, still), Spaces(-one, one, -one, one, ("x",), ("u",)), {})
    with pytest.raises(ValueError, match="more than one value"):
        prepare(data, data, length=4, seed=0)
