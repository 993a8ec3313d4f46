"""The settings of a run: plain data, on the command line and in the manifest."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from empowerment.agent import AgentSettings
from empowerment.data import LogOptions
from empowerment.files import convert
from empowerment.model import ModelSettings
from empowerment.policy import Task, make_goal, parse_goal
from empowerment.runs.model_settings import SOURCE, model_from_json, smoke_model
from empowerment.settings import check_at_least


@dataclass(frozen=True)
class Experiment:
    """Everything but the seed that determines the result of a run."""

    world: str | None = None
    """A named world (`empower worlds` lists them), if it is not learnt from data."""

    env: str | None = None
    """Learn the world of this Gymnasium environment from data: an id such as Pendulum-v1, or
    module:ID of your own."""

    data: str | None = None
    """Learn the world from this log, without any environment: what `empower collect` writes, or
    any format that `empower data` reads. With --env, it replaces the first collection."""

    data_env: str | None = None
    """Collect the first data in this environment instead: the same system, started elsewhere."""

    data_steps: int = 20000
    """Number of steps in the environment for which random actions are collected first."""

    rounds: int | Literal["auto"] = "auto"
    """Number of further rounds, each with data collected by the policy of the round before; the
    model is fine-tuned, channel and policy are trained anew. auto goes on until what is imagined is
    what happens and nothing improves, or the steps are spent. The round whose real episodes were
    best is kept. 0 does without acting."""

    round_steps: int = 20000
    """Number of steps in the environment for which the policy collects in a round, half of them by
    its mean action."""

    env_steps: int = 100000
    """Number of steps in the environment, of all rounds together, if their number is auto."""

    action_repeat: int | Literal["auto"] = "auto"
    """Number of steps in the environment for which an action is repeated; auto is 1 but where all
    that is observed changes slowly."""

    agents: int = 1
    """Number of alike agents in the environment, whose observations and actions are concatenated.
    Each has a filter and a policy of its own; all share their parameters."""

    perceive: Literal["observations", "latent"] = "observations"
    """What counts as perceived in a learnt world: observations, or states as in the paper."""

    process_noise: bool = True
    """Whether to count the noise of a learnt transition. Where a system is nearly deterministic,
    most of it is model error rather than noise."""

    resolution: float | None = None
    """Scale of the noise on what is perceived; by default the world's own. In a learnt world it
    adds to the learnt noise; by default it is 2 % of the scale of each observed column."""

    devices: int = 1
    """Number of devices over which the batches of model, channel and policy are spread. The bits
    of results depend on it."""

    goal: str | None = None
    """A place to be at as well, such as x=2,y=3: columns of an observation and their values. The
    policy gains empowerment plus --task-weight times 1 - sqrt(1 + d^2 / s^2), with d the distance
    from the goal."""

    goal_scale: float | None = None
    """How near is near: s, in the units of the columns of the goal; by default 1."""

    task_weight: float | Literal["alone"] | None = None
    """Weight of the goal against empowerment, in nats, by default 1; alone leaves empowerment out.
    Without a goal it is the weight of the rewards of --env or --data, learnt with the world: what
    an action of the first data is typically paid counts so many nats. By default rewards do not
    count."""

    agent: Annotated[AgentSettings, arg(name="")] = field(default_factory=AgentSettings)
    """Hyperparameters of channel and policy."""

    model: ModelSettings = field(default_factory=ModelSettings)
    """Hyperparameters of a learnt world."""

    log: Annotated[LogOptions, arg(name="")] = field(default_factory=LogOptions)
    """What the log does not say itself."""

    def __post_init__(self):
        """Let a goal have its scale and weight."""
        if self.goal is not None and self.goal_scale is None:
            object.__setattr__(self, "goal_scale", 1.0)
        if self.goal is not None and self.task_weight is None:
            object.__setattr__(self, "task_weight", 1.0)

    @property
    def is_learnt(self) -> bool:
        """Whether the world is learnt from data."""
        return self.env is not None or self.data is not None

    @property
    def num_acted(self) -> int:
        """Largest number of rounds after which the policy acts in the environment."""
        if self.env is None:
            return 0
        if self.rounds != "auto":
            return self.rounds + 1 if self.rounds else 0
        first = self.data_steps if self.data is None else 0
        return max(self.env_steps - first, 0) // self.round_steps

    @property
    def num_repeats(self) -> int:
        """Number of steps for which an action is repeated, once it is known."""
        if self.action_repeat == "auto":
            raise ValueError("Expected the action repeat; got auto. Choose it first.")
        return self.action_repeat

    @property
    def num_rounds(self) -> int:
        """Largest number of rounds, the first included."""
        return max(self.num_acted, 1)

    @property
    def has_environment(self) -> bool:
        """Whether there is an environment to act in, and not a log alone."""
        return self.env is not None or not self.is_learnt

    @property
    def weight(self) -> float:
        """Weight of the task; infinite if it is alone, zero if there is none."""
        return math.inf if self.task_weight == "alone" else self.task_weight or 0.0

    @property
    def learns_reward(self) -> bool:
        """Whether the task is the reward that the data have."""
        return self.goal is None and self.weight > 0

    def task(self, names: Sequence[str], angles: Sequence[str] = ()) -> Task | None:
        """Build the task of a goal, given what is perceived and which of it are angles."""
        if self.goal is None or self.goal_scale is None:
            return None
        goal = make_goal(self.goal, names, angles=angles, scale=self.goal_scale)
        return Task(goal, self.weight)

    def check(self) -> None:
        """Raise a `ValueError` if the settings cannot be."""
        if self.world is None and not self.is_learnt:
            raise ValueError("Expected a world, an environment or data to learn from; got none.")
        check_at_least(self, data_steps=1, round_steps=2, env_steps=1, agents=1, devices=1)
        if self.action_repeat != "auto":
            check_at_least(self, action_repeat=1)
            if self.action_repeat > min(self.data_steps, self.round_steps // 2):
                raise ValueError(
                    "Expected an action to be repeated for fewer steps than are collected; got "
                    f"{self.action_repeat}."
                )
        if self.rounds != "auto":
            check_at_least(self, rounds=0)
        self.agent.check()
        self.model.check()
        if self.is_learnt and self.agent.steps == "auto":
            raise ValueError(
                "Expected the number of steps of a plan where the world is learnt; got auto. "
                "Choose it by --steps."
            )
        if self.data is None and (given := self.log.given()):
            raise ValueError(
                f"Expected a log that --{given[0]} is about; got none. Add --data LOG."
            )
        self.log.check()
        if self.rounds not in ("auto", 0) and self.env is None:
            raise ValueError(
                "Expected an environment to collect data of further rounds in; got none. Name one "
                "by --env."
            )
        self._check_task()
        if self.resolution is not None and not 0 <= self.resolution < float("inf"):
            raise ValueError(
                f"Expected the resolution to be at least 0 and finite; got {self.resolution}."
            )

    def _check_task(self) -> None:
        if self.goal is None and self.goal_scale is not None:
            raise ValueError("Expected a goal for goal_scale; got none.")
        if self.goal is None and self.task_weight is not None and not self.is_learnt:
            raise ValueError(
                "Expected a goal, or the rewards of --env or --data, for task_weight; got neither."
            )
        if self.task_weight not in (None, "alone") and not 0 <= float(self.task_weight) < math.inf:
            raise ValueError(
                f"Expected task_weight to be at least 0 and finite, or alone; got "
                f"{self.task_weight}."
            )
        if self.goal is not None:
            self.task(list(parse_goal(self.goal)))  # Raises if it cannot be.

    def with_agent(self, **changes: Any) -> "Experiment":
        """Return the experiment with other hyperparameters of the agent."""
        return replace(self, agent=replace(self.agent, **changes))

    def with_budget(self, budget: str) -> "Experiment":
        """Return the experiment as it is (full), or tiny, to test that everything runs (smoke)."""
        if budget not in ("smoke", "full"):
            raise ValueError(f"Expected the budget to be one of smoke, full; got {budget!r}.")
        if budget == "full":
            return self
        return replace(
            self,
            data_steps=1000,
            round_steps=500,
            env_steps=1500,
            rounds="auto" if self.rounds == "auto" else min(self.rounds, 1),
            agent=replace(self.agent, **_SMOKE),
            model=smoke_model(self.model),
        )


_SMOKE: dict[str, Any] = {
    "channel_updates": 100,
    "bound_states": 512,
    "policy_updates": 100,
    "num_starts": 8,
    "horizon": 8,
    "width": 32,
}

_LATER = ("env_steps", "log", "devices", "goal", "goal_scale", "task_weight")
"""Settings that runs of earlier versions do not have."""


def from_json(settings: dict[str, Any], source: Path | str = SOURCE) -> tuple[Experiment, int]:
    """Read experiment and seed from the settings of a manifest, also of version 1.

    Hyperparameters that it leaves out have their defaults, since versions add some.

    Args:
        settings: The settings.
        source: Where they are from, for error messages.

    Raises:
        ValueError: If they are not those of a run.
    """
    given = dict(settings)
    seed = seed_of(given, source)
    given.pop("seed")
    agent_names = [f.name for f in fields(AgentSettings)]
    if "agent" not in given and "steps" in given:
        # Version 1 had the settings of the agent among the others, and the noise.
        given["agent"] = {name: given.pop(name) for name in agent_names if name in given}
        given.pop("noise", None)
        if given.get("env") or given.get("data"):
            given["world"] = None
    for name, read in (("agent", _agent_from_json), ("model", model_from_json)):
        if name in given:
            given[name] = asdict(read(given[name], source))
    defaults = asdict(Experiment())
    for name in _LATER:
        given.setdefault(name, defaults[name])
    if given.get("goal") is None and given["goal_scale"] is not None:
        # Earlier versions stored a weight without anything that it was the weight of.
        given |= {"goal_scale": None, "task_weight": None}
    experiment = convert(given, Experiment, what="the settings of a run", source=source)
    experiment.check()
    return experiment, seed


def seed_of(settings: dict[str, Any], source: Path | str = SOURCE) -> int:
    """Return the seed among the settings of a manifest."""
    return convert(settings.get("seed"), int, what="settings with a seed", source=source)


def _agent_from_json(settings: Any, source: Path | str) -> AgentSettings:
    """Read the hyperparameters of an agent."""
    what = "the settings of an agent"
    given = convert(settings, dict[str, Any], what=what, source=source)
    return convert(asdict(AgentSettings()) | given, AgentSettings, what=what, source=source)


def to_json(experiment: Experiment, seed: int) -> dict[str, Any]:
    """Return experiment and seed as the settings of a manifest."""
    return {**asdict(experiment), "seed": seed}
