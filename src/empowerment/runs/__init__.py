"""Runs in folders: training, evaluation and reports that survive interruption."""

from empowerment.runs.evaluation import (
    evaluate_agent,
    evaluate_run,
    known_world,
    learnt_landscape,
    summarise,
)
from empowerment.runs.experiment import Experiment, smoke_model
from empowerment.runs.folder import Progress, hashes, open_run, read_manifest, refresh_manifest
from empowerment.runs.landscape import (
    ESTIMATORS,
    compute_landscape,
    grid_states,
    make_world,
    state_names,
)
from empowerment.runs.loading import RunActor, TrainedRun, load_agent, load_run
from empowerment.runs.models import Fitted, fit_model, load_model
from empowerment.runs.pipeline import train_run
from empowerment.runs.presets import LEARNT, PRESETS, Preset
from empowerment.runs.report_data import report_run

__all__ = [
    "ESTIMATORS",
    "LEARNT",
    "PRESETS",
    "Experiment",
    "Fitted",
    "Preset",
    "Progress",
    "RunActor",
    "TrainedRun",
    "compute_landscape",
    "evaluate_agent",
    "evaluate_run",
    "fit_model",
    "grid_states",
    "hashes",
    "known_world",
    "learnt_landscape",
    "load_agent",
    "load_model",
    "load_run",
    "make_world",
    "open_run",
    "read_manifest",
    "refresh_manifest",
    "report_run",
    "smoke_model",
    "state_names",
    "summarise",
    "train_run",
]
