"""A world learnt from logged observations and actions, and the filter that keeps track of it."""

from empowerment.model.calibration import calibrate
from empowerment.model.dvbf import DVBF, Step
from empowerment.model.elbo import Elbo, elbo, predict
from empowerment.model.filter import Filter
from empowerment.model.fitting import Prepared, action_limits, learnt_world, prepare, sequences
from empowerment.model.judgement import Judgement, judge_model
from empowerment.model.scaling import Scaling, fit_scaling, limits_scaling
from empowerment.model.training import ModelState, Sequences
from empowerment.model.world import Latent, LearntWorld

__all__ = [
    "DVBF",
    "Elbo",
    "Filter",
    "Judgement",
    "Latent",
    "LearntWorld",
    "ModelState",
    "Prepared",
    "Scaling",
    "Sequences",
    "Step",
    "action_limits",
    "calibrate",
    "elbo",
    "fit_scaling",
    "judge_model",
    "learnt_world",
    "limits_scaling",
    "predict",
    "prepare",
    "sequences",
]
