"""Landscapes by the variational estimator: a channel trained once, then evaluated anywhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from empowerment.channel import (
    CONFIDENCE,
    AbstractChannel,
    Codebook,
    ceiling,
    certify_at,
    channel_like,
    is_at_ceiling,
    lattice_shape,
    make_channel,
    precise_empowerment_at,
    refusal,
    train_channel,
)
from empowerment.channel.training import MANY_CODES
from empowerment.optimise import Callback, Snapshot
from empowerment.storage import load_arrays, load_tree, read_about, save_tree
from empowerment.types import Progress
from empowerment.worlds import Bounded

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
    if path is not None and path.exists():
        saved = read_about(path)
        differs = [name for name, value in (about or {}).items() if saved.get(name) != value]
        if differs:
            name = differs[0]
            raise ValueError(
                f"Expected the channel in {path} to have been trained for {name} "
                f"{(about or {})[name]}; got {saved.get(name)}. Name another file to train anew."
            )
        # Nothing is made anew: to choose a family takes a short training of each.
        return load_tree(channel_like(world, load_arrays(path), family=family, steps=steps), path)
    make_key, train_key = jax.random.split(jax.random.key(seed))
    channel = make_channel(world, family=family, steps=steps, key=make_key)

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


@dataclass(frozen=True)
class Bounds:
    """Bounds on the empowerment of many states.

    Attributes:
        value: The bound of the channel at each state, in nats.
        lower: The lower end of the certificate, where there is one.
        upper: The upper end of the certificate, where there is one.
        about: The largest standard error of a value, the ceiling of the channel and the fraction
            of states at it, and the confidence of the certificate or why there is none.
    """

    value: np.ndarray
    lower: np.ndarray | None
    upper: np.ndarray | None
    about: dict[str, Any]


def variational_landscape(
    channel: AbstractChannel,
    world: Bounded,
    states: Float[np.ndarray, "states axes"],
    *,
    seed: int,
    progress: Progress,
) -> Bounds:
    """Estimate the empowerment of many states with a trained channel."""
    size, batch = len(states), min(_BATCH, len(states))
    padded = jnp.asarray(states[np.minimum(np.arange(size + -size % batch), size - 1)], float)
    check_key, value_key, interval_key = jax.random.split(jax.random.key(seed), 3)
    value_keys, interval_keys = (
        jax.random.split(key, len(padded)) for key in (value_key, interval_key)
    )
    reason = refusal(channel, world, key=check_key)
    shape = None if reason else lattice_shape(channel, world, padded, interval_keys)
    rows = []
    for first in range(0, len(padded), batch):
        part = slice(first, first + batch)
        columns = [*precise_empowerment_at(channel, world, padded[part], value_keys[part])]
        if shape is not None:
            interval = certify_at(channel, world, padded[part], interval_keys[part], shape=shape)
            columns += [interval.lower, interval.upper]
        rows.append(np.stack([np.asarray(column, np.float64) for column in columns]))
        progress("estimating", min(first + batch, size), size)
    value, error, *interval = np.concatenate(rows, axis=1)[:, :size]
    about: dict[str, Any] = {"standard_error": float(error.max())}
    if np.isfinite(ceiling(channel)):
        at_ceiling = float(is_at_ceiling(channel, value).mean())
        about |= {"ceiling": ceiling(channel), "at_ceiling": at_ceiling}
    if reason is not None:
        return Bounds(value, None, None, about | {"uncertified": reason})
    return Bounds(value, interval[0], interval[1], about | {"confidence": CONFIDENCE})
