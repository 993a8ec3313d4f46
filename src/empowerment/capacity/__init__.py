"""Channel capacities, exact or in closed form: the ground truth for learnt estimates."""

from empowerment.capacity.blahut_arimoto import (
    AdditiveChannel,
    Capacity,
    DenseChannel,
    NotConvergedError,
    Stopped,
    blahut_arimoto,
)
from empowerment.capacity.discrete import discrete_empowerment
from empowerment.capacity.exact import exact_empowerment, exact_landscape
from empowerment.capacity.linearised import LinearChannel, gaussian_empowerment, linearise
from empowerment.capacity.reachable import Reachable, reachable
from empowerment.capacity.water_filling import water_filling

__all__ = [
    "AdditiveChannel",
    "Capacity",
    "DenseChannel",
    "LinearChannel",
    "NotConvergedError",
    "Reachable",
    "Stopped",
    "blahut_arimoto",
    "discrete_empowerment",
    "exact_empowerment",
    "exact_landscape",
    "gaussian_empowerment",
    "linearise",
    "reachable",
    "water_filling",
]
