"""Train a channel for a world, and estimate a landscape with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from empowerment.channel import (
    AbstractChannel,
    Codebook,
    Interval,
    certify,
    empowerment,
    make_channel,
    train,
)
from empowerment.storage import load_tree, read_about, save_tree
from empowerment.types import Key, Scalar, State
from empowerment.worlds import Bounded, has_closed_form_density

BUDGETS = {"smoke": 200, "full": 8000}
"""Updates of the channel, half as many of a large codebook; training ends sooner where the
bound has settled."""

DISCRETE_BUDGETS = {"smoke": 200, "full": 1500}
"""Updates of the tables of a discrete world."""

_BATCH = 16
"""States that are estimated at once."""

_MANY_CODES = 200

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def trained_channel(
    world: Bounded,
    *,
    family: str,
    steps: int,
    budget: str,
    seed: int,
    progress: Progress,
    path: Path | None = None,
    about: dict[str, Any] | None = None,
) -> AbstractChannel:
    """Train a channel, or load it if it was saved before.

    Args:
        world: The world, with actions before the squash.
        family: What kind of source and planning; `auto` is the tightest that can be.
        steps: The number of actions in a plan.
        budget: `smoke` or `full`.
        seed: Of everything random.
        progress: Called as training goes on.
        path: Where the channel is kept: loaded if it is there, else saved.
        about: What the channel is for; it must agree with what was saved.

    Returns:
        The trained channel.
    """
    if budget not in BUDGETS:
        raise ValueError(f"Expected the budget to be one of {', '.join(BUDGETS)}; got {budget!r}.")
    make_key, train_key = jax.random.split(jax.random.key(seed))
    channel = make_channel(world, family=family, steps=steps, key=make_key)
    if path is not None and path.exists():
        saved = read_about(path)
        differs = [name for name, value in (about or {}).items() if saved.get(name) != value]
        if differs:
            name = differs[0]
            raise ValueError(
                f"Expected the channel in {path} to have been trained for {name} "
                f"{(about or {})[name]}; got {saved.get(name)}. Name another file to train anew."
            )
        return load_tree(channel, path)
    trained = train(
        channel,
        world,
        num_updates=BUDGETS[budget] // (2 if _has_many_codes(channel) else 1),
        **training_settings(channel),
        progress=lambda at: progress(
            f"training, {at.history[-1][1]:.3f} nats", at.history[-1][0], at.total
        ),
        key=train_key,
    )
    if path is not None:
        save_tree(trained.channel, path, about=about or {})
    return trained.channel


def training_settings(channel: AbstractChannel) -> dict[str, Any]:
    """Give the batch size and the learning rate that suit the family of a channel."""
    if not isinstance(channel, Codebook):
        return {"batch_size": 256, "learning_rate": 2e-3}
    return {"batch_size": 16 if _has_many_codes(channel) else 32, "learning_rate": 3e-3}


def _has_many_codes(channel: AbstractChannel) -> bool:
    return isinstance(channel, Codebook) and len(channel.intents) >= _MANY_CODES


def variational_landscape(
    channel: AbstractChannel,
    world: Bounded,
    states: Float[np.ndarray, "states axes"],
    *,
    seed: int,
    progress: Progress,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Estimate the empowerment of many states with a trained channel.

    Args:
        channel: The channel.
        world: The world, with actions before the squash.
        states: The states.
        seed: Of the draws.
        progress: Called as states are done.

    Returns:
        The bound at each state; what empowerment is at least and at most, if the density of
        what is perceived is known, else nothing.
    """
    key = jax.random.key(seed)
    known = has_closed_form_density(world, steps=channel.steps, key=key)

    @eqx.filter_jit
    def of_batch(
        channel: AbstractChannel, world: Bounded, states: Float[Array, "batch state"], keys: Array
    ) -> tuple[Float[Array, " batch"], Interval | None]:
        def of_state(state: State, key: Key) -> tuple[Scalar, Interval | None]:
            value_key, interval_key = jax.random.split(key)
            value = empowerment(channel, world, state, key=value_key).value
            if not known:
                return value, None
            return value, certify(channel, world, state, key=interval_key)

        return jax.lax.map(lambda inputs: of_state(*inputs), (states, keys))

    size, batch = len(states), min(_BATCH, len(states))
    padded = states[np.minimum(np.arange(size + -size % batch), size - 1)]
    values, lower, upper = [], [], []
    for first in range(0, len(padded), batch):
        part = jnp.asarray(padded[first : first + batch], float)
        keys = jax.random.split(jax.random.fold_in(key, first), batch)
        value, interval = of_batch(channel, world, part, keys)
        values.append(np.asarray(value, np.float64))
        if interval is not None:
            lower.append(np.asarray(interval.lower, np.float64))
            upper.append(np.asarray(interval.upper, np.float64))
        progress("estimating", min(first + batch, size), size)
    if not known:
        return np.concatenate(values)[:size], None, None
    return tuple(np.concatenate(part)[:size] for part in (values, lower, upper))  # type: ignore[return-value]
