"""How well a model predicts what it has not seen."""

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
"""Predictions that are judged, at most."""

_NUM_DRAWS = 200
"""Futures drawn for each prediction, from which intervals are taken."""

_AT_ONCE = 50
"""Predictions for which futures are drawn in one go."""

_TAIL = 0.05
"""What lies below, and above, an interval of 90 %."""


@dataclass(frozen=True)
class ModelEvaluation:
    """Predictions without measurements, judged by what came.

    Attributes:
        horizons: Steps ahead.
        model: The mean square of what the model is off by, in units of the spread of each
            channel.
        persistence: The same if nothing changed.
        linear: The same of a linear model fitted to the same data.
        coverage: The share of what came that lies in the model's intervals of 90 %.
        num_predictions: How many were judged.
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
    """Filter the beginning of windows held out, and predict the rest.

    Args:
        model: A trained model.
        train: The data that it learnt from: the linear model learns from it too.
        held_out: The data to judge by.
        horizons: Steps ahead; those that no episode is long enough for are left out.
        settling: Steps in which the filter may settle first.
        seed: Of which windows, and of the draws.

    Returns:
        The errors and the coverage at each horizon.
    """
    settling = max(settling, model.num_initial - 1)
    longest = max(episode.length for episode in held_out.episodes)
    horizons = tuple(h for h in horizons if settling + h <= longest)
    if not horizons:
        raise ValueError(
            f"Expected an episode held out to have {settling + 1} steps or more, to predict the "
            f"last from the others; the longest has {longest}."
        )
    cut = windows(held_out, settling + max(horizons) + 1, seed=seed)
    generator = np.random.default_rng(seed)
    starts = generator.permutation(cut.starts)[:_MAX_WINDOWS]
    rows = starts[:, None] + np.arange(cut.length)
    seen, done = cut.observations[rows], cut.actions[rows[:, :-1]]
    foreseen, low, high = _predict(
        model, jnp.asarray(seen, float), jnp.asarray(done, float), settling, seed
    )
    came, now = seen[:, settling + 1 :], seen[:, settling]
    spread = np.concatenate([e.observations for e in train.episodes]).std(0)
    units = np.where(spread > 0, spread, 1.0)

    def errors(predicted: Float[np.ndarray, "windows steps observation"]) -> np.ndarray:
        square = (((predicted - came) / units) ** 2).mean((0, 2))
        return np.array([square[h - 1] for h in horizons])

    inside = ((low <= came) & (came <= high))[:, :, spread > 0].mean((0, 2))
    return ModelEvaluation(
        horizons,
        errors(foreseen),
        errors(np.repeat(now[:, None], came.shape[1], axis=1)),
        errors(_linear(train, now, done[:, settling:])),
        np.array([inside[h - 1] for h in horizons]),
        len(starts),
    )


def _predict(
    model: DVBF,
    seen: Float[Array, "windows times observation"],
    done: Float[Array, "windows steps action"],
    settling: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the mean future and an interval of 90 %, in the units of the data."""

    @eqx.filter_jit
    def of_batch(model: DVBF, seen: Array, done: Array, keys: Array):
        def of_window(seen: Array, done: Array, key: Array):
            states = Filter(model).run(seen[: settling + 1], done[:settling])
            actions = model.actions.scaled(done[settling:])
            draws = jax.vmap(lambda key: predict(model, states[-1], actions, key=key))(
                jax.random.split(key, _NUM_DRAWS)
            )
            limits = jnp.quantile(draws, jnp.array([_TAIL, 1 - _TAIL]), axis=0)
            found = jnp.stack([predict(model, states[-1], actions), *limits])
            return model.observations.physical(found)

        return jax.vmap(of_window)(seen, done, keys)

    keys = jax.random.split(jax.random.key(seed), len(seen))
    parts = [
        of_batch(model, seen[i : i + _AT_ONCE], done[i : i + _AT_ONCE], keys[i : i + _AT_ONCE])
        for i in range(0, len(seen), _AT_ONCE)
    ]
    found = np.concatenate([np.asarray(part) for part in parts])
    return found[:, 0], found[:, 1], found[:, 2]


def _linear(
    train: Trajectories,
    now: Float[np.ndarray, "windows observation"],
    done: Float[np.ndarray, "windows steps action"],
) -> Float[np.ndarray, "windows steps observation"]:
    """Predict by the linear model of one step that fits the data best."""
    before = np.concatenate(
        [np.concatenate([e.observations[:-1], e.actions], axis=1) for e in train.episodes]
    )
    after = np.concatenate([e.observations[1:] for e in train.episodes])
    inputs = np.concatenate([before, np.ones((len(before), 1))], axis=1).astype(float)
    weights = np.linalg.lstsq(inputs, after.astype(float), rcond=None)[0]
    state, found = now.astype(float), []
    for step in range(done.shape[1]):
        inputs = np.concatenate([state, done[:, step], np.ones((len(state), 1))], axis=1)
        state = inputs @ weights
        found.append(state)
    return np.stack(found, axis=1)
