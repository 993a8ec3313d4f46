"""What the report of a run is drawn from: computed once, written to its folder."""

from collections.abc import Sequence
from pathlib import Path

import jax

from empowerment.agent import ACTORS
from empowerment.controller import read_bundle
from empowerment.landscapes import compute_landscape, describe, grid_states
from empowerment.landscapes.variational import variational_landscape
from empowerment.report import (
    REPLAY,
    Landscape,
    read_evaluation,
    write_landscape,
    write_report,
)
from empowerment.runs.episodes import (
    EPISODE,
    record,
    record_policy,
    write_episode,
    write_replay,
)
from empowerment.runs.evaluation import evaluate_run, known_world, learnt_landscape, summarise
from empowerment.runs.experiment import from_json
from empowerment.runs.folder import Manifest, read_manifest
from empowerment.runs.live import write_live
from empowerment.runs.loading import TrainedRun, environment_of, load_run
from empowerment.settings import flat
from empowerment.systems import Study, evaluated, system_of
from empowerment.types import Progress
from empowerment.worlds import has_closed_form_density

UNFINISHED = (
    "This run is not finished: the page has what there is so far. Resume it with empower train "
    "--resume."
)
"""What the report of a run says that was interrupted, or is still training."""

_LOG_ALONE = (
    "This run learnt from a log alone, and there was no environment to act in: how the policy does "
    "in reality is not known."
)


def report_run(
    folder: Path,
    *,
    grid: str,
    episodes: int = 100,
    env: str | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Path:
    """Compute what is missing in a run folder, then draw the report from files alone.

    Of a run that is not finished, or is damaged, what there is is drawn.

    Args:
        folder: The run folder.
        grid: Number of states along each axis of the landscapes.
        episodes: Number of episodes of the evaluation, if there is none yet.
        env: Id of its environment, to allow the import of the module in `module:ID`.
        progress: Receives progress.

    Returns:
        The page.
    """
    manifest = read_manifest(folder)
    if not manifest["finished"] and manifest["settings"].get("kind") != "model":
        return _draw(folder, manifest, headline=[UNFINISHED])
    try:
        run = load_run(folder, env=env)
    except ValueError as error:
        if env is not None or manifest["settings"].get("kind") == "model":
            raise
        path = _draw(folder, manifest, headline=[f"This run is damaged. {error}"])
        raise ValueError(f"{error} What could be drawn is in {path}.") from error
    if not run.experiment.has_environment:
        return _draw(folder, manifest, headline=[_LOG_ALONE], caveats=_caveats(manifest, run))
    system = system_of(run.environment.id)
    kept = [evaluated(folder, actor) for actor in ACTORS]
    if not all(path.exists() for path in (folder / "evaluation.json", *kept)):
        evaluate_run(folder, episodes=episodes, env=env, progress=progress)
    _write_episodes(run, folder, is_live=system.live is not None)
    system.before_report(Study(run.agent, run.environment, run.seed, folder, progress))
    _write_landscapes(run, folder, grid, progress)
    write_live(run, folder)
    try:
        figures = read_evaluation(folder)
        headline = dict.fromkeys([*system.summary(figures), *summarise(figures)])
        caveats = _caveats(manifest, run, figures["episodes"])
    except (ValueError, KeyError, TypeError):  # Then the page says what is wrong with them.
        headline, caveats = {}, []
    return _draw(folder, manifest, headline=list(headline), caveats=caveats)


def _draw(
    folder: Path, manifest: Manifest, *, headline: Sequence[str], caveats: Sequence[str] = ()
) -> Path:
    """Draw the report from files alone."""
    experiment, _ = from_json(manifest["settings"], folder / "manifest.json")
    steps = experiment.agent.steps
    name = experiment.env or experiment.data or experiment.world
    environment = environment_of(experiment).id if experiment.has_environment else None
    system = system_of(environment)
    return write_report(
        folder,
        title=f"{name}: {f'{steps}-step ' if isinstance(steps, int) else ''}empowerment",
        settings=flat(manifest["settings"]),
        versions=manifest["versions"],
        command=manifest.get("command"),
        sections=system.sections,
        live=system.live,
        headline=headline,
        caveats=caveats,
    )


def _caveats(manifest: Manifest, run: TrainedRun, episodes: int = 0) -> list[str]:
    """State what the figures of a run depend on."""
    noise = manifest.get("noise")
    over = f" over {episodes} episodes" if episodes else ""
    sentences = [
        f"These are figures of one run{over}, seed {run.seed}; other seeds have others.",
        "Empowerment depends on the length of plans "
        f"({run.experiment.agent.num_steps} step{'s' * (run.experiment.agent.num_steps > 1)}) and "
        "on the noise of what is perceived: compare only numbers that were made with the same.",
    ]
    if noise is not None:
        scales = ", ".join(f"{scale:g}" for scale in noise["perception"])
        sentences.append(f"Here that noise has the scales {scales}, as assumed, not measured.")
    return sentences


def _write_episodes(run: TrainedRun, folder: Path, *, is_live: bool) -> None:
    """Record what is missing; a system that runs in the page itself needs no replay."""
    needs_replay = not is_live and not (folder / REPLAY).exists()
    if (folder / EPISODE).exists() and not needs_replay:
        return
    recorded = record_policy(run)
    write_episode(run, recorded, folder)
    if needs_replay:
        uniform = record(run.environment, None, seed=run.seed, unfilmed=recorded.unfilmed)
        count = run.agent.num_agents
        write_replay(recorded, uniform, read_bundle(folder), folder, num_agents=count)


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
