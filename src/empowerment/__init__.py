"""Empowerment: how much a system can do about its own future, with bounds on the number.

Lower bounds are proven. Upper bounds of channels are the result of a search, with a stated
confidence of 99 %.

Names are imported when they are first used: a controller runs where JAX is not installed.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The same names as in the table below, for type checkers.
    # fmt: off
    # isort: off
    from empowerment.agent import (
        AgentSettings as AgentSettings, TrainedAgent as TrainedAgent, to_bundle as to_bundle,
        train_agent as train_agent,
    )
    from empowerment.capacity import (
        Capacity as Capacity, blahut_arimoto as blahut_arimoto,
        discrete_empowerment as discrete_empowerment, exact_empowerment as exact_empowerment,
        exact_landscape as exact_landscape, gaussian_empowerment as gaussian_empowerment,
        water_filling as water_filling,
    )
    from empowerment.channel import (
        certify as certify, empowerment as empowerment, information_bound as information_bound,
        make_channel as make_channel, train_channel as train_channel,
    )
    from empowerment.controller import Controller as Controller
    from empowerment.controller.reward import (
        EmpowermentReward as EmpowermentReward,
        VectorEmpowermentReward as VectorEmpowermentReward,
    )
    from empowerment.data import (
        Episode as Episode, Trajectories as Trajectories, collect as collect,
    )
    from empowerment.distributions import Gaussian as Gaussian, Uniform as Uniform
    from empowerment.environments import WorldEnv as WorldEnv
    from empowerment.errors import (
        DivergedError as DivergedError, EmpowermentError as EmpowermentError,
        NotConvergedError as NotConvergedError,
    )
    from empowerment.landscapes import compute_landscape as compute_landscape
    from empowerment.model import (
        DVBF as DVBF, Filter as Filter, LearntWorld as LearntWorld,
        ModelSettings as ModelSettings,
    )
    from empowerment.policy import Policy as Policy
    from empowerment.report import Landscape as Landscape
    from empowerment.runs import (
        PRESETS as PRESETS, Experiment as Experiment, evaluate_run as evaluate_run,
        fit_model as fit_model, load_agent as load_agent,
        train_run as train_run,
    )
    from empowerment.worlds import (
        WORLDS as WORLDS, AbstractWorld as AbstractWorld, Ball as Ball, Bounded as Bounded,
        Box as Box, Grid as Grid, LinearGaussian as LinearGaussian, Pendulum as Pendulum,
    )
    # fmt: on
    # isort: on

_MODULES = {
    "agent": "AgentSettings TrainedAgent to_bundle train_agent",
    "capacity": "Capacity blahut_arimoto discrete_empowerment exact_empowerment exact_landscape "
    "gaussian_empowerment water_filling",
    "channel": "certify empowerment information_bound make_channel train_channel",
    "controller": "Controller",
    "controller.reward": "EmpowermentReward VectorEmpowermentReward",
    "data": "Episode Trajectories collect",
    "distributions": "Gaussian Uniform",
    "environments": "WorldEnv",
    "errors": "DivergedError EmpowermentError NotConvergedError",
    "landscapes": "compute_landscape",
    "model": "DVBF Filter LearntWorld ModelSettings",
    "policy": "Policy",
    "report": "Landscape",
    "runs": "PRESETS Experiment evaluate_run fit_model load_agent train_run",
    "worlds": "WORLDS AbstractWorld Ball Bounded Box Grid LinearGaussian Pendulum",
}
"""The public names of each part."""

_PUBLIC = {name: part for part, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name, or a part of the package, when it is first used."""
    if name in _PUBLIC:
        part = importlib.import_module(f"{__name__}.{_PUBLIC[name]}")
        found = globals()[name] = getattr(part, name)
        return found
    own = f"{__name__}.{name}"
    if name.startswith("__") or importlib.util.find_spec(own) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(own)


def __dir__() -> list[str]:
    """List the public names."""
    return [*globals(), *__all__]
