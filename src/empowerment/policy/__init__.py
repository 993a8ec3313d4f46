"""The policy that seeks empowered states: Algorithm 1 of the paper."""

from empowerment.policy.base import (
    Bound as Bound,
    Critic as Critic,
    Policy as Policy,
    rollout as rollout,
)
from empowerment.policy.learner import train_policy as train_policy, warning as warning
from empowerment.policy.objective import Outcome as Outcome, cost as cost, imagine as imagine
from empowerment.policy.surrogate import (
    Evaluated as Evaluated,
    Fit as Fit,
    Surrogate as Surrogate,
    fit_bound as fit_bound,
    fit_surrogate as fit_surrogate,
    unfitted_surrogate as unfitted_surrogate,
)
from empowerment.policy.task import (
    Goal as Goal,
    Task as Task,
    counted as counted,
    make_goal as make_goal,
    parse_goal as parse_goal,
)
from empowerment.policy.training import Agent as Agent
