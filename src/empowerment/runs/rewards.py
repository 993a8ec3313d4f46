"""The reward of an environment or a log as a stage of a run: learnt in the states of its model."""

from pathlib import Path
from typing import Any

import equinox as eqx
import msgspec

from empowerment.data import Trajectories, join
from empowerment.model import (
    DVBF,
    LearntReward,
    check_rewards,
    filtered_steps,
    fit_reward,
    split,
    typical_reward,
    unfitted_reward,
)
from empowerment.optimise import Callback
from empowerment.runs.experiment import Experiment
from empowerment.runs.folder import Run
from empowerment.runs.stage import RunHooks, path_of
from empowerment.storage import load_tree, read_about
from empowerment.types import Key, Progress
from empowerment.worlds import Bounded

_STAGE = "reward"

_ROUGH = 0.5
"""Share of the spread of rewards from which the error of a learnt one is worth a warning."""


class RewardFacts(msgspec.Struct):
    """What the description of a learnt reward says, in the units of the environment."""

    error: float
    spread: float
    unit: float


def learn_reward(
    run: Run,
    experiment: Experiment,
    parts: tuple[Trajectories, ...],
    model: DVBF,
    world: Bounded,
    *,
    number: int,
    seed: int,
    progress: Progress,
    key: Key,
) -> LearntReward:
    """Learn the reward of the data of all rounds, or load it if the stage is complete.

    Its unit is that of the first round, so that the weight means the same in all of them.

    Raises:
        ValueError: If the data have no rewards.
    """
    for part in parts:
        check_rewards(part)
    window = experiment.model.window

    def fit(callback: Callback) -> tuple[LearntReward, dict[str, Any]]:
        divided = split(parts, seed, window=window)
        held_out = [each for each in (divided.validation, divided.test) if each is not None]
        learnt, judged = (
            filtered_steps(model, data, length=window, seed=seed)
            for data in (divided.train, join(*held_out))
        )
        reward, facts = fit_reward(
            learnt,
            judged,
            world.states,
            model.actions,
            unit=typical_reward(parts[0]),
            width=experiment.agent.width,
            depth=experiment.agent.depth,
            key=key,
        )
        run.log(_describe(**facts))
        return reward, facts

    hooks = RunHooks(run, number, progress, lambda stage, at: "")
    return hooks.stage(_STAGE, _like(experiment, world), fit)


def _describe(error: float, spread: float, after_end: float | None, unit: float) -> str:
    """Describe in a sentence or two how good a learnt reward is, and what its unit is."""
    text = (
        f"The learnt reward is off by {error:.3g} per action on data that it has not seen, where "
        f"rewards vary by {spread:.3g}; a typical one, {unit:.3g}, counts as a nat at weight 1."
    )
    if spread == 0 and after_end is None:
        return f"{text} All are the same, and no episode ends: there is nothing to be gained by it."
    if error > _ROUGH * spread > 0:
        return f"{text} It is a rough picture of the reward: more data may bring it closer."
    return text


def _like(experiment: Experiment, world: Bounded) -> LearntReward:
    sizes = {"width": experiment.agent.width, "depth": experiment.agent.depth}
    return eqx.filter_eval_shape(unfitted_reward, world.states, world.actions.size, **sizes)


def load_reward(experiment: Experiment, world: Bounded, folder: Path, number: int) -> LearntReward:
    """Read the reward that a run learnt."""
    return load_tree(_like(experiment, world), path_of(folder, _STAGE, number))


def reward_facts(folder: Path, number: int) -> dict[str, float]:
    """Return figures of the reward that a run learnt."""
    facts: RewardFacts = read_about(path_of(folder, _STAGE, number), RewardFacts)
    return {
        "reward_error": facts.error,
        "reward_spread": facts.spread,
        "reward_unit": facts.unit,
    }
