"""What an experiment is: plain settings."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal


@dataclass(frozen=True)
class ModelSettings:
    """Everything that decides how a model comes out of data."""

    latent_size: int = 0
    """Axes of a state; 0 for twice the observed channels and two more, at most 32."""

    model_width: int = 128
    """Of a hidden layer, in all networks of the model."""

    model_depth: int = 1
    """Hidden layers, in all networks of the model."""

    num_initial: int = 1
    """How many observations the first state is recognised from."""

    as_published: bool = False
    """Take activations, scales and transition as the paper prints them."""

    outlier_probability: float = 0.01
    """How often, in training, a value that is observed may be far off what is expected, as upon a
    contact. 0 suits what moves smoothly, and many channels that are nearly always foreseen."""

    window: int = 20
    """Observations in a sequence that the model learns from."""

    model_updates: int = 3000
    """Updates of the model, at most; fewer if it no longer gets better on data held out."""

    model_batch: int = 128
    """Sequences in an update."""

    model_learning_rate: float = 3e-3
    """Of the model, before it falls to zero over the second half."""


@dataclass(frozen=True)
class Experiment:
    """Everything that decides how a run comes out."""

    world: str = "pendulum"
    """A world by its name (`empower worlds` lists them), if it is not learnt from data."""

    env: str | None = None
    """Learn the world of this Gymnasium environment from data: an id such as Pendulum-v1, or
    module:ID of your own."""

    data: str | None = None
    """Learn the world from this file of trajectories, as `empower collect` writes them. With
    --env, it stands in for the first collection."""

    data_env: str | None = None
    """Collect the first data in this environment instead: the same system, started elsewhere."""

    data_steps: int = 20000
    """Steps that are collected in the environment, at random."""

    rounds: int = 0
    """How often the policy then collects data of its own, from which everything is learnt anew."""

    round_steps: int = 10000
    """Steps that the policy collects in a round."""

    action_repeat: int = 1
    """Steps of the environment for which an action is held."""

    agents: int = 1
    """How many alike agents the environment has, whose observations and actions come one after
    the other. Each has a filter and a policy of its own; all share their parameters."""

    model: ModelSettings = field(default_factory=ModelSettings)
    """Of a world that is learnt."""

    perceive: Literal["observations", "latent"] = "observations"
    """What counts as perceived in a learnt world: observations, or states as in the paper."""

    process_noise: bool = True
    """Count the noise of a learnt transition. Where a system is nearly deterministic, most of it
    is what the model does not know, and not noise."""

    resolution: float | None = None
    """The scale of the noise on what is perceived; the world's own if not given. In a learnt
    world it is added to the noise that was learnt; 2 % of the spread of each observed channel if
    not given."""

    steps: int = 5
    """How many actions a plan has, n."""

    family: str = "auto"
    """What kind of source and planning; auto is the tightest that the world allows."""

    channel_updates: int = 4000
    """Updates of source and planning before the policy begins; fewer if the bound settles."""

    joint: bool = False
    """Train source and planning on together with the policy, as in Algorithm 1, and take the
    bound from them. Otherwise they are left as they are and a network is fitted to the bound."""

    bound_states: int = 8192
    """States at which the bound is evaluated, to fit a network to it."""

    policy_updates: int = 2000
    """Updates of the policy."""

    horizon: int = 32
    """Actions in a rollout, T."""

    num_starts: int = 64
    """Rollouts in an update, M."""

    first_beta: float = 200.0
    """The weight of empowerment against the policy's prior, at first."""

    last_beta: float = 200.0
    """The same in the end."""

    rise: int = 1
    """Over how many updates beta goes from first to last, evenly."""

    critic: bool = True
    """Learn a value of what comes after the horizon."""

    discount: float = 0.99
    """Of what comes later, per step, with a critic."""

    learning_rate: float = 3e-3
    """Of the policy, before it falls to zero over the second half."""

    width: int = 128
    """Of a hidden layer, in all networks."""

    depth: int = 2
    """Hidden layers, in all networks but a codebook's."""

    @property
    def is_learnt(self) -> bool:
        """Whether the world is learnt from data."""
        return self.env is not None or self.data is not None


_SMOKE = {
    "channel_updates": 100,
    "bound_states": 512,
    "policy_updates": 100,
    "num_starts": 8,
    "horizon": 8,
    "data_steps": 1000,
    "round_steps": 500,
    "width": 32,
}
_MODEL_SMOKE = {"model_updates": 100, "model_batch": 16, "model_width": 32}


def with_budget(experiment: Experiment, budget: str) -> Experiment:
    """Give an experiment in full, or so small that it only shows that everything runs."""
    if budget not in ("smoke", "full"):
        raise ValueError(f"Expected the budget to be one of smoke, full; got {budget!r}.")
    if budget == "full":
        return experiment
    model = with_model_budget(experiment.model, budget)
    return replace(experiment, **_SMOKE, rounds=min(experiment.rounds, 1), model=model)


def with_model_budget(settings: ModelSettings, budget: str) -> ModelSettings:
    """Give the settings of a model in full, or so small that it only shows that all runs."""
    return replace(settings, **_MODEL_SMOKE) if budget == "smoke" else settings


def check(experiment: Experiment) -> None:
    """Refuse settings that cannot be, before anything is done."""
    at_least = {
        "data_steps": 1,
        "rounds": 0,
        "round_steps": 1,
        "action_repeat": 1,
        "agents": 1,
        "steps": 1,
        "channel_updates": 1,
        "bound_states": 1,
        "policy_updates": 100,
        "horizon": 1,
        "num_starts": 1,
        "rise": 1,
        "width": 1,
        "depth": 1,
    }
    for name, least in at_least.items():
        if getattr(experiment, name) < least:
            raise ValueError(
                f"Expected {name} to be at least {least}; got {getattr(experiment, name)}."
            )
    if experiment.policy_updates % 100:
        raise ValueError(
            f"Expected policy_updates to be a multiple of 100; got {experiment.policy_updates}."
        )
    for name in ("first_beta", "last_beta", "learning_rate"):
        if not 0 < getattr(experiment, name) < float("inf"):
            raise ValueError(
                f"Expected {name} to be positive and finite; got {getattr(experiment, name)}."
            )
    if not 0 < experiment.discount <= 1 or (experiment.critic and experiment.discount == 1):
        raise ValueError(
            "Expected the discount to be above 0 and, with a critic, below 1; got "
            f"{experiment.discount}."
        )
    if experiment.rounds and experiment.env is None:
        raise ValueError(
            "Expected an environment to collect data of further rounds in; got none. Give --env."
        )
    if experiment.resolution is not None and not 0 <= experiment.resolution < float("inf"):
        raise ValueError(
            f"Expected the resolution to be at least 0 and finite; got {experiment.resolution}."
        )
    if experiment.joint and experiment.family in ("auto", "codebook"):
        raise ValueError(
            "Expected a joint training to name a family whose planning is learnt (intent, flow, "
            f"gaussian, autoregressive, paper); got {experiment.family}."
        )


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Say which settings differ, and how."""
    before, now = _flat(before), _flat(now)
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return ", ".join(f"{name} was {before.get(name)} and is {now.get(name)}" for name in names)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Put settings within settings beside the others."""
    flat = {}
    for name, value in settings.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
