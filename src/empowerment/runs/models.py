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
    hold_out,
    prepare,
    untrained_dvbf,
)
from empowerment.optimise import Callback, Snapshot
from empowerment.runs.experiment import model_from_json
from empowerment.runs.folder import Log, Run, open_run, read_manifest
from empowerment.runs.stage import RunHooks, path_of
from empowerment.storage import load_tree, read_about
from empowerment.types import Key, Progress


@dataclass(frozen=True)
class Fitted:
    """A trained model and its data.

    Attributes:
        model: The model.
        train: Training data.
        held_out: Validation data.
        about: Settings, sizes, and history of the training.
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
    train, held_out = hold_out((trajectories,), manifest["settings"]["seed"])
    return Fitted(read_model(path), train, held_out, read_about(path))


def read_model(path: Path) -> DVBF:
    """Read a trained model."""
    about = read_about(path)
    sizes = about["observation_size"], about["action_size"]
    return load_tree(eqx.filter_eval_shape(_like, model_from_json(about["settings"]), *sizes), path)


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
    path = path_of(run.folder, "model", number)
    if path.with_suffix(".json").exists():
        return read_model(path)
    scalings = None if start is None else (start.observations, start.actions)
    split = hold_out(parts, seed)
    data = prepare(*split, length=settings.window, seed=seed, scalings=scalings)
    if data.skipped:
        run.log(
            f"{data.skipped} episodes are shorter than {settings.window} rows: not learnt from."
        )

    def fit(callback: Callback) -> tuple[DVBF, dict[str, Any]]:
        model, about = fit_dvbf(data, settings, start=start, callback=callback, key=key)
        return model, {**about, "data": [part.about for part in parts]}

    def describe(stage: str, at: Snapshot) -> str:
        return f"{at.history[-1][1]['held_out']:.3f} nats held out"

    like = start or untrained_dvbf(settings, data.observations, data.actions, key=jax.random.key(0))
    return RunHooks(run, number, progress, describe).stage("model", like, fit)


def _same_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Convert stored settings, also of version 1, to today's names."""
    return {**settings, "model": asdict(model_from_json(settings["model"]))}
