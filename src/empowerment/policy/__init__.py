"""The policy that seeks empowered states: Algorithm 1 of the paper."""

from empowerment.policy.base import Bound, Critic, Policy, Rollout, rollout
from empowerment.policy.cost import Outcome, cost, follow
from empowerment.policy.surrogate import Surrogate, fit_surrogate
from empowerment.policy.training import Agent, AgentState
from empowerment.policy.training import train as train_policy

__all__ = [
    "Agent",
    "AgentState",
    "Bound",
    "Critic",
    "Outcome",
    "Policy",
    "Rollout",
    "Surrogate",
    "cost",
    "fit_surrogate",
    "follow",
    "rollout",
    "train_policy",
]
