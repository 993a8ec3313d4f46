"""Experiments: what the command line runs."""

from empowerment.experiments.agent import Made, load_agent, train_agent
from empowerment.experiments.config import PRESETS, Experiment, with_budget
from empowerment.experiments.evaluation import evaluate_agent
from empowerment.experiments.landscape import (
    ESTIMATORS,
    compute_landscape,
    grid_states,
    make_world,
    state_names,
)
from empowerment.experiments.run import refresh_manifest
from empowerment.experiments.survey import evaluate_run, survey

__all__ = [
    "ESTIMATORS",
    "PRESETS",
    "Experiment",
    "Made",
    "compute_landscape",
    "evaluate_agent",
    "evaluate_run",
    "grid_states",
    "load_agent",
    "make_world",
    "refresh_manifest",
    "state_names",
    "survey",
    "train_agent",
    "with_budget",
]
