"""Evaluation of a model's open-loop predictions on data that it has not seen."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from empowerment.data import Trajectories, windows
from empowerment.model.calibration import within_interval
from empowerment.model.dvbf import DVBF
from empowerment.model.elbo import predict
from empowerment.model.filter import Filter

_MAX_WINDOWS = 1000
"""Maximum number of windows."""

_LEAST_PREDICTIONS = 20
"""Number of predictions without which a horizon is left out."""

_NUM_DRAWS = 199
"""Sampled futures per window; of the 200 ranks of an observation among them, 180 are 90 %."""

_BATCH = 50
"""Windows per batch."""


@dataclass(frozen=True)
class ModelEvaluation:
    """Errors of open-loop predictions of recorded observations.

    Attributes:
        horizons: Steps ahead.
        model: The mean squared error of the model, in units of the variance of each channel.
        persistence: The same of predicting no change.
        linear: The same of a linear one-step model fitted to the training data.
        coverage: The fraction of observations within the model's 90 % intervals.
        num_predictions: The number of predictions at each horizon.
    """

    horizons: tuple[int, ...]
    model: Float[np.ndarray, " horizons"]
    persistence: Float[np.ndarray, " horizons"]
    linear: Float[np.ndarray, " horizons"]
    coverage: Float[np.ndarray, " horizons"]
    num_predictions: Int[np.ndarray, " horizons"]


def evaluate_model(
    model: DVBF,
    train: Trajectories,
    test: Trajectories,
    *,
    horizons: tuple[int, ...] = (1, 5, 10, 20, 30),
    settling: int = 5,
    seed: int = 0,
) -> ModelEvaluation:
    """Filter the beginning of windows of data, and predict the rest open-loop.

    Args:
        model: A trained model.
        train: The training data, to which the linear model is fitted.
        test: The data to predict, of which the model should have seen nothing. Nothing is
            predicted past the end of an episode.
        horizons: Steps ahead; those with fewer than 20 predictions are left out.
        settling: Warm-up steps of the filter.
        seed: Random seed.

    Returns:
        Errors and coverage at each horizon.

    Raises:
        ValueError: If no horizon is left.
    """
    settling = max(settling, model.num_initial - 1)
    observations, actions, recorded = _windows(test, settling, max(horizons), seed)
    counts = recorded.sum(axis=0)
    horizons = tuple(h for h in horizons if counts[h - 1] >= _LEAST_PREDICTIONS)
    if not horizons:
        longest = max(episode.length for episode in test.episodes)
        raise ValueError(
            f"Expected {_LEAST_PREDICTIONS} predictions of recorded observations or more, after "
            f"{settling} steps of filtering; got {counts[0]} of one step, from "
            f"{len(test.episodes)} episodes of which the longest has {longest} steps. Evaluate on "
            "more or longer episodes."
        )
    steps = max(horizons)
    observations, recorded = observations[:, : settling + 1 + steps], recorded[:, :steps]
    actions = actions[:, : settling + steps]
    mean, inside = _predict(
        model, jnp.asarray(observations, float), jnp.asarray(actions, float), settling, seed
    )
    future, now = observations[:, settling + 1 :], observations[:, settling]
    spread = np.concatenate([e.observations for e in train.episodes]).std(0)
    units = np.where(spread > 0, spread, 1.0)

    def at_horizons(values: Shaped[np.ndarray, "windows steps observation"]) -> np.ndarray:
        return np.array([values[recorded[:, h - 1], h - 1].mean() for h in horizons])

    def errors(predicted: Float[np.ndarray, "windows steps observation"]) -> np.ndarray:
        return at_horizons(((predicted - future) / units) ** 2)

    return ModelEvaluation(
        horizons,
        errors(mean),
        errors(np.repeat(now[:, None], steps, axis=1)),
        errors(_linear(train, now, actions[:, settling:])),
        at_horizons(inside[:, :, spread > 0]),
        np.array([counts[h - 1] for h in horizons]),
    )


def _windows(
    data: Trajectories, settling: int, steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Bool[np.ndarray, "windows predictions"]]:
    """Draw windows in which one step or more can be predicted.

    Every episode is extended, as if it had terminated, so that no recorded row is left out for
    want of others.

    Returns:
        Observations, actions, and whether the observation of each prediction was recorded.
    """
    extended = [replace(each, terminated=True, truncated=False) for each in data.episodes]
    cut = windows(replace(data, episodes=tuple(extended)), settling + steps + 1, seed=seed)
    starts = cut.starts[cut.recorded[cut.starts + settling + 1]]
    starts = np.random.default_rng(seed).permutation(starts)[:_MAX_WINDOWS]
    rows = starts[:, None] + np.arange(cut.length)
    recorded = cut.recorded[rows[:, settling + 1 :]]
    return cut.observations[rows], cut.actions[rows[:, :-1]], recorded


def _predict(
    model: DVBF,
    observations: Float[Array, "windows times observation"],
    actions: Float[Array, "windows steps action"],
    settling: int,
    seed: int,
) -> tuple[np.ndarray, Bool[np.ndarray, "windows predictions observation"]]:
    """Predict means in the units of the data, and whether 90 % intervals cover what follows."""
    count = len(observations)
    keys = jax.random.split(jax.random.key(seed), count)
    batches = np.resize(np.arange(count), (-(-count // _BATCH), _BATCH))
    parts = [
        _predict_batch(model, observations[at], actions[at], keys[at], settling) for at in batches
    ]
    means, inside = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    return means, inside


@eqx.filter_jit
def _predict_batch(
    model: DVBF,
    observations: Float[Array, "windows times observation"],
    actions: Float[Array, "windows steps action"],
    keys: Array,
    settling: int,
) -> tuple[Array, Array]:
    def of_window(observations: Array, actions: Array, key: Array) -> tuple[Array, Array]:
        states = Filter(model).run(observations[: settling + 1], actions[:settling])
        scaled = model.actions.scaled(actions[settling:])
        draws = jax.vmap(lambda key: predict(model, states[-1], scaled, key=key))(
            jax.random.split(key, _NUM_DRAWS)
        )
        future = model.observations.scaled(observations[settling + 1 :])
        mean = model.observations.physical(predict(model, states[-1], scaled))
        return mean, within_interval(draws, future)

    return jax.vmap(of_window)(observations, actions, keys)


def _linear(
    train: Trajectories,
    now: Float[np.ndarray, "windows observation"],
    actions: Float[np.ndarray, "windows steps action"],
) -> Float[np.ndarray, "windows steps observation"]:
    """Predict by a linear one-step model fitted by least squares."""
    before = np.concatenate(
        [
            np.concatenate([e.observations[:-1], train.spaces.encode(e.actions)], axis=1)
            for e in train.episodes
        ]
    )
    after = np.concatenate([e.observations[1:] for e in train.episodes])
    inputs = np.concatenate([before, np.ones((len(before), 1))], axis=1).astype(float)
    weights = np.linalg.lstsq(inputs, after.astype(float), rcond=None)[0]
    state, predictions = now.astype(float), []
    for step in range(actions.shape[1]):
        inputs = np.concatenate([state, actions[:, step], np.ones((len(state), 1))], axis=1)
        state = inputs @ weights
        predictions.append(state)
    return np.stack(predictions, axis=1)
