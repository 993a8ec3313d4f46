"""Evaluating a run in its environment, with the figures that its system knows."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Float

from empowerment.agent import bounds_at, evaluate_policy, play_many
from empowerment.channel import NEAR_CEILING, ceiling
from empowerment.data import (
    Trajectories,
    close_environment,
    interval_of,
    make_environment,
    spaces_of,
)
from empowerment.files import check_writable, write_atomic
from empowerment.landscapes import make_world
from empowerment.model import Filter
from empowerment.runs.loading import TrainedRun, load_run
from empowerment.runs.rewards import reward_facts
from empowerment.runs.stage import path_of
from empowerment.storage import read_about
from empowerment.systems import Study, System, evaluated, system_of
from empowerment.types import Progress
from empowerment.worlds import AbstractWorld, Grid

_NUM_SAMPLES = 4096
"""Draws for the bound of a state: differences between states must exceed sampling noise."""


def evaluate_agent(
    run: TrainedRun,
    *,
    episodes: int = 100,
    seed: int = 0,
    progress: Progress = lambda doing, done, total: None,
    keep: Callable[[str, Trajectories], None] = lambda actor, trajectories: None,
) -> dict[str, Any]:
    """Run the policy of a run in its environment, through its filter if it has one.

    Args:
        run: A finished run.
        episodes: Number of episodes of each actor; as many again from particular start states
            where the system has them.
        seed: Random seed.
        progress: Receives progress.
        keep: Receives the episodes of each actor.

    Returns:
        The figures of the policy by its mean action; of sampled actions under `sampled`, of random
        ones under `uniform`, of doing nothing under `zero` where that is worth comparing with;
        and how they were made.
    """
    if episodes < 1:
        raise ValueError(f"Expected at least one episode; got {episodes}.")
    system, factory = system_of(run.environment.id), run.environment
    environment = make_environment(factory)
    evaluations = evaluate_policy(
        run.agent,
        environment,
        episodes=episodes,
        seed=seed,
        watch=system.watch,
        with_zero=system.with_zero,
        progress=progress,
    )
    figures = {
        actor: each.figures | system.metrics(each.episodes, environment, each.watched)
        for actor, each in evaluations.items()
    }
    policy = figures.pop("policy") | _trial(run, system, environment, episodes, seed)
    if math.isfinite(ceiling(run.agent.channel)):
        policy["empowerment_ceiling"] = ceiling(run.agent.channel)
    about = {"environment": factory.id, "seed": seed}
    spaces = spaces_of(environment, factory.id)
    close_environment(environment)
    for actor, each in evaluations.items():
        keep(actor, Trajectories(each.episodes, spaces, about))
    return {**policy, **figures, "episodes": episodes, **about}


def _trial(
    run: TrainedRun, system: System, environment: gymnasium.Env, episodes: int, seed: int
) -> dict[str, float | None]:
    """Compute the figures of episodes from particular start states."""
    interval = interval_of(environment)
    if system.trial is None or interval is None:
        return {}
    actor, starts = run.agent.actor(), system.trial.starts(episodes, seed)
    paths = play_many(run.agent, environment, actor, seeds=[seed] * episodes, starts=starts)
    return system.trial.metrics(list(paths), interval)


def evaluate_run(
    folder: Path,
    *,
    episodes: int = 100,
    seed: int = 0,
    env: str | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> dict[str, Any]:
    """Evaluate a finished run, and store the figures in its folder as `evaluation.json`.

    Args:
        folder: The run folder.
        episodes: Number of episodes of each actor.
        seed: Random seed.
        env: Id of its environment, to allow the import of the module in `module:ID`.
        progress: Receives progress.
    """
    run = load_run(folder, env=env)
    check_writable(folder / "evaluation.json")  # Now, rather than after the evaluation.
    figures = evaluate_agent(
        run,
        episodes=episodes,
        seed=seed,
        progress=progress,
        keep=lambda actor, paths: paths.save(evaluated(folder, actor)),
    )
    if run.experiment.learns_reward:
        figures |= reward_facts(folder, run.number)
    study = Study(run.agent, run.environment, run.seed, folder)
    figures |= system_of(run.environment.id).after_evaluation(study) | _surrogate(run, folder)
    write_atomic(folder / "evaluation.json", (json.dumps(figures, indent=2) + "\n").encode())
    return figures


class _SurrogateFacts(msgspec.Struct):
    """What the description of a surrogate says; in earlier versions without a spread."""

    error: float
    spread: float | None = None


def _surrogate(run: TrainedRun, folder: Path) -> dict[str, float]:
    """Read how far the surrogate is off that a policy was trained on, and how the bound varies."""
    if run.agent.surrogate is None or run.experiment.agent.joint:
        return {}
    path = path_of(folder, "surrogate", run.number)
    facts: _SurrogateFacts = read_about(path, _SurrogateFacts)
    if facts.spread is None:  # Then the error is partly of states that it was fitted to.
        return {}
    return {"surrogate_error": facts.error, "surrogate_spread": facts.spread}


def summarise(figures: dict[str, Any]) -> list[str]:
    """Describe the figures of an evaluation in sentences."""
    uniform = figures["uniform"]
    sentences = [
        f"Along {figures['episodes']} episodes the policy has {figures['empowerment_mean']:.3f} "
        f"nats of empowerment on average; a random one {uniform['empowerment_mean']:.3f}."
    ]
    if figures["empowerment_mean"] > figures.get("empowerment_ceiling", math.inf) - NEAR_CEILING:
        sentences.append(
            f"That is at the ceiling of its codebook, {figures['empowerment_ceiling']:.2f} nats: "
            "there may be more."
        )
    if "task_reward_mean" in figures:
        sentences.append(
            f"Its task pays {figures['task_reward_mean']:.3f} per step on average; a random one "
            f"{uniform['task_reward_mean']:.3f}."
        )
    if any(each.get("return_mean") for each in (figures, uniform)):
        sentences.append(
            f"The environment pays {figures['return_mean']:.1f} per episode on average; for a "
            f"random one {uniform['return_mean']:.1f}."
        )
    if "reward_error" in figures:
        sentences.append(
            f"The reward that it learnt was off by {figures['reward_error']:.3g} per action on "
            f"data that it had not seen, where rewards vary by {figures['reward_spread']:.3g}."
        )
    if figures["survived_fraction"] < 1 or uniform["survived_fraction"] < 1:
        sentences.append(
            f"It survives {figures['survived_fraction']:.0%} of them, "
            f"{figures['episode_length_mean']:.0f} steps on average (random: "
            f"{uniform['survived_fraction']:.0%}, {uniform['episode_length_mean']:.0f})."
        )
    try:
        sentences += system_of(figures["environment"]).summary(figures)
        if "surrogate_error" in figures:
            sentences.append(
                "The surrogate of the bound that the policy was trained on was at first off by "
                f"{figures['surrogate_error']:.3g} nats at states to which it was not fitted; the "
                f"bound itself varies by {figures['surrogate_spread']:.3g} nats over them."
            )
        if "surrogate_visited_error" in figures:
            what = "Refined where the policy goes, it"
            if "surrogate_error" not in figures:
                what = "The network that was fitted to the bound"
            sentences.append(
                f"{what} is off by "
                f"{figures['surrogate_visited_error']:.3g} nats along these episodes, and by "
                f"{figures['surrogate_best_error']:.3g} at the tenth that it takes for the best."
            )
        return sentences
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"Expected the figures to be those of {figures['environment']}; got {error} wrong. "
            "Evaluate the run again."
        ) from error


def known_world(run: TrainedRun) -> tuple[str, AbstractWorld] | None:
    """Return the name and the known world behind a run, if there is one."""
    if not run.experiment.is_learnt:
        return str(run.experiment.world), run.agent.world.world
    truth = system_of(run.experiment.env).truth
    if truth is None:
        return None
    world = make_world(truth.world, resolution=run.experiment.resolution)
    assert not isinstance(world, Grid)
    return truth.world, world


def learnt_landscape(
    run: TrainedRun, states: Float[np.ndarray, "states axes"]
) -> Float[np.ndarray, " states"]:
    """Estimate the bound in a learnt world at states of the known world behind it."""
    truth, model = system_of(run.experiment.env).truth, run.agent.model
    assert truth is not None
    assert model is not None
    observations = truth.observe(jnp.asarray(states, float))
    first = jnp.repeat(observations[:, None], model.num_initial, axis=1)
    estimates = np.asarray(jax.jit(jax.vmap(Filter(model).init))(first))
    return bounds_at(run.agent, estimates, 0, num_samples=_NUM_SAMPLES)
