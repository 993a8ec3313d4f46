"""Experiments: what the command line runs."""

from empowerment.experiments.landscape import (
    ESTIMATORS,
    compute_landscape,
    grid_states,
    make_world,
    state_names,
)

__all__ = ["ESTIMATORS", "compute_landscape", "grid_states", "make_world", "state_names"]
