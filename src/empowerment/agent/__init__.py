"""An agent from end to end, without files: training, acting, evaluation, and its bundle."""

from empowerment.agent.acting import (
    Explorer as Explorer,
    PolicyActor as PolicyActor,
)
from empowerment.agent.bundle import to_bundle as to_bundle
from empowerment.agent.evaluation import (
    ACTORS as ACTORS,
    ZERO as ZERO,
    bounds_at as bounds_at,
    evaluate_policy as evaluate_policy,
    play as play,
    play_many as play_many,
    states_of as states_of,
    step_limit as step_limit,
)
from empowerment.agent.monitor import monitored as monitored
from empowerment.agent.reality import (
    Comparison as Comparison,
    Outcome as Outcome,
    compare as compare,
)
from empowerment.agent.settings import AgentSettings as AgentSettings
from empowerment.agent.support import Support as Support, support as support
from empowerment.agent.training import (
    Hooks as Hooks,
    TrainedAgent as TrainedAgent,
    train_agent as train_agent,
    train_stages as train_stages,
    unfitted as unfitted,
    untrained_agent as untrained_agent,
    untrained_surrogate as untrained_surrogate,
    with_steps as with_steps,
)
