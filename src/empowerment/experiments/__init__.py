"""Experiments: what the command line runs."""

from empowerment.experiments.agent import Acting, Made, load_agent, train_agent
from empowerment.experiments.config import (
    Experiment,
    ModelSettings,
    with_budget,
    with_model_budget,
)
from empowerment.experiments.evaluation import evaluate_agent
from empowerment.experiments.landscape import (
    ESTIMATORS,
    compute_landscape,
    grid_states,
    make_world,
    state_names,
)
from empowerment.experiments.modelling import Fitted, fit_model, load_model
from empowerment.experiments.presets import LEARNT, PRESETS
from empowerment.experiments.run import read_manifest, refresh_manifest
from empowerment.experiments.survey import evaluate_run, survey

__all__ = [
    "ESTIMATORS",
    "LEARNT",
    "PRESETS",
    "Acting",
    "Experiment",
    "Fitted",
    "Made",
    "ModelSettings",
    "compute_landscape",
    "evaluate_agent",
    "evaluate_run",
    "fit_model",
    "grid_states",
    "load_agent",
    "load_model",
    "make_world",
    "read_manifest",
    "refresh_manifest",
    "state_names",
    "survey",
    "train_agent",
    "with_budget",
    "with_model_budget",
]
