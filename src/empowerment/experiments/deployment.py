"""A trained policy and its filter, as the files that a controller is loaded from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.controller.bundle import Bundle, Description
from empowerment.controller.bundle_io import write_bundle
from empowerment.data.environments import make_environment
from empowerment.environments import ENVIRONMENTS
from empowerment.experiments.config import Experiment
from empowerment.model import DVBF
from empowerment.networks import Network
from empowerment.policy import Policy
from empowerment.worlds import Bounded

_ACTIVATIONS = {jnp.tanh: "tanh", jax.nn.relu: "relu", jax.nn.sigmoid: "sigmoid"}


def deploy(
    experiment: Experiment, *, policy: Policy, world: Bounded, model: DVBF | None, folder: Path
) -> None:
    """Write the controller of a run, with what it is for.

    Args:
        experiment: The settings of the run: world or environment, and for how many steps of it
            an action is held.
        policy: The policy.
        world: The world it was trained in.
        model: Whose filter finds the state; none where the observation is the state.
        folder: The run folder.
    """
    if experiment.is_learnt:
        # Of several agents the controller is of one: it cannot act in their environment alone.
        environment = experiment.env if experiment.agents == 1 else None
        interval = None if experiment.env is None else _interval_of(experiment.env)
    else:
        environment = ENVIRONMENTS[experiment.world]
        interval = getattr(world.world, "interval", None)
    write_controller(
        policy=policy,
        world=world,
        model=model,
        folder=folder,
        about={},
        environment=environment,
        interval=None if interval is None else round(float(interval) * experiment.action_repeat, 9),
        action_repeat=experiment.action_repeat,
    )


def _interval_of(environment: str) -> float | None:
    """Give the seconds of a step of an environment, if it says so."""
    made = make_environment(environment)
    interval, rate = getattr(made.unwrapped, "dt", None), made.metadata.get("render_fps")
    made.close()
    if isinstance(interval, int | float) and interval > 0:
        return float(interval)
    return 1 / rate if isinstance(rate, int | float) and rate > 0 else None


def write_controller(
    *,
    policy: Policy,
    world: Bounded,
    model: DVBF | None,
    folder: Path,
    about: Mapping[str, Any],
    observation_names: tuple[str, ...] | None = None,
    environment: str | None = None,
    interval: float | None = None,
    action_repeat: int = 1,
) -> None:
    """Write `controller.safetensors` and `controller.json`: all that runs without JAX.

    Args:
        policy: The policy; its mean action is what the controller does.
        world: The world it was trained in; its limits of the actions are the controller's.
        model: Whose filter finds the state; none where the observation is the state.
        folder: Where to write, a run folder.
        about: Anything else worth keeping, for people; it must be fit for JSON.
        observation_names: A word for each number that is observed; by default those of the
            world, or numbered where there is a model.
        environment: The Gymnasium id of what the policy is for.
        interval: Seconds from one action to the next.
        action_repeat: Steps of the environment for which an action is held.
    """
    bundle = to_bundle(
        policy=policy,
        world=world,
        model=model,
        about=about,
        observation_names=observation_names,
        environment=environment,
        interval=interval,
        action_repeat=action_repeat,
    )
    write_bundle(bundle, folder)


def to_bundle(
    *,
    policy: Policy,
    world: Bounded,
    model: DVBF | None,
    about: Mapping[str, Any] | None = None,
    observation_names: tuple[str, ...] | None = None,
    environment: str | None = None,
    interval: float | None = None,
    action_repeat: int = 1,
) -> Bundle:
    """Take from policy, world and model what a controller needs; see `write_controller`."""
    actions, states = world.world.actions, policy.states
    networks, arrays = (
        {},
        {
            "states.centre": states.centre,
            "states.half_width": 0.5 * (states.high - states.low),
        },
    )
    _add(networks, arrays, "policy", policy.network)
    if observation_names is None:
        observation_names = states.names
        if model is not None:
            size = model.observations.offset.size
            observation_names = tuple(f"observation {axis}" for axis in range(size))
    if model is not None:
        size = model.latent_size
        _add(networks, arrays, "recognition", model.recognition, np.arange(size))
        _add(networks, arrays, "start", model.start)
        # Of the transition, the scale of the prior is not needed.
        rows = np.r_[0:size, 2 * size : 3 * size]
        _add(networks, arrays, "transition", model.transition_network, rows)
        _add(networks, arrays, "measurement", model.measurement_network)
        for name in ("observations", "actions"):
            scaling = getattr(model, name)
            arrays |= {f"{name}.offset": scaling.offset, f"{name}.scale": scaling.scale}
    description = Description(
        observation_names=tuple(observation_names),
        action_names=tuple(actions.names),
        low=tuple(actions.low.tolist()),
        high=tuple(actions.high.tolist()),
        networks=networks,
        angles=tuple(states.names.index(name) for name in states.angles),
        latent_size=0 if model is None else model.latent_size,
        num_initial=1 if model is None else model.num_initial,
        residual=True if model is None else not model.as_published,
        scales="square" if model is not None and model.as_published else "softplus",
        environment=environment,
        interval=interval,
        action_repeat=action_repeat,
        about=dict(about or {}),
    )
    return Bundle(description, {name: np.asarray(a, np.float32) for name, a in arrays.items()})


def _add(
    networks: dict[str, tuple[str, ...]],
    arrays: dict[str, Any],
    name: str,
    network: Network,
    rows: np.ndarray | None = None,
) -> None:
    """Add a network, or of its outputs only some, layer by layer."""
    last = len(network.layers) - 1
    networks[name] = (_ACTIVATIONS[network.activation],) * last + ("identity",)
    for index, layer in enumerate(network.layers):
        weight, bias = np.asarray(layer.weight), np.asarray(layer.bias)
        if index == last and rows is not None:
            weight, bias = weight[rows], bias[rows]
        arrays |= {f"{name}.{index}.weight": weight, f"{name}.{index}.bias": bias}
