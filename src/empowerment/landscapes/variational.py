"""Landscapes by the variational estimator: a channel trained once, then evaluated anywhere."""

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
    train_channel,
)
from empowerment.channel.training import MANY_CODES
from empowerment.optimise import Callback, Snapshot
from empowerment.storage import load_tree, read_about, save_tree
from empowerment.types import Key, Progress, Scalar, State
from empowerment.worlds import Bounded, has_closed_form_density

BUDGETS = {"smoke": 200, "full": 8000}
"""Maximal updates of the channel, half as many of a large codebook."""

DISCRETE_BUDGETS = {"smoke": 200, "full": 1500}
"""Updates of the tables of a discrete world."""

_BATCH = 16
"""States that are estimated at once."""


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
    """Train a channel, or load it if it was stored before."""
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

    def show(at: Snapshot) -> None:
        count, seen = at.history[-1]
        progress(f"training, {seen['bound']:.3f} nats", count, at.total)

    is_large = isinstance(channel, Codebook) and len(channel.intents) >= MANY_CODES
    num_updates = BUDGETS[budget] // (2 if is_large else 1)
    trained = train_channel(
        channel, world, num_updates=num_updates, callback=Callback(show), key=train_key
    )
    if path is not None:
        save_tree(trained.model, path, about=about or {})
    return trained.model


def variational_landscape(
    channel: AbstractChannel,
    world: Bounded,
    states: Float[np.ndarray, "states axes"],
    *,
    seed: int,
    progress: Progress,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Estimate the empowerment of many states with a trained channel.

    Returns:
        The bound at each state; lower and upper bounds by the certificate, if the density of the
        perceived successor is known in closed form.
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
