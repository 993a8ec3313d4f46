"""Runs in folders: training, evaluation and reports that survive interruption."""

from empowerment.runs.comparison import compare_runs as compare_runs
from empowerment.runs.evaluation import (
    evaluate_agent as evaluate_agent,
    evaluate_run as evaluate_run,
    known_world as known_world,
    learnt_landscape as learnt_landscape,
    summarise as summarise,
)
from empowerment.runs.experiment import Experiment as Experiment
from empowerment.runs.folder import (
    hashes as hashes,
    read_manifest as read_manifest,
    refresh_manifest as refresh_manifest,
)
from empowerment.runs.loading import (
    RunActor as RunActor,
    TrainedRun as TrainedRun,
    load_agent as load_agent,
    load_run as load_run,
)
from empowerment.runs.model_settings import smoke_model as smoke_model
from empowerment.runs.models import (
    fit_model as fit_model,
    load_model as load_model,
)
from empowerment.runs.pipeline import train_run as train_run
from empowerment.runs.presets import PRESETS as PRESETS, Preset as Preset
from empowerment.runs.report_data import UNFINISHED as UNFINISHED, report_run as report_run
from empowerment.runs.watch import watch_runs as watch_runs
