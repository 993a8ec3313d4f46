"""What a policy does in the real environment, beside one that acts at random."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.channel import AbstractChannel, empowerment
from empowerment.environments import ENVIRONMENTS
from empowerment.experiments.agent import Made, Progress
from empowerment.types import State
from empowerment.worlds import Bounded

UPRIGHT = 0.3
"""Radians from upright within which a pendulum stands."""

_HELD_SECONDS = 5.0
_HANGING_NOISE = 0.01
"""The scale of what the start is off by, in angle and velocity, when hanging at rest."""

_NUM_JUDGED = 256
"""States along the way at which the channel is asked for the empowerment."""

Act = Callable[[np.ndarray], np.ndarray]
"""Gives an allowed action for an observation."""


def evaluate_agent(
    made: Made,
    *,
    episodes: int = 100,
    seed: int = 0,
    progress: Progress = lambda doing, done, total: None,
) -> dict[str, Any]:
    """Run a policy by its mean action in the registered Gymnasium environment.

    Args:
        made: What a run has made.
        episodes: How many, from starts as the environment draws them; for the pendulum any
            angle, with a velocity in +-1. As many again from hanging at rest.
        seed: Of the starts and of everything random.
        progress: Called as episodes are done.

    Returns:
        The figures of the policy, those of a uniformly random one under `uniform`, and how
        they were made.
    """
    if episodes < 1:
        raise ValueError(f"Expected at least one episode; got {episodes}.")
    name = made.experiment.world
    environment = gymnasium.make(ENVIRONMENTS[name])
    environment.action_space.seed(seed)
    acting: dict[str, Act] = {
        "policy": mean_actions(made),
        "uniform": lambda observation: environment.action_space.sample(),
    }
    found: dict[str, Any] = {}
    for done, (who, act) in enumerate(acting.items()):
        paths = []
        for episode in range(episodes):
            paths.append(run_episode(environment, act, seed=seed + episode))
            progress(f"evaluating {who}", done * episodes + episode + 1, 2 * episodes)
        figures: dict[str, Any] = {"empowerment_mean": _empowerment(made, np.stack(paths), seed)}
        if name == "pendulum":
            figures |= _standing(np.stack(paths))
            if who == "policy":
                figures |= _swing_up(environment, act, episodes, seed)
        found[who] = figures
    return {
        **found["policy"],
        "uniform": found["uniform"],
        "episodes": episodes,
        "seed": seed,
        "environment": ENVIRONMENTS[name],
    }


def mean_actions(made: Made) -> Act:
    """Give the actions that a policy takes when it does not explore."""
    # The weights are constants of the compiled function: passing them costs more than it does.
    act = jax.jit(lambda state: made.world.squash(made.policy(state).mean))
    return lambda observation: np.asarray(act(observation))


def run_episode(
    environment: gymnasium.Env, act: Act, *, seed: int, start: np.ndarray | None = None
) -> Float[np.ndarray, "times observation"]:
    """Run one episode to its end and give what was observed, the start included."""
    options = None if start is None else {"state": start}
    observation, _ = environment.reset(seed=seed, options=options)
    seen, over = [observation], False
    while not over:
        observation, _, terminated, truncated, _ = environment.step(act(observation))
        seen.append(observation)
        over = terminated or truncated
    return np.stack(seen)


def hanging_starts(count: int, seed: int) -> Float[np.ndarray, "starts 2"]:
    """Draw starts of the pendulum from hanging nearly at rest."""
    angle, velocity = np.random.default_rng(seed).normal(0, _HANGING_NOISE, (2, count))
    return np.stack([angle - math.pi * np.sign(angle), velocity], axis=1)  # Within half a turn.


def _standing(paths: Float[np.ndarray, "episodes times 2"]) -> dict[str, float]:
    """Give the share of episodes that end with the pendulum held upright."""
    last = round(_HELD_SECONDS / 0.05)
    held = np.all(np.abs(paths[:, -last:, 0]) <= UPRIGHT, axis=1)
    return {"held_fraction": float(held.mean())}


def _swing_up(
    environment: gymnasium.Env, act: Act, episodes: int, seed: int
) -> dict[str, float | None]:
    """Give the time from hanging until the pendulum is upright for good."""
    times = [
        time_to_upright(run_episode(environment, act, seed=seed, start=start))
        for start in hanging_starts(episodes, seed)
    ]
    median = float(np.median(times))
    return {"time_to_upright_median_s": median if math.isfinite(median) else None}


def time_to_upright(path: Float[np.ndarray, "times 2"]) -> float:
    """Give the seconds after which a pendulum stays upright; infinite if it never does."""
    away = np.flatnonzero(np.abs(path[:, 0]) > UPRIGHT)
    if not away.size:
        return 0.0
    return math.inf if away[-1] == len(path) - 1 else 0.05 * float(away[-1] + 1)


def _empowerment(
    made: Made, paths: Float[np.ndarray, "episodes times observation"], seed: int
) -> float:
    """Give the mean bound of the channel at some of the states passed through, in nats."""
    flat = paths.reshape(-1, paths.shape[-1])
    chosen = np.random.default_rng(seed).integers(0, len(flat), _NUM_JUDGED)
    keys = jax.random.split(jax.random.key(seed), _NUM_JUDGED)
    return float(_mean_bound(made.channel, made.world, jnp.asarray(flat[chosen], float), keys))


@eqx.filter_jit
def _mean_bound(
    channel: AbstractChannel, world: Bounded, states: Float[Array, "judged state"], keys: Array
) -> Array:
    def of_state(inputs: tuple[State, Array]) -> Array:
        state, key = inputs
        return empowerment(channel, world, state, key=key).value

    return jax.lax.map(of_state, (states, keys), batch_size=8).mean()
