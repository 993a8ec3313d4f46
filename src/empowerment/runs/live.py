"""What the page of a report runs of an agent: its system, and the fit to its bound."""

from pathlib import Path

import numpy as np

from empowerment.controller.network_arrays import add_network
from empowerment.data import close_environment, interval_of, make_environment
from empowerment.environments import WorldEnv
from empowerment.policy import Surrogate
from empowerment.report import StoredLive, StoredSurrogate, to_stored, write_stored_live
from empowerment.runs.evaluation import known_world
from empowerment.runs.loading import TrainedRun
from empowerment.systems import system_of

_SPREAD = 2.0
"""Standard deviations to both sides of the mean bound that the colours of a slice span."""


def write_live(run: TrainedRun, folder: Path) -> None:
    """Write what the page needs to run the system of an agent, if it is one that can."""
    system = system_of(run.environment.id)
    if system.live is None:
        return
    environment, known = make_environment(run.environment), known_world(run)
    inner = environment.unwrapped
    world = known[1] if known else inner.world if isinstance(inner, WorldEnv) else None
    assert world is not None, "the equations of systems in the page are known"
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
        surrogate=None if run.agent.surrogate is None else stored_surrogate(run.agent.surrogate),
    )
    close_environment(environment)
    write_stored_live(stored, folder)


def stored_surrogate(surrogate: Surrogate) -> StoredSurrogate:
    """Return a fit to the bound as the page reads it."""
    networks: dict[str, tuple[str, ...]] = {}
    arrays: dict[str, np.ndarray] = {}
    add_network(networks, arrays, "surrogate", surrogate.network)
    states, mean, scale = surrogate.states, float(surrogate.mean), float(surrogate.scale)
    return StoredSurrogate(
        names=list(states.names),
        networks=list(networks["surrogate"]),
        arrays={name: to_stored(array) for name, array in arrays.items()},
        low=states.low.tolist(),
        high=states.high.tolist(),
        angles=[states.names.index(name) for name in states.angles],
        mean=mean,
        scale=scale,
        limits=(mean - _SPREAD * scale, mean + _SPREAD * scale),
    )
