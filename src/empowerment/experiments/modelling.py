"""Fit a model to data, in a folder that can be interrupted at any moment."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.data import Trajectories, join
from empowerment.experiments.config import ModelSettings
from empowerment.experiments.run import Keeper, Run, Say, open_run, read_manifest
from empowerment.experiments.variational import Progress
from empowerment.model import DVBF, Scaling, calibrate, prepare, sequences
from empowerment.model import training as model_training
from empowerment.storage import load_tree, read_about, save_tree
from empowerment.types import Key

MODEL = "model"
"""The name of the stage, and of the file of a model in a run folder."""

_HELD_OUT = 0.1
"""The share of the data that a model is judged by."""

_LARGEST_LATENT = 32

_FORESIGHT = 36
"""Observations in the windows over which the noise of a model is calibrated."""

_REFINING = 0.5
"""Of the updates and of the learning rate of a fresh model, those of one that is refined."""


@dataclass(frozen=True)
class Fitted:
    """A model and the data it is of.

    Attributes:
        model: The model.
        train: What it learnt from.
        held_out: What it is judged by.
        about: How it came about.
    """

    model: DVBF
    train: Trajectories
    held_out: Trajectories
    about: dict[str, Any]


def fit_model(
    trajectories: Trajectories,
    settings: ModelSettings,
    *,
    folder: Path,
    seed: int = 0,
    resume: bool = False,
    progress: Progress = lambda doing, done, total: None,
    say: Say = lambda sentence: None,
) -> Fitted:
    """Fit a model to data and keep it in a folder, with the data.

    Killed and resumed, it ends with the same bits as if it had never been killed.

    Args:
        trajectories: The data.
        settings: Of the model.
        folder: Where everything is kept.
        seed: Of everything random.
        resume: Whether to go on with what is in the folder.
        progress: Called as training goes on.
        say: Tells the user what needs to be told.

    Returns:
        The model.
    """
    check_model_settings(settings)
    given = {"kind": "model", "model": asdict(settings), "seed": seed}
    with open_run(folder, given, resume=resume, say=say) as run:
        path = folder / "data.npz"
        if not path.exists():
            trajectories.save(path)
        elif not _are_same(trajectories, Trajectories.load(path)):
            raise ValueError(
                f"Expected the data that the model in {folder} was begun with, to go on; got "
                "other data. Fit them to another folder."
            )
        key = jax.random.key(seed)
        fitted = train_model(run, settings, (trajectories,), seed=seed, progress=progress, key=key)
        run.write_manifest(finished=True)
    return fitted


def load_model(folder: Path) -> Fitted:
    """Read a fitted model with its data.

    Args:
        folder: As `fit_model` made it.

    Raises:
        ValueError: If it is not one, is not finished, or is damaged.
    """
    manifest = read_manifest(folder)
    if not manifest["finished"] or not (folder / f"{MODEL}.json").exists():
        raise ValueError(
            f"Expected {folder} to have a finished model; there is none. Fit one by empower fit."
        )
    trajectories = Trajectories.load(folder / "data.npz")
    train, held_out = _hold_out((trajectories,), manifest["settings"]["seed"])
    model, about = read_model(folder / f"{MODEL}.safetensors")
    return Fitted(model, train, held_out, about)


def read_model(path: Path) -> tuple[DVBF, dict[str, Any]]:
    """Read the weights of a model, and what it is."""
    about = read_about(path)
    settings = ModelSettings(**about["settings"])
    sizes = about["observation_size"], about["action_size"]
    observations, actions = map(_units, sizes)
    return load_tree(_fresh(settings, observations, actions, jax.random.key(0)), path), about


def train_model(
    run: Run,
    settings: ModelSettings,
    parts: tuple[Trajectories, ...],
    *,
    seed: int,
    progress: Progress,
    key: Key,
    name: str = MODEL,
    start: DVBF | None = None,
) -> Fitted:
    """Train a model as a stage of a run, or load it if it is done.

    Args:
        run: The folder.
        settings: Of the model.
        parts: The data; something of each part is held out.
        seed: Of what is held out.
        progress: Called as training goes on.
        key: Consumed.
        name: Of the stage.
        start: A model to train further, in its own units; a fresh one if none.

    Returns:
        The model.
    """
    train, held_out = _hold_out(parts, seed)
    path = run.folder / f"{name}.safetensors"
    if path.with_suffix(".json").exists():
        model, about = read_model(path)
        return Fitted(model, train, held_out, about)
    scalings = None if start is None else (start.observations, start.actions)
    data = prepare(train, held_out, length=settings.window, seed=seed, scalings=scalings)
    if data.skipped:
        run.say(
            f"{data.skipped} episodes are shorter than {settings.window} rows: not learnt from."
        )
    make_key, train_key, calibrate_key = jax.random.split(key, 3)
    model = start or _fresh(settings, data.observations, data.actions, make_key)
    state = model_training.init(model, key=train_key)
    stored = run.load_checkpoint(name, (state, model))
    resume = None
    if stored is not None:
        history = [(made, seen) for made, seen in stored[1]["history"]]
        resume = model_training.Snapshot(*stored[0], history, stored[1]["stopped"])
    keeper = Keeper(run, name)
    # A model that goes on from another needs less, and is not to be thrown off its feet.
    share = 1.0 if start is None else _REFINING
    total = max(round(share * settings.model_updates / 100), 1) * 100
    total = min(total, settings.model_updates)

    def look(at: model_training.Snapshot) -> None:
        made, seen = at.history[-1]
        about = {"history": at.history, "stopped": at.stopped}
        keeper.keep(len(at.history), made, (at.state, at.best), about)
        progress(f"{name}, {seen['held_out']:.3f} nats held out", made, total)

    with keeper:
        trained = model_training.train(
            model,
            data.train,
            data.held_out,
            num_updates=total,
            batch_size=settings.model_batch,
            learning_rate=share * settings.model_learning_rate,
            warm_up=start is None,
            progress=look,
            resume=resume,
            key=train_key,
        )
    about = {
        "settings": asdict(settings),
        "observation_size": train.observation_size,
        "action_size": train.action_size,
        "data": [part.about for part in parts],
        "stopped": trained.stopped,
        "history": trained.history,
    }
    longest = max(episode.length for episode in held_out.episodes) + 1
    length = min(max(_FORESIGHT, settings.window), longest)
    long, _ = sequences(held_out, data.observations, data.actions, length=length, seed=seed)
    model = calibrate(trained.best, long, key=calibrate_key)
    save_tree(model, path, about=about)
    run.end_stage(name, -1)
    return Fitted(model, train, held_out, about)


def _are_same(one: Trajectories, other: Trajectories) -> bool:
    """Tell whether two logs have the same numbers."""
    return len(one.episodes) == len(other.episodes) and all(
        np.array_equal(mine.observations, its.observations, equal_nan=True)
        and np.array_equal(mine.actions, its.actions, equal_nan=True)
        for mine, its in zip(one.episodes, other.episodes, strict=True)
    )


def _hold_out(parts: tuple[Trajectories, ...], seed: int) -> tuple[Trajectories, Trajectories]:
    """Hold out a share of each part, the same whatever is added later."""
    pairs = [part.split(_HELD_OUT, seed=seed) for part in parts]
    return join(*[kept for kept, _ in pairs]), join(*[held for _, held in pairs])


def check_model_settings(settings: ModelSettings) -> None:
    """Refuse settings that cannot be, before anything is done."""
    at_least = {
        "latent_size": 0,
        "model_width": 1,
        "model_depth": 1,
        "num_initial": 1,
        "window": settings.num_initial + 1,
        "model_updates": 1,
        "model_batch": 1,
    }
    for name, least in at_least.items():
        if getattr(settings, name) < least:
            raise ValueError(
                f"Expected {name} to be at least {least}; got {getattr(settings, name)}."
            )
    if not 0 <= settings.outlier_probability < 1:
        raise ValueError(
            "Expected outlier_probability to be at least 0 and less than 1; got "
            f"{settings.outlier_probability}."
        )
    if not 0 < settings.model_learning_rate < float("inf"):
        raise ValueError(
            "Expected model_learning_rate to be positive and finite; got "
            f"{settings.model_learning_rate}."
        )


def _fresh(settings: ModelSettings, observations: Scaling, actions: Scaling, key: Key) -> DVBF:
    """Make an untrained model."""
    automatic = min(2 * observations.offset.size + 2, _LARGEST_LATENT)
    return DVBF(
        observations,
        actions,
        latent_size=settings.latent_size or automatic,
        width=settings.model_width,
        depth=settings.model_depth,
        num_initial=settings.num_initial,
        as_published=settings.as_published,
        outlier_probability=settings.outlier_probability,
        key=key,
    )


def _units(size: int) -> Scaling:
    """Stand for a scaling that is yet to be loaded."""
    return Scaling(jnp.zeros(size), jnp.ones(size))
