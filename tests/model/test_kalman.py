"""A model of a linear-Gaussian system, judged by the Kalman filter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.data import Episode, Spaces, Trajectories
from empowerment.model import DVBF, Filter, elbo, prepare, training as model_training

DECAY, GAIN, PROCESS, SIGHT = 0.8, 0.7, 0.8, 0.3
LENGTH = 12


def episodes(count: int, seed: int) -> Trajectories:
    """Of z' = 0.8 z + 0.7 u + noise, x = z + noise, from z ~ N(0, 1)."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        state, seen = random.normal(), []
        actions = random.uniform(-2, 2, (LENGTH - 1, 1))
        for action in [*actions[:, 0], None]:
            seen.append(state + SIGHT * random.normal())
            if action is not None:
                state = DECAY * state + GAIN * action + PROCESS * random.normal()
        made.append(Episode(np.array(seen)[:, None], actions, terminated=False, truncated=True))
    limit = np.array([np.inf])
    spaces = Spaces(-limit, limit, np.array([-2.0]), np.array([2.0]), ("x",), ("u",))
    return Trajectories(tuple(made), spaces, {})


def kalman(observations: np.ndarray, actions: np.ndarray) -> tuple[float, np.ndarray]:
    """Give the log-density of a sequence, and the filtered means."""
    mean, variance, total, means = 0.0, 1.0, 0.0, []
    for time, seen in enumerate(observations):
        if time:
            mean = DECAY * mean + GAIN * actions[time - 1]
            variance = DECAY**2 * variance + PROCESS**2
        spread = variance + SIGHT**2
        total += -0.5 * ((seen - mean) ** 2 / spread + np.log(2 * np.pi * spread))
        gain = variance / spread
        mean, variance = mean + gain * (seen - mean), (1 - gain) * variance
        means.append(mean)
    return total, np.array(means)


@pytest.fixture(scope="module")
def model() -> DVBF:
    train, validation = episodes(2000, 0), episodes(200, 1)
    data = prepare(train, validation, length=LENGTH, seed=0)
    fresh = DVBF(data.observations, data.actions, latent_size=1, width=32, key=jax.random.key(0))
    trained = model_training.train(
        fresh,
        data.train_windows,
        data.validation_windows,
        num_updates=2000,
        batch_size=64,
        key=jax.random.key(1),
    )
    return trained.best


def bounds(model: DVBF, test: Trajectories, draws: int) -> tuple[float, float, float]:
    """Give the mean evidence lower bound, its error, and the mean log-density, per row."""
    seen = jnp.asarray(np.stack([e.observations for e in test.episodes]), float)
    done = jnp.asarray(np.stack([e.actions for e in test.episodes]), float)
    units = jnp.log(model.observations.scale).sum() * LENGTH

    @jax.jit
    def of(key):
        scaled = model.observations.scaled(seen), model.actions.scaled(done)
        return elbo(model, *scaled, key=key).value

    found = np.stack([of(key) - units for key in jax.random.split(jax.random.key(7), draws)])
    truth = [kalman(e.observations[:, 0], e.actions[:, 0])[0] for e in test.episodes]
    off = found.mean(0) - np.array(truth)
    error = off.std() / np.sqrt(len(off))
    return found.mean() / LENGTH, error / LENGTH, float(np.mean(truth)) / LENGTH


@pytest.mark.statistical
def test_the_bound_is_below_the_log_density_and_close_to_it(model: DVBF):
    value, error, truth = bounds(model, episodes(400, 2), draws=8)
    assert value <= truth + 3 * error
    assert truth - value <= 0.02 * abs(truth)


@pytest.mark.statistical
def test_the_filter_tracks_the_kalman_mean(model: DVBF):
    track, seen_by_model, best = jax.jit(lambda x, u: Filter(model).run(x, u)), [], []
    for episode in episodes(100, 3).episodes:
        states = track(jnp.asarray(episode.observations), jnp.asarray(episode.actions))
        decoded = model.observations.physical(jax.vmap(model.decoder)(states))
        seen_by_model.append(np.asarray(decoded)[2:, 0])
        best.append(kalman(episode.observations[:, 0], episode.actions[:, 0])[1][2:])
    off = np.concatenate(seen_by_model) - np.concatenate(best)
    assert np.sqrt(np.mean(off**2)) < 0.25 * SIGHT
    assert np.corrcoef(np.concatenate(seen_by_model), np.concatenate(best))[0, 1] > 0.998
