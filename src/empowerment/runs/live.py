"""What the page of a report has to know to run the system of an agent."""

from pathlib import Path

import numpy as np

from empowerment.data import close_environment, interval_of, make_environment
from empowerment.environments import WorldEnv
from empowerment.model import Latent
from empowerment.report import StoredLive, write_stored_live
from empowerment.runs.evaluation import known_world
from empowerment.runs.loading import TrainedRun
from empowerment.systems import system_of
from empowerment.worlds import AbstractWorld


def write_live(run: TrainedRun, folder: Path) -> None:
    """Write what the page needs to run the system of an agent, if it is one that can."""
    system = system_of(run.environment.id)
    if system.live is None:
        return
    environment, known = make_environment(run.environment), known_world(run)
    inner = environment.unwrapped
    if known is None:
        world = inner.world if isinstance(inner, WorldEnv) else _observed(run)
    else:
        world = known[1]
    rate = environment.metadata["render_fps"]
    scales = np.asarray(world.emission(world.states.centre).scale, float)
    interval = interval_of(environment) or run.environment.count / rate
    stored = StoredLive(
        system=system.live.name,
        parameters=system.live.parameters(environment),
        noise=system.live.noise(scales.tolist()),
        interval=float(f"{interval:.6g}"),  # It may be single.
        repeat=run.environment.count,
        units=dict(system.units),
    )
    close_environment(environment)
    write_stored_live(stored, folder)


def _observed(run: TrainedRun) -> AbstractWorld:
    """Return the learnt world of a run, in which observations are perceived."""
    world = run.agent.world.world
    return world.world if isinstance(world, Latent) else world
