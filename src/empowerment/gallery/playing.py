"""Playing one episode of a controller in its environment, beside random actions."""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float32, UInt8

from empowerment.controller import Bundle, Controller
from empowerment.controller.bound import BoundTracker
from empowerment.data import (
    Actor,
    Episode,
    RandomActor,
    check_named,
    close_environment,
    interval_of,
    make_environment,
    run_episode,
    spaces_of,
)
from empowerment.environments import EnvFactory
from empowerment.gallery.exhibits import Exhibit
from empowerment.systems import System, system_of

_STEP_LIMIT = 2000
"""Number of actions after which an episode is truncated, where the environment sets no limit."""

_FPS = 20.0
"""Frames per second of a film, where the environment does not say its own."""


@dataclass(frozen=True)
class Played:
    """Episodes of a controller.

    Attributes:
        figures: Figures of its system, and mean empowerment by the fitted bound; those of random
            actions from the same starts under `uniform`.
        sentences: The same in words.
        frames: Film of the first episode, if it was asked for.
        fps: Its frames per second.
    """

    figures: dict[str, Any]
    sentences: list[str]
    frames: UInt8[np.ndarray, "frames height width 3"] | None
    fps: float


class _ControllerActor:
    """A controller as an actor of the episode loop."""

    def __init__(self, bundle: Bundle):
        self._controller = Controller(bundle, engine="numpy")

    def reset(self, *, seed: int) -> None:
        """Start an episode; the mean action needs no seed."""
        del seed
        self._controller.reset()

    def __call__(
        self, observation: Float32[np.ndarray, " observation"]
    ) -> Float32[np.ndarray, " action"]:
        """Return the action for an observation."""
        return self._controller.step(observation)


def play_exhibit(
    exhibit: Exhibit, *, seed: int = 0, episodes: int = 1, film: bool = False
) -> Played:
    """Run episodes by the controller, and as many by random actions from the same starts.

    Args:
        exhibit: The controller.
        seed: Random seed of the starts; the environment and random actions have one more for each
            further episode.
        episodes: Number of episodes of each.
        film: Whether to draw every step of the controller's first episode.
    """
    if seed < 0:
        raise ValueError(f"Expected the seed to be at least 0; got {seed}.")
    about, system = exhibit.bundle.description, system_of(exhibit.environment)
    factory = EnvFactory(exhibit.environment, about.action_repeat)
    check_named(exhibit.environment, None)
    environment = factory.visible() if film else make_environment(factory)
    spaces = spaces_of(environment, exhibit.environment)
    fps = environment.metadata.get("render_fps", _FPS) / about.action_repeat
    options: list[dict[str, Any] | None] = [None] * episodes
    if system.trial is not None:
        options = [{"state": state} for state in system.trial.starts(episodes, seed)]
    frames: list[Any] = []

    def play(actor: Actor, index: int, *, drawn: bool = False) -> Episode:
        return run_episode(
            environment,
            actor,
            spaces,
            seed=seed + index,
            actor_seed=seed + index,
            limit=_STEP_LIMIT,
            options=options[index],
            before_step=(lambda: frames.append(environment.render())) if drawn else None,
        )

    controller, uniform = _ControllerActor(exhibit.bundle), RandomActor(spaces)
    own = [play(controller, index, drawn=film and index == 0) for index in range(episodes)]
    others = [play(uniform, index) for index in range(episodes)]
    figures = _figures(system, environment, own, exhibit.bundle)
    figures["uniform"] = _figures(system, environment, others, exhibit.bundle)
    close_environment(environment)
    sentences = [
        f"By the fitted bound it has {figures['empowerment_mean']:.3f} nats of empowerment on "
        f"average; random actions have {figures['uniform']['empowerment_mean']:.3f}.",
        *system.summary(figures),
    ]
    return Played(figures, sentences, np.stack(frames) if frames else None, fps)


def _figures(
    system: System, environment: gymnasium.Env, episodes: list[Episode], bundle: Bundle
) -> dict[str, Any]:
    """Compute the figures of episodes."""
    figures: dict[str, Any] = dict(system.metrics(episodes, environment, []))
    interval = interval_of(environment)
    if system.trial is not None and interval is not None:
        figures |= system.trial.metrics(episodes, interval)
    values, tracker = [], BoundTracker(bundle)
    for episode in episodes:
        values.append(tracker.begin(episode.observations[:1]))
        for observation, action in zip(episode.observations[1:], episode.actions, strict=True):
            values.append(tracker.advance(observation[None], action[None]))
    return figures | {"empowerment_mean": float(np.mean(values))}
