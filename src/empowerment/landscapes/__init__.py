"""Landscapes: the empowerment of many states of a world, by an estimator called by its name."""

from empowerment.landscapes.estimators import (
    compute_landscape as compute_landscape,
    describe as describe,
    grid_states as grid_states,
    make_world as make_world,
    noise as noise,
    state_names as state_names,
)
from empowerment.landscapes.variational import variational_landscape as variational_landscape
