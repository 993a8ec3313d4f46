"""Gymnasium's robot with two legs: how long it stands, what topples it, what a fall costs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from empowerment.agent import (
    ACTORS,
    ZERO,
    TrainedAgent,
    bounds_at,
    play,
    states_of,
    step_limit,
)
from empowerment.data import Episode
from empowerment.environments import action_repeat_of
from empowerment.files import read_columns, write_columns
from empowerment.report import Section
from empowerment.systems.base import Study, System, Watched

ENVIRONMENT = "BipedalWalker-v3"

STRENGTHS = np.linspace(0.0, 76.0, 20)
"""Impulses of pushes, in newton seconds; the hull weighs 5.4 kg."""

_STANDING_HEIGHT, _STANDING_ANGLE = 4.8, 0.4
"""A robot stands if its hull is above this height and tilted by less than this angle."""

_SPEED, _METRES = 2, 1 / 6
"""Column of the forward velocity, and metres in a step per unit of it (0.3 * 20 / 50 s)."""

_BEHIND = 4.4
"""An episode that ends this far behind its start, in metres, ended where the terrain does (4.66):
no fall, and nothing that an observation would tell of."""

_WAYS = {"forwards": 1.0, "backwards": -1.0}

_NUM_PUSHED = 10
"""Number of episodes for each impulse and direction."""

_EARLIEST, _LATEST, _AFTERWARDS = 50, 150, 150
"""Number of actions before the earliest push, before the latest, and after a push."""

_TOPPLING = 150.0
"""An impulse that topples any robot."""

_NUM_DEAD = 15
"""Number of rows after a fall that are evaluated: actions have no effect there."""

_NUM_TIMES = 200
"""Number of points of a survival curve."""

_LABELS = {
    "policy": "policy, mean action",
    "sampled": "policy, sampled actions",
    "uniform": "uniformly random",
    "zero": "no action",
}


def posture(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Compute how upright a robot is, and for how long.

    Standing is a fraction of all steps that there could have been: after its end, a robot does
    not stand. Height and angle are means over the steps that there were. Robots that walk off the
    left end of the terrain are told from those that fall.
    """
    repeat, limit = action_repeat_of(environment), step_limit(environment)
    height = np.concatenate(watched)
    angle = np.concatenate([np.abs(each.observations[:-1, 0]) for each in episodes])
    standing = (height > _STANDING_HEIGHT) & (angle < _STANDING_ANGLE)
    longest = -(-limit // repeat)
    left = [each.terminated and repeat * _moved(each) < -_BEHIND for each in episodes]
    lengths = np.minimum([repeat * each.length for each in episodes], limit)
    return {
        "standing_fraction": float(standing.sum() / (len(episodes) * longest)),
        "mean_height": float(height.mean()),
        "mean_abs_angle": float(angle.mean()),
        "left_terrain_fraction": float(np.mean(left)),
        "steps_to_end_median": float(np.median(lengths)),
    }


def _moved(episode: Episode) -> float:
    """Return how far the hull has moved forwards, in metres for each step that an action holds."""
    speed = episode.observations[:, _SPEED]
    return float(0.5 * (speed[1:] + speed[:-1]).sum() * _METRES)


def hull_height(environment: gymnasium.Env) -> float:
    """Return the height of the hull."""
    return float(environment.unwrapped.hull.position.y)  # pyright: ignore[reportAttributeAccessIssue]


def push(environment: gymnasium.Env, strength: float) -> None:
    """Apply a horizontal impulse to the hull."""
    hull = environment.unwrapped.hull  # pyright: ignore[reportAttributeAccessIssue]
    hull.ApplyLinearImpulse((strength, 0.0), hull.worldCenter, wake=True)


def withstood(agent: TrainedAgent, environment: gymnasium.Env, strength: float) -> float:
    """Compute the fraction of episodes in which the robot does not fall after a push."""
    actor, lasted = agent.actor(), []
    for seed in range(_NUM_PUSHED):
        time = int(np.random.default_rng(seed).integers(_EARLIEST, _LATEST))
        path = play(
            environment,
            actor,
            seed=seed,
            before_step=_push_at(environment, time, strength),
            limit=time + _AFTERWARDS,
        )
        lasted.append(not path.terminated)
    return float(np.mean(lasted))


def _push_at(environment: gymnasium.Env, time: int, strength: float) -> Callable[[], None]:
    """Build a callback before every action that pushes once, at a given time."""
    times = iter(range(time + 1))

    def before_step() -> None:
        if next(times, None) == time:
            push(environment, strength)

    return before_step


def write_survival(study: Study) -> dict[str, float]:
    """Write the fraction of episodes that are not over by the number of steps, for each actor."""
    environment = study.environment()
    repeat, limit = action_repeat_of(environment), step_limit(environment)
    environment.close()
    steps = np.linspace(0, limit, _NUM_TIMES).round()
    table = {"step": steps}
    for actor in (*ACTORS, ZERO):
        episodes = study.episodes(actor)
        ends = [repeat * each.length if each.terminated else np.inf for each in episodes]
        table[actor] = np.mean(np.array(ends)[None] > steps[:, None], axis=1)
    write_columns(table, study.folder / "survival.csv")
    return {}


def write_pushes_and_fall(study: Study) -> None:
    """Write tables of pushes and of a fall, where they are missing."""
    environment, agent = study.environment(), study.agent
    if not (study.folder / "fall.csv").exists():
        study.progress("toppling it", 0, 1)
        write_columns(_fall(agent, environment, study.seed), study.folder / "fall.csv")
    if not (study.folder / "pushes.csv").exists():
        shares: dict[str, list[float]] = {way: [] for way in _WAYS}
        for done, strength in enumerate(STRENGTHS):
            study.progress("pushing", done, len(STRENGTHS))
            for way, sign in _WAYS.items():
                shares[way].append(withstood(agent, environment, sign * float(strength)))
        table = {"strength": STRENGTHS} | {way: np.array(each) for way, each in shares.items()}
        write_columns(table, study.folder / "pushes.csv")
    environment.close()


def _fall(agent: TrainedAgent, environment: gymnasium.Env, seed: int) -> dict[str, np.ndarray]:
    """Compute the empowerment along an episode in which the robot is toppled."""
    heights: list[float] = []
    topple = _push_at(environment, _EARLIEST, _TOPPLING)

    def before_step() -> None:
        heights.append(hull_height(environment))
        topple()

    limit = _EARLIEST + _AFTERWARDS
    path = play(environment, agent.actor(), seed=seed, before_step=before_step, limit=limit)
    heights += [hull_height(environment)] * (1 + _NUM_DEAD)
    rows = np.concatenate([path.observations, np.repeat(path.observations[-1:], _NUM_DEAD, axis=0)])
    actions = np.concatenate([path.actions, np.repeat(path.actions[-1:], _NUM_DEAD, axis=0)])
    whole = Episode(rows, actions, path.terminated, path.truncated)
    return {
        "step": action_repeat_of(environment) * np.arange(len(rows), dtype=float),
        "empowerment": bounds_at(agent, states_of(agent, [whole]), seed),
        "height": np.array(heights),
        "angle": rows[:, 0],
        "over": (np.arange(len(rows)) >= path.length).astype(float),
    }


def summary(figures: dict) -> list[str]:
    """Describe how well the robot stands."""
    return [
        f"It stands {figures['standing_fraction']:.0%} of the time, with the hull at "
        f"{figures['mean_height']:.2f} and tilted by {figures['mean_abs_angle']:.2f} (random: "
        f"{figures['uniform']['standing_fraction']:.0%}; no action: "
        f"{figures['zero']['standing_fraction']:.0%})."
    ]


def draw_survival(folder: Path) -> Figure:
    """Draw the fraction of robots that have not fallen by the number of steps."""
    step, *shares = read_columns(folder / "survival.csv", ["step", *_LABELS]).T
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for label, share in zip(_LABELS.values(), shares, strict=True):
        axes.plot(step, share, label=label)
    axes.set(xlabel="steps", ylabel="fraction not fallen", ylim=(-0.03, 1.03))
    axes.legend(fontsize=8)
    return figure


def draw_pushes(folder: Path) -> Figure:
    """Draw the fraction of robots that withstand a push, by impulse and direction."""
    strength, *shares = read_columns(folder / "pushes.csv", ["strength", *_WAYS]).T
    figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for way, share, style in zip(_WAYS, shares, ("o-", "s--"), strict=True):
        axes.plot(strength, share, style, ms=4, label=way)
    axes.legend(fontsize=8)
    axes.set(xlabel="impulse on the hull / N s", ylabel="fraction not fallen", ylim=(-0.03, 1.03))
    return figure


def draw_fall(folder: Path) -> Figure:
    """Draw empowerment and height of the hull along an episode that ends in a fall."""
    names = ["step", "empowerment", "height", "over"]
    step, empowerment, height, over = read_columns(folder / "fall.csv", names).T
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(6, 4.2), layout="constrained", sharex=True)
    upper.plot(step, empowerment)
    upper.set(ylabel="empowerment / nats")
    lower.plot(step, height, color="tab:green")
    lower.set(ylabel="height of the hull", xlabel="steps")
    if np.any(over > 0):
        for axes in (upper, lower):
            axes.axvline(step[np.argmax(over > 0)], color="crimson", linestyle=":")
    return figure


SYSTEMS = (
    System(
        environments=(ENVIRONMENT,),
        metrics=posture,
        watch=hull_height,
        with_zero=True,
        summary=summary,
        after_evaluation=write_survival,
        before_report=write_pushes_and_fall,
        sections=(
            Section(
                "survival",
                "Survival",
                ("survival.csv",),
                draw_survival,
                "Fraction of episodes that have not ended after a number of steps.",
            ),
            Section(
                "pushes",
                "Pushes it withstands",
                ("pushes.csv",),
                draw_pushes,
                f"Fraction of {_NUM_PUSHED} episodes in which it does not fall within "
                f"{_AFTERWARDS} actions after a horizontal impulse.",
            ),
            Section(
                "fall",
                "Empowerment along an episode in which it falls",
                ("fall.csv",),
                draw_fall,
                "It is pushed over. The dotted line is where the environment ends the episode; "
                "beyond it, the last row is repeated.",
            ),
        ),
    ),
)
