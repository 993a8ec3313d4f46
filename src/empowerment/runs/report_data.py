"""What the report of a run is drawn from: computed once, written to its folder."""

from pathlib import Path

import jax
import numpy as np

from empowerment.agent import ACTORS, play
from empowerment.data import close_environment, spaces_of
from empowerment.files import write_columns
from empowerment.landscapes import compute_landscape, describe, grid_states
from empowerment.landscapes.variational import variational_landscape
from empowerment.report import VIDEO, Landscape, write_landscape, write_report, write_video
from empowerment.runs.evaluation import evaluate_run, known_world, learnt_landscape
from empowerment.runs.folder import read_manifest
from empowerment.runs.loading import TrainedRun, load_run
from empowerment.settings import flat
from empowerment.systems import Study, evaluated, system_of
from empowerment.types import Progress
from empowerment.worlds import has_closed_form_density

_SHOWN_SECONDS = 6.0
"""Duration of the video."""

_FPS = 30


def report_run(
    folder: Path,
    *,
    grid: str,
    episodes: int = 100,
    env: str | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Path:
    """Compute what is missing in a run folder, then draw the report from files alone.

    Args:
        folder: The run folder.
        grid: Number of states along each axis of the landscapes.
        episodes: Number of episodes of the evaluation, if there is none yet.
        env: Id of its environment, to allow the import of the module in `module:ID`.
        progress: Receives progress.

    Returns:
        The page.
    """
    run = load_run(folder, env=env)
    sections = ()
    if run.experiment.has_environment:
        system = system_of(run.environment.id)
        kept = [evaluated(folder, actor) for actor in ACTORS]
        if not all(path.exists() for path in (folder / "evaluation.json", *kept)):
            evaluate_run(folder, episodes=episodes, env=env, progress=progress)
        if not (folder / "episode.csv").exists():
            _write_episode(run, folder)
        system.before_report(Study(run.agent, run.environment, run.seed, folder, progress))
        _write_landscapes(run, folder, grid, progress)
        sections = system.sections
    manifest, experiment = read_manifest(folder), run.experiment
    return write_report(
        folder,
        title=f"{experiment.env or experiment.data or experiment.world}: "
        f"{experiment.agent.num_steps}-step empowerment",
        settings=flat(manifest["settings"]),
        versions=manifest["versions"],
        command=manifest.get("command"),
        sections=sections,
    )


def _write_landscapes(run: TrainedRun, folder: Path, grid: str, progress: Progress) -> None:
    """Compute the empowerment over the states of a world that can be drawn, and the truth."""
    known = known_world(run)
    if known is None or known[1].states.size > 2:
        return
    name, world = known
    states, steps = grid_states(world, grid), run.experiment.agent.num_steps
    path = folder / "landscape.csv"
    if not path.exists():
        about = describe(name, world, estimator="variational", steps=steps, seed=run.seed)
        if run.agent.model is None:
            channel = run.agent.channel
            found = variational_landscape(
                channel, run.agent.world, states, seed=run.seed, progress=progress
            )
            bounds = found.value, found.lower, found.upper
            about |= found.about
        else:
            progress("evaluating the learnt world", 0, 1)
            about["estimator"] = "learnt"
            bounds = learnt_landscape(run, states), None, None
        write_landscape(Landscape(world.states.names, states, *bounds, about), path)
    if not has_closed_form_density(world, steps=steps, key=jax.random.key(0)):
        return
    for count in dict.fromkeys((1, steps)):
        path = folder / f"exact-{count}-step.csv"
        if not path.exists():
            exact = compute_landscape(
                name, world, states, estimator="exact", steps=count, progress=progress
            )
            write_landscape(exact, path)


def _write_episode(run: TrainedRun, folder: Path) -> None:
    """Run one episode by the mean action; write it as a table and, if it can be seen, a video."""
    factory, trial = run.environment, system_of(run.environment.id).trial
    environment = factory.visible()
    spaces = spaces_of(environment, factory.id)
    fps = environment.metadata.get("render_fps", _FPS) / factory.count
    frames = []

    def before_step() -> None:
        if len(frames) < _SHOWN_SECONDS * fps:  # A whole episode may not fit into memory.
            frames.append(environment.render())

    path = play(
        environment,
        run.agent.actor(),
        seed=run.seed,
        state=None if trial is None else trial.starts(1, run.seed)[0],
        before_step=before_step,
    )
    close_environment(environment)
    if frames[0] is not None:
        write_video(np.stack(frames), folder / VIDEO, fps=fps)
    observations = path.observations[:-1]
    names = spaces.observation_names if run.agent.model else run.agent.world.states.names
    columns = dict(zip(names, observations.T, strict=True))
    truth, known = system_of(run.experiment.env).truth, known_world(run)
    if run.agent.model is not None and truth is not None and known is not None:
        located = truth.locate(observations)
        columns |= dict(zip(known[1].states.names, located.T, strict=True))
    columns |= dict(zip(spaces.action_names, path.actions.T, strict=True))
    write_columns(columns, folder / "episode.csv")
