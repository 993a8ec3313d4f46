"""Episodes that a report shows: recorded in the environment, with frames where it renders them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from empowerment.agent.evaluation import STEP_LIMIT
from empowerment.controller import Bundle
from empowerment.controller.bound import BoundTracker
from empowerment.data import (
    Actor,
    Episode,
    RandomActor,
    close_environment,
    interval_of,
    make_environment,
    run_episode,
    spaces_of,
)
from empowerment.environments import EnvFactory
from empowerment.files import write_columns
from empowerment.report import (
    MOST_COLUMNS,
    VIDEO,
    StoredEpisode,
    StoredReplay,
    film_of,
    rounded,
    write_film,
    write_stored_replay,
    write_video,
)
from empowerment.runs.evaluation import known_world
from empowerment.runs.loading import TrainedRun
from empowerment.systems import system_of

EPISODE = "episode.csv"
"""File in a run folder with an episode of the policy."""

_VIDEO_SECONDS = 6.0
"""Duration of the video."""

_SECONDS, _FEWEST, _MOST = 10.0, 100, 1500
"""Duration of what is recorded, and the limits of its number of actions."""

_FPS = 30.0
"""Frames per second that are recorded at most; of environments that do not say theirs, exactly."""


@dataclass(frozen=True)
class Recording:
    """An episode, with frames of its beginning.

    Attributes:
        episode: The episode.
        frames: Frames of its first seconds, if the environment renders any.
        unfilmed: Why there are no frames; empty if there are.
        fps: Frames per second.
        stride: Number of actions from one frame to the next.
        interval: Seconds from one action to the next, if they are known.
        num_actions: Number of actions in the seconds that are filmed.
        names: Names of the observed columns.
        action_names: Names of the actions.
    """

    episode: Episode
    frames: UInt8[np.ndarray, "frames height width 3"] | None
    unfilmed: str
    fps: float
    stride: int
    interval: float | None
    num_actions: int
    names: tuple[str, ...]
    action_names: tuple[str, ...]


def record(
    factory: EnvFactory,
    actor: Actor | None,
    *,
    seed: int,
    start: np.ndarray | None = None,
    unfilmed: str = "",
) -> Recording:
    """Run an episode, and draw its beginning.

    Args:
        factory: Makes the environment.
        actor: Acts in it; random actions, for as long as is filmed, if none.
        seed: Random seed of environment and actor.
        start: Start state, if the environment does not sample it.
        unfilmed: Why it is not to be filmed, if so: a renderer that failed is not tried again,
            since some end the process then.
    """
    environment = make_environment(factory) if unfilmed else factory.visible()
    spaces = spaces_of(environment, factory.id)
    rate = environment.metadata.get("render_fps", _FPS) / factory.count
    interval = interval_of(environment)
    if environment.render_mode is None:
        unfilmed = unfilmed or "The environment renders no frames."
    count = int(np.clip(round(_SECONDS * rate), _FEWEST, _MOST))
    stride = max(1, int(np.ceil(rate / _FPS - 1e-6)))
    frames: list[Any] = []
    time = 0

    def look() -> None:
        nonlocal time, unfilmed
        if not unfilmed and time % stride == 0 and time < count:
            try:
                frames.append(environment.render())
            except Exception as error:  # Renderers are programs of others: anything may be raised.
                unfilmed = (
                    f"The environment could not be filmed ({type(error).__name__}: {error}). Some "
                    "renderers have to be chosen where there is no screen: MUJOCO_GL=egl."
                )
        time += 1

    path = run_episode(
        environment,
        RandomActor(spaces) if actor is None else actor,
        spaces,
        seed=seed,
        actor_seed=seed,
        limit=count if actor is None else STEP_LIMIT,
        options=None if start is None else {"state": start},
        before_step=look,
    )
    close_environment(environment)
    if not unfilmed and any(not _is_picture(frame) for frame in frames):
        unfilmed = "The environment renders no frames that could be shown."
    return Recording(
        path,
        None if unfilmed else np.stack(frames),
        unfilmed,
        rate / stride,
        stride,
        interval,
        count,
        spaces.observation_names,
        spaces.action_names,
    )


def _is_picture(frame: Any) -> bool:
    return isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.shape[2:] == (3,)


def record_policy(run: TrainedRun) -> Recording:
    """Record an episode of the mean action of a run."""
    trial = system_of(run.environment.id).trial
    start = None if trial is None else trial.starts(1, run.seed)[0]
    return record(run.environment, run.agent.actor(), seed=run.seed, start=start)


def write_episode(run: TrainedRun, recorded: Recording, folder: Path) -> None:
    """Write an episode of the policy as a table and, if it can be seen, a video."""
    if recorded.frames is not None:
        shown = recorded.frames[: max(1, round(_VIDEO_SECONDS * recorded.fps))]
        write_video(shown, folder / VIDEO, fps=recorded.fps)
    observations = recorded.episode.observations[:-1]
    names = recorded.names if run.agent.model else run.agent.world.states.names
    columns = dict(zip(names, observations.T, strict=True))
    truth, known = system_of(run.experiment.env).truth, known_world(run)
    if run.agent.model is not None and truth is not None and known is not None:
        located = truth.locate(observations)
        columns |= dict(zip(known[1].states.names, located.T, strict=True))
    columns |= dict(zip(recorded.action_names, recorded.episode.actions.T, strict=True))
    write_columns(columns, folder / EPISODE)


def write_replay(
    policy: Recording, uniform: Recording, bundle: Bundle, folder: Path, *, num_agents: int = 1
) -> None:
    """Write two recordings of an environment for the page: films, columns and empowerment.

    Args:
        policy: An episode of the policy.
        uniform: One of random actions.
        bundle: The controller, whose bound says how much empowerment there is.
        folder: The run folder.
        num_agents: Number of agents in the environment; empowerment is their mean.
    """
    stored = {}
    for name, each in (("policy", policy), ("random", uniform)):
        num_frames = 0
        if each.frames is not None:
            write_film(each.frames, film_of(folder, name), fps=policy.fps)
            num_frames = len(each.frames)
        seen = each.episode.observations[: each.num_actions + 1]
        stored[name] = StoredEpisode(
            columns=[rounded(column) for column in seen.T[:MOST_COLUMNS]],
            empowerment=_empowerment(each.episode, len(seen), bundle, num_agents),
            ended=each.episode.terminated and len(seen) == len(each.episode.observations),
            num_frames=num_frames,
        )
    interval = policy.interval
    write_stored_replay(
        StoredReplay(
            interval=None if interval is None else float(f"{interval:.6g}"),
            stride=policy.stride,
            fps=policy.fps,
            names=list(policy.names[:MOST_COLUMNS]),
            num_columns=len(policy.names),
            unfilmed=policy.unfilmed,
            **stored,
        ),
        folder,
    )


def _empowerment(
    episode: Episode, count: int, bundle: Bundle, num_agents: int
) -> list[float] | None:
    """Return the bound at the first states of an episode, as the controller estimates it."""
    if not bundle.description.has_bound:
        return None
    tracker = BoundTracker(bundle, num_agents)

    def of_agents(row: Float[np.ndarray, " _"]) -> Float[np.ndarray, "agents _"]:
        return row.reshape(num_agents, -1)

    values = [tracker.begin(of_agents(episode.observations[0]))]
    pairs = zip(episode.observations[1:count], episode.actions, strict=False)
    values += [tracker.advance(of_agents(seen), of_agents(done)) for seen, done in pairs]
    return [float(f"{each.mean():.5g}") for each in values]
