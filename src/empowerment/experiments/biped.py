"""What becomes of a robot with two legs: how long it lasts, what throws it, what a fall costs."""

from pathlib import Path

import gymnasium
import numpy as np

from empowerment.data import Episode, Trajectories, make_environment
from empowerment.environments import action_repeat_of
from empowerment.experiments.agent import Made
from empowerment.experiments.evaluation import (
    WHO,
    ZERO,
    bounds_at,
    environment_of,
    run_episode,
    states_of,
)
from empowerment.experiments.measures import hull_height, limit_of
from empowerment.experiments.pilot import tracker
from empowerment.experiments.variational import Progress
from empowerment.report import write_columns

STRENGTHS = np.linspace(0.0, 76.0, 20)
"""Of pushes, in newton seconds; the hull weighs 5.4 kg."""

_WAYS = {"forwards": 1.0, "backwards": -1.0}
"""Which way a push goes, and its sign."""

_NUM_PUSHED = 10
"""Episodes for each strength and way."""

_SETTLED, _LATEST, _AFTERWARDS = 50, 150, 150
"""Actions before the first moment of a push, before the last, and after it."""

_SHOVE = 150.0
"""A push that nobody could stand."""

_DEAD = 15
"""Rows after a fall that are looked at: nothing has an effect any more."""

_NUM_TIMES = 200
"""Of a curve of survival."""


def survey_biped(made: Made, folder: Path, progress: Progress) -> None:
    """Write tables of pushes and of a fall, where they are not there yet.

    Args:
        made: What a run with the robot has made.
        folder: The run folder.
        progress: Called as it goes on.
    """
    environment = make_environment(environment_of(made.experiment))
    if not (folder / "fall.csv").exists():
        progress("making it fall", 0, 1)
        _fall(made, environment, folder)
    if not (folder / "pushes.csv").exists():
        shares: dict[str, list[float]] = {way: [] for way in _WAYS}
        for done, strength in enumerate(STRENGTHS):
            progress("pushing", done, len(STRENGTHS))
            for way, sign in _WAYS.items():
                shares[way].append(withstood(made, environment, sign * float(strength)))
        table = {"strength": STRENGTHS} | {way: np.array(each) for way, each in shares.items()}
        write_columns(table, folder / "pushes.csv")
    environment.close()


def push(environment: gymnasium.Env, strength: float) -> None:
    """Push the hull of the robot sideways, all at once."""
    hull = environment.unwrapped.hull  # pyright: ignore[reportAttributeAccessIssue]
    hull.ApplyLinearImpulse((strength, 0.0), hull.worldCenter, wake=True)


def withstood(made: Made, environment: gymnasium.Env, strength: float) -> float:
    """Give the share of episodes in which the robot does not fall upon a push.

    Args:
        made: What a run with the robot has made.
        environment: The robot's.
        strength: Of the push, forwards if positive, at a random moment.
    """
    pilot, lasted = made.pilot(), []
    for seed in range(_NUM_PUSHED):
        moment = int(np.random.default_rng(seed).integers(_SETTLED, _LATEST))
        path = run_episode(
            environment,
            pilot,
            seed=seed,
            look=_pushing(environment, moment, strength),
            longest=moment + _AFTERWARDS,
        )
        lasted.append(not path.terminated)
    return float(np.mean(lasted))


def _pushing(environment: gymnasium.Env, moment: int, strength: float):
    """Give what pushes once, at a moment, when it is called before every action."""
    times = iter(range(moment + 1))

    def look() -> None:
        if next(times, None) == moment:
            push(environment, strength)

    return look


def write_survival(made: Made, folder: Path) -> None:
    """Write the share of episodes that are not over after so many steps, for each who acted.

    Args:
        made: What a run with the robot has made.
        folder: With the episodes of its evaluation.
    """
    environment = make_environment(environment_of(made.experiment))
    held, longest = action_repeat_of(environment), limit_of(environment)
    steps = np.linspace(0, longest, _NUM_TIMES).round()
    table = {"step": steps}
    for who in (*WHO, ZERO):
        episodes = Trajectories.load(folder / f"evaluated-{who}.npz").episodes
        ends = [held * each.length if each.terminated else np.inf for each in episodes]
        table[who] = np.mean(np.array(ends)[None] > steps[:, None], axis=1)
    environment.close()
    write_columns(table, folder / "survival.csv")


def _fall(made: Made, environment: gymnasium.Env, folder: Path) -> None:
    """Write the empowerment along an episode in which the robot is shoved until it falls."""
    heights: list[float] = []
    pushing = _pushing(environment, _SETTLED, _SHOVE)

    def look() -> None:
        heights.append(hull_height(environment))
        pushing()

    pilot = made.pilot()
    path = run_episode(
        environment, pilot, seed=made.seed, look=look, longest=_SETTLED + _AFTERWARDS
    )
    last = hull_height(environment)
    seen = np.concatenate([path.observations, np.repeat(path.observations[-1:], _DEAD, axis=0)])
    done = np.concatenate([path.actions, np.repeat(path.actions[-1:], _DEAD, axis=0)])
    whole = Episode(seen, done, path.terminated, path.truncated)
    bounds = bounds_at(made, states_of(tracker(made.model), whole), made.seed)
    held = action_repeat_of(environment)
    table = {
        "step": held * np.arange(len(seen), dtype=float),
        "empowerment": bounds,
        "height": np.array([*heights, *[last] * (1 + _DEAD)]),
        "angle": seen[:, 0],
        "over": (np.arange(len(seen)) >= path.length).astype(float),
    }
    write_columns(table, folder / "fall.csv")
