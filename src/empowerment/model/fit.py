"""From logged data to a trained and calibrated model."""

from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.data import Trajectories, join, windows
from empowerment.model.calibration import calibrate
from empowerment.model.dvbf import DVBF
from empowerment.model.learnt import action_limits
from empowerment.model.scaling import Scaling, fit_scaling, limits_scaling
from empowerment.model.settings import ModelSettings
from empowerment.model.training import Sequences, train
from empowerment.optimise import SILENT, Callback
from empowerment.types import Key

_HELD_OUT = 0.1
"""Fraction of the data held out for validation."""

_LARGEST_LATENT = 32

_CALIBRATION_LENGTH = 36
"""Observations in the windows over which the noise of a model is calibrated."""

_FINE_TUNING = 0.5
"""Updates and learning rate of fine-tuning, as a fraction of those of a fresh model."""


@dataclass(frozen=True)
class Prepared:
    """Data as a model takes them.

    Attributes:
        train: Training data.
        held_out: Validation data.
        train_windows: Windows of the training data, scaled.
        held_out_windows: Windows of the validation data, scaled.
        observations: Scaling of observations.
        actions: Scaling of actions.
        skipped: Number of episodes that are too short to have a window.
        seed: Random seed of the actions after an episode has ended.
    """

    train: Trajectories
    held_out: Trajectories
    train_windows: Sequences
    held_out_windows: Sequences
    observations: Scaling
    actions: Scaling
    skipped: int
    seed: int


def hold_out(parts: tuple[Trajectories, ...], seed: int) -> tuple[Trajectories, Trajectories]:
    """Split off validation data from each part, the same whatever parts are added later."""
    pairs = [part.split(_HELD_OUT, seed=seed) for part in parts]
    return join(*[kept for kept, _ in pairs]), join(*[held for _, held in pairs])


def prepare(
    train: Trajectories,
    held_out: Trajectories,
    *,
    length: int,
    seed: int,
    scalings: tuple[Scaling, Scaling] | None = None,
) -> Prepared:
    """Cut data into windows, and scale them to order one.

    Args:
        train: Training data.
        held_out: Validation data.
        length: Observations in a window.
        seed: Random seed of the actions after an episode has ended.
        scalings: Scalings of observations and actions; by default fitted to the training data.
    """
    if scalings is None:
        rows = np.concatenate([episode.observations for episode in train.episodes])
        changes = np.concatenate([np.diff(e.observations, axis=0) for e in train.episodes])
        scalings = fit_scaling(rows, changes), limits_scaling(*action_limits(train))
    (train_windows, one), (held_out_windows, two) = (
        sequences(data, *scalings, length=length, seed=seed) for data in (train, held_out)
    )
    return Prepared(
        train, held_out, train_windows, held_out_windows, *scalings, skipped=one + two, seed=seed
    )


def sequences(
    trajectories: Trajectories,
    observations: Scaling,
    actions: Scaling,
    *,
    length: int,
    seed: int,
) -> tuple[Sequences, int]:
    """Cut data into windows, and scale them.

    Returns:
        The windows, and the number of episodes that are too short to have one.
    """
    cut = windows(trajectories, length, seed=seed)
    rows = observations.scaled(jnp.asarray(cut.observations, float))
    done = actions.scaled(jnp.asarray(cut.actions, float))
    return Sequences(rows, done, jnp.asarray(cut.starts), length), cut.skipped


def fit_dvbf(
    data: Prepared,
    settings: ModelSettings,
    *,
    start: DVBF | None = None,
    callback: Callback = SILENT,
    key: Key,
) -> tuple[DVBF, dict[str, Any]]:
    """Train a model with early stopping, and calibrate its noise on the validation data.

    Fine-tuning takes half the updates and half the learning rate, and no warm-up.

    Args:
        data: As `prepare` returns them.
        settings: Hyperparameters.
        start: A model to fine-tune; a fresh one by default.
        callback: Observer.
        key: Consumed.

    Returns:
        The model, and facts about it.
    """
    make_key, train_key, calibrate_key = jax.random.split(key, 3)
    share = 1.0 if start is None else _FINE_TUNING
    num_updates = min(max(round(share * settings.updates / 100), 1) * 100, settings.updates)
    trained = train(
        start or untrained_dvbf(settings, data.observations, data.actions, key=make_key),
        data.train_windows,
        data.held_out_windows,
        num_updates=num_updates,
        batch_size=settings.batch_size,
        learning_rate=share * settings.learning_rate,
        warm_up=start is None,
        callback=callback,
        key=train_key,
    )
    longest = max(episode.length for episode in data.held_out.episodes) + 1
    length = min(max(_CALIBRATION_LENGTH, settings.window), longest)
    long, _ = sequences(
        data.held_out, data.observations, data.actions, length=length, seed=data.seed
    )
    about = {
        "settings": asdict(settings),
        "observation_size": data.train.observation_size,
        "action_size": data.train.action_size,
        "stopped": trained.stopped,
        "history": trained.history,
    }
    return calibrate(trained.model, long, key=calibrate_key), about


def untrained_dvbf(
    settings: ModelSettings, observations: Scaling, actions: Scaling, *, key: Key
) -> DVBF:
    """Build an untrained model."""
    automatic = min(2 * observations.offset.size + 2, _LARGEST_LATENT)
    return DVBF(
        observations,
        actions,
        latent_size=settings.latent_size or automatic,
        width=settings.width,
        depth=settings.depth,
        num_initial=settings.num_initial,
        as_published=settings.as_published,
        outlier_probability=settings.outlier_probability,
        key=key,
    )
