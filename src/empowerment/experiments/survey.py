"""Compute what the report of a run needs, once: landscapes, figures, an episode."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np

from empowerment.data import spaces_of
from empowerment.environments import EnvFactory
from empowerment.experiments.agent import Made, Progress, load_agent
from empowerment.experiments.biped import survey_biped, write_survival
from empowerment.experiments.charts import CHARTS, learnt_landscape, truth_of
from empowerment.experiments.evaluation import WHO, environment_of, evaluate_agent, run_episode
from empowerment.experiments.landscape import compute_landscape, grid_states, noise
from empowerment.experiments.measures import BIPED, SET_BY_STATE, hanging_starts
from empowerment.experiments.rooms import ROOMS, survey_room
from empowerment.experiments.variational import variational_landscape
from empowerment.files import write_atomic
from empowerment.report import FILM, Landscape, write_columns, write_film, write_landscape
from empowerment.worlds import has_closed_form_density

_SHOWN_SECONDS = 6.0
"""How much of an episode the film shows."""

_FPS = 30


def evaluate_run(
    folder: Path,
    *,
    episodes: int = 100,
    seed: int = 0,
    progress: Progress = lambda doing, done, total: None,
) -> dict[str, Any]:
    """Evaluate the agent of a finished run, and keep the figures in its folder.

    Args:
        folder: The folder of a finished run.
        episodes: How many.
        seed: Of the starts.
        progress: Called as it goes on.

    Returns:
        The figures, as they are in `evaluation.json`.
    """
    made = load_agent(folder)
    found = evaluate_agent(
        made,
        episodes=episodes,
        seed=seed,
        progress=progress,
        keep=lambda who, acted: acted.save(folder / f"evaluated-{who}.npz"),
    )
    if made.experiment.env in ROOMS:
        found["inward_fraction"] = survey_room(made, folder)
    if made.experiment.env == BIPED:
        write_survival(made, folder)
    write_atomic(folder / "evaluation.json", (json.dumps(found, indent=2) + "\n").encode())
    return found


def survey(
    folder: Path,
    *,
    grid: str,
    episodes: int = 100,
    progress: Progress = lambda doing, done, total: None,
) -> None:
    """Compute what is not in a run folder yet: evaluation, episode, landscapes.

    Args:
        folder: The folder of a finished run.
        grid: States along each axis of the landscapes, such as 21x21.
        episodes: Of the evaluation.
        progress: Called as it goes on.
    """
    made = load_agent(folder)
    kept = [folder / f"evaluated-{who}.npz" for who in WHO]
    if not all(path.exists() for path in (folder / "evaluation.json", *kept)):
        evaluate_run(folder, episodes=episodes, progress=progress)
    if not (folder / "episode.csv").exists():
        _film(made, folder)
    if made.experiment.env == BIPED:
        survey_biped(made, folder, progress)
    _landscapes(made, folder, grid, progress)


def _landscapes(made: Made, folder: Path, grid: str, progress: Progress) -> None:
    """Compute the empowerment over the states of a world that can be drawn, and the truth."""
    if made.model is None:
        name, world = made.experiment.world, made.world.world
    elif made.experiment.env in CHARTS:
        name, world = truth_of(made)
    else:
        return
    if world.states.size > 2:
        return
    states, steps = grid_states(world, grid), made.experiment.steps
    path = folder / "landscape.csv"
    if not path.exists():
        about = {"world": name, "estimator": "variational", "steps": steps, "noise": noise(world)}
        if made.model is None:
            found = variational_landscape(
                made.channel, made.world, states, seed=made.seed, progress=progress
            )
        else:
            progress("looking at the learnt world", 0, 1)
            about["estimator"] = "learnt"
            found = learnt_landscape(made, states), None, None
        write_landscape(Landscape(world.states.names, states, *found, about), path)
    if not has_closed_form_density(world, steps=steps, key=jax.random.key(0)):
        return
    for count in dict.fromkeys((1, steps)):
        path = folder / f"exact-{count}-step.csv"
        if not path.exists():
            exact = compute_landscape(
                name, world, states, estimator="exact", steps=count, progress=progress
            )
            write_landscape(exact, path)


def _film(made: Made, folder: Path) -> None:
    """Run one episode by the mean action; keep it as a table and, if it can be seen, a film."""
    maker = environment_of(made.experiment)
    environment = make_filmed(maker)
    spaces = spaces_of(environment, maker.id)
    fps = environment.metadata.get("render_fps", _FPS) / maker.count
    frames = []

    def look() -> None:
        if len(frames) < _SHOWN_SECONDS * fps:  # A whole episode may not fit into memory.
            frames.append(environment.render())

    pilot = made.pilot()
    path = run_episode(
        environment,
        pilot,
        seed=made.seed,
        start=hanging_starts(1, made.seed)[0] if maker.id in SET_BY_STATE else None,
        look=look,
    )
    environment.close()
    if frames[0] is not None:
        write_film(np.stack(frames), folder / FILM, fps=fps)
    names = spaces.observation_names if made.model else made.world.states.names
    columns = dict(zip(names, path.observations[:-1].T, strict=True))
    if made.model is not None and made.experiment.env in CHARTS:
        located = CHARTS[made.experiment.env].locate(path.observations[:-1])
        columns |= dict(zip(truth_of(made)[1].states.names, located.T, strict=True))
    columns |= dict(zip(spaces.action_names, path.actions.T, strict=True))
    write_columns(columns, folder / "episode.csv")


def make_filmed(maker: EnvFactory) -> gymnasium.Env:
    """Make an environment that can be seen, or one that cannot if there is no other."""
    try:
        return maker(render_mode="rgb_array")
    except (TypeError, ValueError, gymnasium.error.Error):
        return maker()
