"""A world learnt from logged observations and actions, and the filter that tracks its state."""

from empowerment.model.calibration import Calibration as Calibration, calibrate as calibrate
from empowerment.model.dvbf import DVBF as DVBF
from empowerment.model.elbo import elbo as elbo, predict as predict
from empowerment.model.evaluation import (
    ModelEvaluation as ModelEvaluation,
    evaluate_model as evaluate_model,
)
from empowerment.model.filter import Filter as Filter
from empowerment.model.fit import (
    Split as Split,
    fit_dvbf as fit_dvbf,
    prepare as prepare,
    split as split,
    untrained_dvbf as untrained_dvbf,
)
from empowerment.model.learnt import learnt_world as learnt_world
from empowerment.model.reward import (
    LearntReward as LearntReward,
    check_rewards as check_rewards,
    filtered_steps as filtered_steps,
    fit_reward as fit_reward,
    typical_reward as typical_reward,
    unfitted_reward as unfitted_reward,
)
from empowerment.model.scaling import (
    Scaling as Scaling,
    fit_scaling as fit_scaling,
)
from empowerment.model.settings import ModelSettings as ModelSettings
from empowerment.model.training import Sequences as Sequences
from empowerment.model.world import Latent as Latent, LearntWorld as LearntWorld
