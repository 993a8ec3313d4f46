"""The record by which generic code asks what is known about a particular system."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import gymnasium
import numpy as np
from jaxtyping import Array, Float

from empowerment.agent import TrainedAgent
from empowerment.data import Episode, Trajectories
from empowerment.environments import EnvFactory
from empowerment.policy import Policy
from empowerment.report import Live, Section
from empowerment.worlds import Bounded

Watched = Sequence[Float[np.ndarray, " steps"]]
"""What was watched in each of some episodes, before each action."""

Metrics = Callable[[Sequence[Episode], gymnasium.Env, Watched], dict[str, float]]
"""Computes figures of episodes."""


@dataclass(frozen=True)
class Study:
    """A finished run, for the tables that only its system knows.

    Attributes:
        agent: The agent.
        environment: Makes its environment.
        seed: Random seed of the run.
        folder: The run folder, with the episodes of its evaluation.
        progress: Receives progress.
    """

    agent: TrainedAgent
    environment: EnvFactory
    seed: int
    folder: Path
    progress: Callable[[str, int, int], None] = lambda doing, done, total: None

    def episodes(self, actor: str) -> tuple[Episode, ...]:
        """Return the evaluated episodes of an actor."""
        return Trajectories.load(evaluated(self.folder, actor)).episodes


def evaluated(folder: Path, actor: str) -> Path:
    """Return the file of the evaluated episodes of an actor."""
    return folder / f"evaluated-{actor}.npz"


@dataclass(frozen=True)
class Truth:
    """The known world behind an environment.

    Attributes:
        world: Name of the world.
        observe: Maps states of the world to observations of the environment.
        locate: Maps observations of the environment to states of the world.
    """

    world: str
    observe: Callable[[Float[Array, "states axes"]], Float[Array, "states observation"]]
    locate: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Trial:
    """Episodes from particular start states.

    Attributes:
        starts: Samples start states, given their number and a seed.
        metrics: Computes figures of the episodes, given the control interval in seconds.
    """

    starts: Callable[[int, int], Float[np.ndarray, "starts state"]]
    metrics: Callable[[Sequence[Episode], float], dict[str, float | None]]


@dataclass(frozen=True)
class System:
    """What is known about a particular system; by default nothing.

    Attributes:
        environments: Gymnasium ids that it goes by.
        metrics: Figures of episodes.
        watch: Reads a quantity that is not observed, before every action.
        with_zero: Whether doing nothing is worth comparing with.
        trial: Episodes from particular start states.
        truth: The known world.
        units: Units of the coordinates of its states.
        describe: Describes a policy while it is trained, in a few words.
        summary: Describes the figures of an evaluation in sentences.
        after_evaluation: Writes tables to the run folder; returns further figures.
        before_report: Writes tables that are missing in the run folder.
        sections: Figures of the report.
        live: How it runs in the page of the report.
    """

    environments: tuple[str, ...] = ()
    metrics: Metrics = lambda episodes, environment, watched: {}
    watch: Callable[[gymnasium.Env], float] | None = None
    with_zero: bool = False
    trial: Trial | None = None
    truth: Truth | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    describe: Callable[[Policy, Bounded], str] = lambda policy, world: ""
    summary: Callable[[dict], list[str]] = lambda figures: []
    after_evaluation: Callable[[Study], dict[str, float]] = lambda study: {}
    before_report: Callable[[Study], None] = lambda study: None
    sections: tuple[Section, ...] = ()
    live: Live | None = None
