"""A world learnt from logged observations and actions, and the filter that tracks its state."""

from empowerment.model.calibration import calibrate
from empowerment.model.dvbf import DVBF, Prediction
from empowerment.model.elbo import Elbo, elbo, predict
from empowerment.model.evaluation import ModelEvaluation, evaluate_model
from empowerment.model.filter import Filter
from empowerment.model.fit import Prepared, fit_dvbf, hold_out, prepare, sequences, untrained_dvbf
from empowerment.model.learnt import action_limits, learnt_world
from empowerment.model.scaling import Scaling, fit_scaling, limits_scaling
from empowerment.model.settings import ModelSettings
from empowerment.model.training import Sequences
from empowerment.model.world import Latent, LearntWorld

__all__ = [
    "DVBF",
    "Elbo",
    "Filter",
    "Latent",
    "LearntWorld",
    "ModelEvaluation",
    "ModelSettings",
    "Prediction",
    "Prepared",
    "Scaling",
    "Sequences",
    "action_limits",
    "calibrate",
    "elbo",
    "evaluate_model",
    "fit_dvbf",
    "fit_scaling",
    "hold_out",
    "learnt_world",
    "limits_scaling",
    "predict",
    "prepare",
    "sequences",
    "untrained_dvbf",
]
