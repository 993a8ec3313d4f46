"""The policy that seeks empowered states: Algorithm 1 of the paper."""

from empowerment.policy.base import Bound, Critic, Policy, Rollout, rollout
from empowerment.policy.objective import Outcome, cost, imagine
from empowerment.policy.surrogate import Surrogate, fit_surrogate, unfitted_surrogate
from empowerment.policy.training import Agent
from empowerment.policy.training import train as train_policy

__all__ = [
    "Agent",
    "Bound",
    "Critic",
    "Outcome",
    "Policy",
    "Rollout",
    "Surrogate",
    "cost",
    "fit_surrogate",
    "imagine",
    "rollout",
    "train_policy",
    "unfitted_surrogate",
]
