"""Models in folders: as a stage of a run, and by themselves."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from empowerment.data import Trajectories
from empowerment.model import (
    DVBF,
    ModelSettings,
    Scaling,
    fit_dvbf,
    prepare,
    split,
    untrained_dvbf,
)
from empowerment.optimise import Callback, Snapshot
from empowerment.runs.experiment import seed_of
from empowerment.runs.folder import Log, Run, open_run, read_manifest
from empowerment.runs.model_settings import ModelFacts, model_from_json
from empowerment.runs.stage import RunHooks, path_of
from empowerment.storage import load_tree, read_about
from empowerment.types import Key, Progress


@dataclass(frozen=True)
class Fitted:
    """A trained model and its data.

    Attributes:
        model: The model.
        train: Training data.
        validation: Data for early stopping and calibration.
        test: Data that nothing was chosen by; none if there are too few episodes.
        about: Settings, sizes, and history of the training.
    """

    model: DVBF
    train: Trajectories
    validation: Trajectories
    test: Trajectories | None
    about: dict[str, Any]


def fit_model(
    trajectories: Trajectories,
    settings: ModelSettings,
    *,
    folder: Path,
    seed: int = 0,
    resume: bool = False,
    progress: Progress = lambda doing, done, total: None,
    log: Log = lambda sentence: None,
) -> Fitted:
    """Fit a model to data and store it in a folder, with the data.

    Killed and resumed, it ends with the same bits as if it had never been killed.
    """
    settings.check()
    given = {"kind": "model", "model": asdict(settings), "seed": seed}
    with open_run(folder, given, resume=resume, log=log, read=_same_settings) as run:
        path = folder / "data.npz"
        if not path.exists():
            trajectories.save(path)
        elif not trajectories.has_same_numbers(Trajectories.load(path)):
            raise ValueError(
                f"Expected the data that the model in {folder} was begun with, to go on; got "
                "other data. Fit them to another folder."
            )
        key = jax.random.key(seed)
        train_model(run, settings, (trajectories,), seed=seed, progress=progress, key=key)
        run.write_manifest(finished=True)
    return load_model(folder)


def load_model(folder: Path) -> Fitted:
    """Read a fitted model with its data.

    Raises:
        ValueError: If it is not one, is not finished, or is damaged.
    """
    manifest = read_manifest(folder)
    path = path_of(folder, "model", 0)
    if not manifest["finished"] or not path.with_suffix(".json").exists():
        raise ValueError(
            f"Expected {folder} to have a finished model; there is none. Fit one by empower fit."
        )
    trajectories = Trajectories.load(folder / "data.npz")
    about, seed = read_about(path), seed_of(manifest["settings"])
    window = model_from_json(about.get("settings"), path.with_suffix(".json")).window
    parts = split((trajectories,), seed, window=window)
    # Before there was test data, all that training left out was for validation.
    test = parts.test if about.get("test_episodes") else None
    return Fitted(read_model(path), parts.train, parts.validation, test, about)


def read_model(path: Path) -> DVBF:
    """Read a trained model."""
    facts: ModelFacts = read_about(path, ModelFacts)
    settings = model_from_json(facts.settings, path.with_suffix(".json"))
    like = eqx.filter_eval_shape(_like, settings, facts.observation_size, facts.action_size)
    return load_tree(like, path)


def _like(settings: ModelSettings, observation_size: int, action_size: int) -> DVBF:
    """Build an untrained model of some size, for its shapes alone."""
    sizes = observation_size, action_size
    scalings = [Scaling(jnp.zeros(size), jnp.ones(size)) for size in sizes]
    return untrained_dvbf(settings, *scalings, key=jax.random.key(0))


def train_model(
    run: Run,
    settings: ModelSettings,
    parts: tuple[Trajectories, ...],
    *,
    number: int = 0,
    start: DVBF | None = None,
    seed: int,
    progress: Progress,
    key: Key,
) -> DVBF:
    """Train a model as a stage of a run, or load it if it is complete."""

    def describe(stage: str, at: Snapshot) -> str:
        return f"{at.history[-1][1]['validation']:.3f} nats in validation"

    hooks = RunHooks(run, number, progress, describe)
    if hooks.is_complete("model"):
        return read_model(path_of(run.folder, "model", number))
    scalings = None if start is None else (start.observations, start.actions)
    divided = split(parts, seed, window=settings.window)
    data = prepare(
        divided.train,
        divided.validation,
        length=settings.window,
        seed=seed,
        scalings=scalings,
        absorbing_weight=settings.absorbing_weight,
    )
    if data.skipped:
        run.log(
            f"{data.skipped} episodes are shorter than {settings.window} rows: not learnt from."
        )

    def fit(callback: Callback) -> tuple[DVBF, dict[str, Any]]:
        model, about = fit_dvbf(data, settings, start=start, callback=callback, key=key)
        if about["calibration"]["warning"]:
            run.log(about["calibration"]["warning"])
        num_test = 0 if divided.test is None else len(divided.test.episodes)
        return model, {
            **about,
            "test_episodes": num_test,
            "data": [part.about for part in parts],
        }

    like = start or untrained_dvbf(settings, data.observations, data.actions, key=jax.random.key(0))
    return hooks.stage("model", like, fit)


def _same_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Convert stored settings, also of version 1, to today's names."""
    return {**settings, "model": asdict(model_from_json(settings.get("model")))}
