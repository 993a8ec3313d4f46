"""The pendulum: how long it stands, and how soon it swings up."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from empowerment.data import Episode, interval_of
from empowerment.environments import ENVIRONMENTS, PENDULUM_DIRECTION
from empowerment.policy import Policy
from empowerment.report import Live, Parameters
from empowerment.systems.base import System, Trial, Truth, Watched
from empowerment.systems.live import live_world, scripts, world_parameters
from empowerment.types import Key, Scalar, State
from empowerment.worlds import Bounded, Pendulum

UPRIGHT = 0.3
"""Radians from upright within which a pendulum stands."""

_HELD_SECONDS = 5.0
"""Duration at the end of an episode throughout which a pendulum must stand to be held."""

_HANGING_NOISE = 0.01
"""Scale of the perturbation of start states at rest, in angle and velocity."""

_NUM_STEPS, _NUM_HELD, _NUM_STARTS = 400, 100, 32
"""Length of an imagined episode, of its end, and number of episodes, while training."""


def held(
    episodes: Sequence[Episode], environment: gymnasium.Env, watched: Watched
) -> dict[str, float]:
    """Compute the fraction of episodes that end with the pendulum held upright."""
    del watched
    last = round(_HELD_SECONDS / _interval(environment))
    angles = [angle_of(each.observations[-last:]) for each in episodes]
    return {"held_fraction": float(np.mean([np.all(np.abs(a) <= UPRIGHT) for a in angles]))}


def _interval(environment: gymnasium.Env) -> float:
    interval = interval_of(environment)
    assert interval is not None, "every pendulum states its interval"
    return interval


def hanging_starts(count: int, seed: int) -> Float[np.ndarray, "starts 2"]:
    """Sample start states that hang nearly at rest."""
    angle, velocity = np.random.default_rng(seed).normal(0, _HANGING_NOISE, (2, count))
    return np.stack([angle - math.pi * np.sign(angle), velocity], axis=1)  # Within half a turn.


def angle_of(observations: Float[np.ndarray, "times observation"]) -> Float[np.ndarray, " times"]:
    """Return the angle, which is observed as it is or by its cosine and sine."""
    if observations.shape[1] == 2:
        return observations[:, 0]
    return np.arctan2(observations[:, 1], observations[:, 0])


def time_to_upright(observations: Float[np.ndarray, "times observation"], interval: float) -> float:
    """Return the seconds after which a pendulum stays upright; infinite if it never does."""
    away = np.flatnonzero(np.abs(angle_of(observations)) > UPRIGHT)
    if not away.size:
        return 0.0
    is_last = away[-1] == len(observations) - 1
    return math.inf if is_last else interval * float(away[-1] + 1)


def swing_up(episodes: Sequence[Episode], interval: float) -> dict[str, float | None]:
    """Compute the median time from hanging until upright for good."""
    median = float(np.median([time_to_upright(each.observations, interval) for each in episodes]))
    return {"time_to_upright_median_s": median if math.isfinite(median) else None}


def summary(figures: dict) -> list[str]:
    """Describe how well the pendulum is held, and how soon it swings up where that was tried."""
    sentence = (
        f"It holds the pendulum upright in {figures['held_fraction']:.0%} of episodes (random: "
        f"{figures['uniform']['held_fraction']:.0%})"
    )
    if "time_to_upright_median_s" not in figures:
        return [f"{sentence}."]
    time = figures["time_to_upright_median_s"]
    result = "does not swing up" if time is None else f"is upright after {time:.2f} s"
    return [f"{sentence}; from hanging at rest it {result} (median)."]


def describe(policy: Policy, world: Bounded) -> str:
    """Describe how often a policy holds the known pendulum upright."""
    if not isinstance(world.world, Pendulum):
        return ""
    return f", {float(imagined_held(policy, world, is_upright, key=jax.random.key(0))):.0%} held"


def is_upright(state: State) -> Bool[Array, ""]:
    """Return whether the pendulum stands."""
    return jnp.cos(state[0]) >= math.cos(UPRIGHT)


@eqx.filter_jit
def imagined_held(
    policy: Policy, world: Bounded, holds: Callable[[State], Bool[Array, ""]], *, key: Key
) -> Scalar:
    """Estimate the fraction of imagined, noiseless episodes that end held by the mean action."""

    def step(state: State, _: None) -> tuple[State, Bool[Array, ""]]:
        successor = world.transition(state, policy(state).mean).mean
        return successor, holds(successor)

    def is_held(key: Key) -> Bool[Array, ""]:
        start = world.initial().sample(key=key)
        return jnp.all(jax.lax.scan(step, start, None, length=_NUM_STEPS)[1][-_NUM_HELD:])

    keys = jax.random.split(key, _NUM_STARTS)
    return jnp.mean(jax.vmap(is_held)(keys).astype(float))


def _direction(states: Float[Array, "states axes"]) -> Float[Array, "states observation"]:
    angle, velocity = states.T
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), velocity], axis=1)


def _angle_and_velocity(
    observations: Float[np.ndarray, "times observation"],
) -> Float[np.ndarray, "times state"]:
    return np.stack([angle_of(observations), observations[:, 2]], axis=1)


def _by_direction(environment: gymnasium.Env) -> Parameters:
    return world_parameters(environment) | {"by_direction": True}


def _gymnasium(environment: gymnasium.Env) -> Parameters:
    """Read the parameters of Gymnasium's pendulum, which limits its speed before it moves."""
    inner: Any = environment.unwrapped
    return {
        "gravity": inner.g,
        "mass": inner.m,
        "length": inner.l,
        "interval": inner.dt,
        "friction": 0.0,
        "max_torque": inner.max_torque,
        "max_speed": inner.max_speed,
        "limit_first": True,
        "by_direction": True,
    }


def _noise_of_direction(scales: list[float]) -> list[float]:
    """Return the noise of cosine, sine and velocity, where a direction is about an angle long."""
    return [scales[0], *scales]


def _live(parameters: Callable[[gymnasium.Env], Parameters]) -> Live:
    return Live("pendulum", scripts("pendulum.js"), parameters, _noise_of_direction)


_BY_DIRECTION = System(
    environments=("Pendulum-v1",),
    metrics=held,
    truth=Truth("pendulum", _direction, _angle_and_velocity),
    units={"angle": "rad", "velocity": "rad/s"},
    describe=describe,
    summary=summary,
    live=_live(_gymnasium),
)
_SETTABLE = replace(
    _BY_DIRECTION,
    environments=(PENDULUM_DIRECTION,),
    trial=Trial(hanging_starts, swing_up),
    live=_live(_by_direction),
)
SYSTEMS = (
    _BY_DIRECTION,
    _SETTABLE,
    replace(
        _SETTABLE,
        environments=(ENVIRONMENTS["pendulum"],),
        truth=Truth("pendulum", lambda states: states, lambda observations: observations),
        live=live_world("pendulum", "pendulum.js"),
    ),
)
"""Pendulums observed by direction or by angle; ours can be set to hang."""
