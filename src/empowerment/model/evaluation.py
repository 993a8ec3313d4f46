"""Evaluation of a model's open-loop predictions on held-out data."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.data import Trajectories, windows
from empowerment.model.dvbf import DVBF
from empowerment.model.elbo import predict
from empowerment.model.filter import Filter

_MAX_WINDOWS = 1000
"""Maximum number of windows."""

_NUM_DRAWS = 200
"""Sampled futures per window, from which prediction intervals are computed."""

_BATCH = 50
"""Windows per batch."""

_TAIL = 0.05
"""Probability on either side of a 90 % interval."""


@dataclass(frozen=True)
class ModelEvaluation:
    """Errors of open-loop predictions on held-out data.

    Attributes:
        horizons: Steps ahead.
        model: The mean squared error of the model, in units of the variance of each channel.
        persistence: The same of predicting no change.
        linear: The same of a linear one-step model fitted to the training data.
        coverage: The fraction of observations within the model's 90 % intervals.
        num_predictions: The number of windows.
    """

    horizons: tuple[int, ...]
    model: Float[np.ndarray, " horizons"]
    persistence: Float[np.ndarray, " horizons"]
    linear: Float[np.ndarray, " horizons"]
    coverage: Float[np.ndarray, " horizons"]
    num_predictions: int


def evaluate_model(
    model: DVBF,
    train: Trajectories,
    held_out: Trajectories,
    *,
    horizons: tuple[int, ...] = (1, 5, 10, 20, 30),
    settling: int = 5,
    seed: int = 0,
) -> ModelEvaluation:
    """Filter the beginning of held-out windows, and predict the rest open-loop.

    Args:
        model: A trained model.
        train: The training data, to which the linear model is fitted.
        held_out: The evaluation data.
        horizons: Steps ahead; those longer than any episode are left out.
        settling: Warm-up steps of the filter.
        seed: Random seed.

    Returns:
        Errors and coverage at each horizon.
    """
    settling = max(settling, model.num_initial - 1)
    longest = max(episode.length for episode in held_out.episodes)
    horizons = tuple(h for h in horizons if settling + h <= longest)
    if not horizons:
        raise ValueError(
            f"Expected a held-out episode to have at least {settling + 1} steps, to predict the "
            f"last from the others; the longest has {longest}."
        )
    cut = windows(held_out, settling + max(horizons) + 1, seed=seed)
    generator = np.random.default_rng(seed)
    starts = generator.permutation(cut.starts)[:_MAX_WINDOWS]
    rows = starts[:, None] + np.arange(cut.length)
    observations, actions = cut.observations[rows], cut.actions[rows[:, :-1]]
    mean, low, high = _predict(
        model, jnp.asarray(observations, float), jnp.asarray(actions, float), settling, seed
    )
    future, now = observations[:, settling + 1 :], observations[:, settling]
    spread = np.concatenate([e.observations for e in train.episodes]).std(0)
    units = np.where(spread > 0, spread, 1.0)

    def errors(predicted: Float[np.ndarray, "windows steps observation"]) -> np.ndarray:
        square = (((predicted - future) / units) ** 2).mean((0, 2))
        return np.array([square[h - 1] for h in horizons])

    inside = ((low <= future) & (future <= high))[:, :, spread > 0].mean((0, 2))
    return ModelEvaluation(
        horizons,
        errors(mean),
        errors(np.repeat(now[:, None], future.shape[1], axis=1)),
        errors(_linear(train, now, actions[:, settling:])),
        np.array([inside[h - 1] for h in horizons]),
        len(starts),
    )


def _predict(
    model: DVBF,
    observations: Float[Array, "windows times observation"],
    actions: Float[Array, "windows steps action"],
    settling: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predict means and 90 % intervals, in the units of the data."""

    @eqx.filter_jit
    def of_batch(model: DVBF, observations: Array, actions: Array, keys: Array):
        def of_window(observations: Array, actions: Array, key: Array):
            states = Filter(model).run(observations[: settling + 1], actions[:settling])
            scaled = model.actions.scaled(actions[settling:])
            draws = jax.vmap(lambda key: predict(model, states[-1], scaled, key=key))(
                jax.random.split(key, _NUM_DRAWS)
            )
            limits = jnp.quantile(draws, jnp.array([_TAIL, 1 - _TAIL]), axis=0)
            predictions = jnp.stack([predict(model, states[-1], scaled), *limits])
            return model.observations.physical(predictions)

        return jax.vmap(of_window)(observations, actions, keys)

    keys = jax.random.split(jax.random.key(seed), len(observations))
    batches = [slice(i, i + _BATCH) for i in range(0, len(observations), _BATCH)]
    parts = [of_batch(model, observations[at], actions[at], keys[at]) for at in batches]
    predictions = np.concatenate([np.asarray(part) for part in parts])
    return predictions[:, 0], predictions[:, 1], predictions[:, 2]


def _linear(
    train: Trajectories,
    now: Float[np.ndarray, "windows observation"],
    actions: Float[np.ndarray, "windows steps action"],
) -> Float[np.ndarray, "windows steps observation"]:
    """Predict by a linear one-step model fitted by least squares."""
    before = np.concatenate(
        [np.concatenate([e.observations[:-1], e.actions], axis=1) for e in train.episodes]
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
