"""From logged data to a trained and calibrated model."""

from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.data import Episode, Trajectories, join, windows
from empowerment.model.calibration import calibrate
from empowerment.model.dvbf import DVBF
from empowerment.model.learnt import action_limits
from empowerment.model.scaling import Scaling, fit_scaling, limits_scaling
from empowerment.model.settings import ModelSettings
from empowerment.model.training import Sequences, train
from empowerment.optimise import SILENT, Callback
from empowerment.types import Key

_HELD_OUT = 0.1
"""Fraction of the data held out of training; about half of it is for validation, half for test."""

_LARGEST_LATENT = 32

_FINE_TUNING = 0.5
"""Updates and learning rate of fine-tuning, as a fraction of those of a fresh model."""


@dataclass(frozen=True)
class Split:
    """Data in three parts, of whole episodes; the tail of the only one, if there is one.

    Attributes:
        train: Training data.
        validation: Data for early stopping and calibration.
        test: Data for nothing but evaluation; none if there are too few episodes.
    """

    train: Trajectories
    validation: Trajectories
    test: Trajectories | None


def split(parts: tuple[Trajectories, ...], seed: int, *, window: int) -> Split:
    """Split each part in three, the same whatever parts are added later.

    There is no test data of a part if validation data would lack a window without it.

    Args:
        parts: Data of each round.
        seed: Random seed of the choice of episodes.
        window: Observations in a window of the training.
    """

    def has_window(episode: Episode) -> bool:
        return episode.terminated or episode.length + 1 >= window

    train, validation, test = [], [], []
    for part in parts:
        kept, held_out = part.split(_HELD_OUT, seed=seed)
        train.append(kept)
        if len(held_out.episodes) > 1:
            spare, needed = held_out.split(0.5, seed=seed)
            if any(map(has_window, needed.episodes)):
                held_out = needed
                test.append(spare)
        validation.append(held_out)
    return Split(join(*train), join(*validation), join(*test) if test else None)


@dataclass(frozen=True)
class Prepared:
    """Data as a model takes them.

    Attributes:
        train: Training data.
        train_windows: Windows of the training data, scaled.
        validation_windows: Windows of the validation data, scaled; only recorded rows count.
        observations: Scaling of observations.
        actions: Scaling of actions.
        skipped: Number of episodes that are too short to have a window.
    """

    train: Trajectories
    train_windows: Sequences
    validation_windows: Sequences
    observations: Scaling
    actions: Scaling
    skipped: int


def prepare(
    train: Trajectories,
    validation: Trajectories,
    *,
    length: int,
    seed: int,
    scalings: tuple[Scaling, Scaling] | None = None,
    absorbing_weight: float | None = None,
) -> Prepared:
    """Cut data into windows, and scale them to order one.

    Args:
        train: Training data.
        validation: Validation data.
        length: Observations in a window.
        seed: Random seed of the actions after an episode has ended.
        scalings: Scalings of observations and actions; by default fitted to the training data.
        absorbing_weight: Weight of training rows past the end of a terminated episode; by default
            1, or such that they count for no more than the recorded ones.
    """
    if scalings is None:
        rows = np.concatenate([episode.observations for episode in train.episodes])
        changes = np.concatenate([np.diff(e.observations, axis=0) for e in train.episodes])
        scalings = fit_scaling(rows, changes), limits_scaling(*action_limits(train))
    (train_windows, one), (validation_windows, two) = (
        sequences(data, *scalings, length=length, seed=seed, absorbing_weight=weight)
        for data, weight in ((train, absorbing_weight), (validation, 0.0))
    )
    return Prepared(
        train,
        train_windows,
        validation_windows,
        *scalings,
        skipped=one + two,
    )


def sequences(
    trajectories: Trajectories,
    observations: Scaling,
    actions: Scaling,
    *,
    length: int,
    seed: int,
    absorbing_weight: float | None,
) -> tuple[Sequences, int]:
    """Cut data into windows, and scale them; see `prepare`.

    Returns:
        The windows, and the number of episodes that are too short to have one.
    """
    cut = windows(trajectories, length, seed=seed)
    rows = observations.scaled(jnp.asarray(cut.observations, float))
    done = actions.scaled(jnp.asarray(cut.actions, float))
    if absorbing_weight is None:
        share = cut.recorded[cut.starts[:, None] + np.arange(length)].mean()
        absorbing_weight = min(1.0, float(share / max(1 - share, 1e-9)))
    weights = np.where(cut.recorded, 1.0, absorbing_weight)
    of_rows = None if np.all(weights == 1) else jnp.asarray(weights, float)
    return Sequences(rows, done, jnp.asarray(cut.starts), length, of_rows), cut.skipped


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
        data.validation_windows,
        num_updates=num_updates,
        batch_size=settings.batch_size,
        learning_rate=share * settings.learning_rate,
        warm_up=start is None,
        callback=callback,
        key=train_key,
    )
    # Not over longer windows: where a system is unstable, its errors grow beyond any noise.
    model, calibration = calibrate(trained.model, data.validation_windows, key=calibrate_key)
    return model, {
        "settings": asdict(settings),
        "observation_size": data.train.observation_size,
        "action_size": len(data.train.spaces.encoded_names),
        "stopped": trained.stopped,
        "calibration": asdict(calibration),
        "history": trained.history,
    }


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
