"""An agent from end to end, without files: training, acting, evaluation, and its bundle."""

from empowerment.agent.acting import Explorer, PolicyActor, tracker
from empowerment.agent.bundle import to_bundle
from empowerment.agent.evaluation import (
    ACTORS,
    ZERO,
    Evaluation,
    bounds_at,
    evaluate_policy,
    play,
    states_of,
    step_limit,
)
from empowerment.agent.settings import AgentSettings
from empowerment.agent.training import (
    Hooks,
    TrainedAgent,
    train_agent,
    train_stages,
    untrained_agent,
    untrained_surrogate,
)

__all__ = [
    "ACTORS",
    "ZERO",
    "AgentSettings",
    "Evaluation",
    "Explorer",
    "Hooks",
    "PolicyActor",
    "TrainedAgent",
    "bounds_at",
    "evaluate_policy",
    "play",
    "states_of",
    "step_limit",
    "to_bundle",
    "tracker",
    "train_agent",
    "train_stages",
    "untrained_agent",
    "untrained_surrogate",
]
