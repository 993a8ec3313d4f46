"""A world learnt from logged observations and actions, and the filter that keeps track of it."""

from empowerment.model.calibration import calibrate
from empowerment.model.dvbf import DVBF, Prediction
from empowerment.model.elbo import Elbo, elbo, predict
from empowerment.model.evaluation import ModelEvaluation, evaluate_model
from empowerment.model.filter import Filter
from empowerment.model.fit import Prepared, action_limits, learnt_world, prepare, sequences
from empowerment.model.scaling import Scaling, fit_scaling, limits_scaling
from empowerment.model.training import ModelState, Sequences
from empowerment.model.world import Latent, LearntWorld

__all__ = [
    "DVBF",
    "Elbo",
    "Filter",
    "Latent",
    "LearntWorld",
    "ModelEvaluation",
    "ModelState",
    "Prediction",
    "Prepared",
    "Scaling",
    "Sequences",
    "action_limits",
    "calibrate",
    "elbo",
    "evaluate_model",
    "fit_scaling",
    "learnt_world",
    "limits_scaling",
    "predict",
    "prepare",
    "sequences",
]
