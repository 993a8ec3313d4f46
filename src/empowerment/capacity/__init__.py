"""Channel capacities, exact or in closed form: the ground truth for learnt estimates."""

from empowerment.capacity.blahut_arimoto import (
    AdditiveChannel as AdditiveChannel,
    Capacity as Capacity,
    DenseChannel as DenseChannel,
    Stopped as Stopped,
    blahut_arimoto as blahut_arimoto,
)
from empowerment.capacity.discrete import discrete_empowerment as discrete_empowerment
from empowerment.capacity.exact import (
    exact_empowerment as exact_empowerment,
    exact_landscape as exact_landscape,
)
from empowerment.capacity.linearised import (
    UNIFORM_POWER as UNIFORM_POWER,
    LinearChannel as LinearChannel,
    gaussian_empowerment as gaussian_empowerment,
    gaussian_empowerment_along as gaussian_empowerment_along,
    linearise as linearise,
)
from empowerment.capacity.reachable import reachable as reachable
from empowerment.capacity.water_filling import water_filling as water_filling
