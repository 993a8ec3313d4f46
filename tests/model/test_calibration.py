"""Process noise and intervals of a linear model, whose right values are known."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.data import Episode, Spaces, Trajectories
from empowerment.model import DVBF, Scaling, Sequences, calibrate, evaluate_model
from empowerment.model.calibration import within_interval
from empowerment.model.fit import sequences

DECAY, PROCESS, SIGHT = 0.5, 0.4, 0.1
PRIOR = 2.0
LENGTH = 36
UNIT = Scaling(jnp.zeros(1), jnp.ones(1))


def linear() -> DVBF:
    """The Kalman filter of z' = z / 2 + u + noise, x = z + noise; its prior scale is wrong."""
    variance = 1.0
    for _ in range(100):
        variance = DECAY**2 * variance * SIGHT**2 / (variance + SIGHT**2) + PROCESS**2
    raw = [math.log(math.expm1(s - 1e-3)) for s in (PRIOR, math.sqrt(variance), SIGHT)]
    parameters = {
        "recognition": ([[1], [0]], [0, 0]),
        "start": ([[1]], [0]),
        "transition_network": ([[DECAY - 1, 1], [0, 0], [0, 0]], [0, *raw[:2]]),
        "measurement_network": ([[1], [0]], [0, raw[2]]),
        "decoder": ([[1]], [0]),
    }
    model = DVBF(UNIT, UNIT, latent_size=1, depth=0, key=jax.random.key(0))
    for name, (weight, bias) in parameters.items():
        model = eqx.tree_at(
            lambda made, name=name: [getattr(made, name).layers[0], made.raw_noise],
            model,
            [
                eqx.tree_at(
                    lambda layer: (layer.weight, layer.bias),
                    getattr(model, name).layers[0],
                    (jnp.array(weight, float), jnp.array(bias, float)),
                ),
                jnp.array([math.log(SIGHT - 1e-3) / 10]),
            ],
        )
    return model


def episodes(count: int, seed: int, *, terminated: bool = False) -> Trajectories:
    """Episodes of the system: of 36 rows and cut, or of 8 to 21 rows and ended."""
    random, made = np.random.default_rng(seed), []
    for _ in range(count):
        rows = int(random.integers(8, 22)) if terminated else LENGTH
        actions = random.uniform(-1, 1, (rows - 1, 1))
        states = [random.normal()]
        for action in actions[:, 0]:
            states.append(DECAY * states[-1] + action + PROCESS * random.normal())
        seen = np.array(states)[:, None] + SIGHT * random.normal(size=(rows, 1))
        made.append(Episode(seen, actions, terminated=terminated, truncated=not terminated))
    one = np.ones(1)
    spaces = Spaces(-np.inf * one, np.inf * one, -one, one, ("x",), ("u",))
    return Trajectories(tuple(made), spaces, {})


def windows_of(data: Trajectories) -> Sequences:
    return sequences(data, UNIT, UNIT, length=LENGTH, seed=0, absorbing_weight=0.0)[0]


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_calibration_finds_the_process_noise_that_there_is(end: str):
    """An error of six hundredths is that of a coverage of 92 % or 88 %, rather than 90 %."""
    terminated = end == "terminated"
    data = windows_of(episodes(500, 1, terminated=terminated))
    model, found = calibrate(linear(), data, key=jax.random.key(2))
    assert float(PRIOR * model.noise_factor[0]) == pytest.approx(PROCESS, rel=0.06)
    assert found.factor == pytest.approx(1.0, rel=0.1)
    assert found.warning == ""
    fresh = episodes(80, 3, terminated=terminated)
    judged = evaluate_model(model, fresh, fresh, horizons=(1, 5, 10))
    np.testing.assert_allclose(judged.coverage, 0.9, atol=0.025)


def test_only_recorded_rows_are_predicted_and_counted():
    """Errors are those of the system: what stays as it is after the end would be another."""
    data = episodes(60, 4, terminated=True)
    found = evaluate_model(linear(), data, data, horizons=(1, 5, 10, 15))
    lengths = np.array([episode.length for episode in data.episodes])
    counts = [np.maximum(lengths - 5 - h + 1, 0).sum() for h in (1, 5, 10, 15)]
    assert counts[2] >= 20 > counts[3] > 0
    assert found.horizons == (1, 5, 10)
    np.testing.assert_array_equal(found.num_predictions, counts[:3])
    spread = np.concatenate([each.observations for each in data.episodes]).var()
    grown = [PROCESS**2 * (1 - DECAY ** (2 * h)) / (1 - DECAY**2) for h in (1, 5)]
    wanted = (np.array(grown) + SIGHT**2) / spread
    np.testing.assert_allclose(found.model[:2], wanted, rtol=0.2)


def test_rows_of_cut_episodes_are_predicted_up_to_the_cut():
    data = episodes(3, 5)
    found = evaluate_model(linear(), data, data, horizons=(1, 10, 99))
    assert found.horizons == (1, 10)
    assert found.num_predictions.tolist() == [90, 63]
    short = Trajectories((data.episodes[0].part(0, 11),), data.spaces, {})
    with pytest.raises(ValueError, match=r"got 6 of one step, from 1 episodes .* has 11 steps"):
        evaluate_model(linear(), data, short, horizons=(1, 10))


def test_a_factor_at_an_end_of_its_range_is_told():
    data = windows_of(episodes(500, 1))
    loud = eqx.tree_at(lambda made: made.raw_noise, linear(), jnp.array([0.2]))
    _, found = calibrate(loud, data, key=jax.random.key(2))
    assert found.factor == pytest.approx(1 / 8, rel=0.02)
    assert "stopped at its smallest factor, 1/8" in found.warning
    blind = eqx.tree_at(
        lambda made: made.measurement_network.layers[0].bias, linear(), jnp.array([0, 9.0])
    )
    _, found = calibrate(blind, data, key=jax.random.key(2))
    assert found.factor == pytest.approx(8, rel=0.02)
    assert "stopped at its largest factor, 8" in found.warning


def test_without_recorded_rows_nothing_is_calibrated():
    ended = [each.part(0, 4) for each in episodes(50, 6).episodes]
    ends = [Episode(e.observations, e.actions, terminated=True, truncated=False) for e in ended]
    data = Trajectories(tuple(ends), episodes(1, 6).spaces, {})
    model, found = calibrate(linear(), windows_of(data), key=jax.random.key(0))
    assert eqx.tree_equal(model, linear())
    assert found.factor is None
    assert found.num_rows == 0
    assert "was not calibrated: the validation data have 0 recorded rows" in found.warning


@pytest.mark.parametrize("count", [59, 199])
def test_an_interval_has_nine_of_ten_ranks(count: int):
    draws = jnp.tile(jnp.arange(count, dtype=float)[:, None], (1, count + 1))
    inside = np.asarray(within_interval(draws, jnp.arange(count + 1, dtype=float) - 0.5))
    assert inside.sum() == round(0.9 * (count + 1))
    np.testing.assert_array_equal(inside, inside[::-1])
