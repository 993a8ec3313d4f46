"""From logged data to a model, and from a model to a world."""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from empowerment.data import Trajectories, windows
from empowerment.model.dvbf import DVBF
from empowerment.model.filter import Filter
from empowerment.model.scaling import Scaling, fit_scaling, limits_scaling
from empowerment.model.training import Sequences
from empowerment.model.world import LearntWorld
from empowerment.worlds import Box

_MAX_CANDIDATES = 32768
"""States of the data that are looked at, at most."""

_NUM_PLACES = 2048
"""States that are far from each other, at most, and as many by chance, that stand for a world."""

_NUM_BEGINNINGS = 1024
"""Beginnings of episodes that stand for all: as many in each round, so that nothing that goes on
from them is compiled again."""

_SETTLING = 0.25
"""The share of a window after which the filter is taken to have settled."""

_RESOLUTION = 0.02
"""What can be told apart, as a share of the spread of a channel, if nothing is said."""

_NUM_SPREADS = 3.0
"""Standard deviations of the states, on either side, that are looked at."""


@dataclass(frozen=True)
class Prepared:
    """Data as a model takes it.

    Attributes:
        train: The windows to learn from, scaled.
        held_out: The windows to judge by, scaled.
        observations: How observations are scaled.
        actions: How actions are scaled.
        skipped: How many episodes were too short to have a window.
    """

    train: Sequences
    held_out: Sequences
    observations: Scaling
    actions: Scaling
    skipped: int


def prepare(
    train: Trajectories,
    held_out: Trajectories,
    *,
    length: int,
    seed: int,
    scalings: tuple[Scaling, Scaling] | None = None,
) -> Prepared:
    """Cut data into windows and scale it to order one.

    Args:
        train: The data to learn from.
        held_out: The data to judge by.
        length: Observations in a window.
        seed: Of the actions after an episode has ended.
        scalings: Of observations and actions; found from the data if not given.

    Returns:
        The windows.
    """
    if scalings is None:
        rows = np.concatenate([episode.observations for episode in train.episodes])
        changes = np.concatenate([np.diff(e.observations, axis=0) for e in train.episodes])
        scalings = fit_scaling(rows, changes), limits_scaling(*action_limits(train))
    (learnt, one), (judged, two) = (
        sequences(data, *scalings, length=length, seed=seed) for data in (train, held_out)
    )
    return Prepared(learnt, judged, *scalings, one + two)


def sequences(
    trajectories: Trajectories,
    observations: Scaling,
    actions: Scaling,
    *,
    length: int,
    seed: int,
) -> tuple[Sequences, int]:
    """Cut data into windows, and scale it.

    Args:
        trajectories: The data.
        observations: How observations are scaled.
        actions: How actions are scaled.
        length: Observations in a window.
        seed: Of the actions after an episode has ended.

    Returns:
        The windows, and how many episodes were too short to have one.
    """
    cut = windows(trajectories, length, seed=seed)
    rows = observations.scaled(jnp.asarray(cut.observations, float))
    done = actions.scaled(jnp.asarray(cut.actions, float))
    return Sequences(rows, done, jnp.asarray(cut.starts), length), cut.skipped


def action_limits(
    trajectories: Trajectories,
) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
    """Give what actions may be: where there is no limit, what they were."""
    rows = np.concatenate([episode.actions for episode in trajectories.episodes])
    low, high = trajectories.spaces.action_low, trajectories.spaces.action_high
    low = np.where(np.isfinite(low), low, rows.min(0))
    high = np.where(np.isfinite(high), high, rows.max(0))
    if not np.all(low < high):
        raise ValueError(
            "Expected every action to take more than one value, or to have limits; got "
            f"{low.tolist()} to {high.tolist()} for {', '.join(trajectories.spaces.action_names)}."
        )
    return low, high


def learnt_world(
    model: DVBF,
    trajectories: Trajectories,
    *,
    length: int,
    resolution: float | None = None,
    seed: int,
) -> LearntWorld:
    """Make a world of a model: its states are those that the filter finds in the data.

    Args:
        model: A trained model.
        trajectories: The data.
        length: Observations in a window.
        resolution: The scale of the noise on what is perceived, added to what was learnt, in
            the units of the data; a share of the spread of each channel if not given.
        seed: Of which states are taken.

    Returns:
        The world, in the units of the data.
    """
    cut = windows(trajectories, length, seed=seed)
    generator = np.random.default_rng(seed)
    settled = min(max(round(_SETTLING * length), model.num_initial - 1), length - 1)
    count = min(len(cut.starts), -(-_MAX_CANDIDATES // (length - settled)))
    rows = generator.choice(cut.starts, count, replace=False)[:, None] + np.arange(length)
    found = _filter(
        model,
        jnp.asarray(cut.observations[rows], float),
        jnp.asarray(cut.actions[rows[:, :-1]], float),
    )
    found = found[:, settled:].reshape(-1, model.latent_size)
    middle, spread = found.mean(0), found.std(0) + 1e-3
    visited_states = _cover((found - middle[None]) / spread[None], found, generator)
    firsts = np.stack([_first(e.observations, model.num_initial) for e in trajectories.episodes])
    drawn = np.resize(generator.permutation(len(firsts)), _NUM_BEGINNINGS)
    initial_states = _begin(model, jnp.asarray(firsts[drawn], float))
    observed = np.concatenate([episode.observations for episode in trajectories.episodes])
    resolved = jnp.asarray(_RESOLUTION * observed.std(0), float)
    if resolution is not None:
        resolved = jnp.full_like(resolved, resolution)
    return LearntWorld(
        model,
        visited_states,
        initial_states,
        resolved,
        Box(
            middle - _NUM_SPREADS * spread,
            middle + _NUM_SPREADS * spread,
            tuple(f"z{axis + 1}" for axis in range(model.latent_size)),
        ),
        Box(*action_limits(trajectories), trajectories.spaces.action_names),
    )


def _cover(
    scaled: Float[Array, "candidates state"],
    candidates: Float[Array, "candidates state"],
    generator: np.random.Generator,
) -> Float[Array, "places state"]:
    """Choose states that cover all that was seen, half of them evenly, half as often as seen.

    Where a random policy hardly ever goes, as to the top of a swing, the channel has to be right
    too: it is where a better policy will go.
    """
    count = min(_NUM_PLACES, len(candidates))
    far = _farthest(scaled, count, jnp.asarray(generator.integers(len(candidates))))
    often = generator.integers(0, len(candidates), count)
    return jnp.concatenate([candidates[far], candidates[often]])


@partial(jax.jit, static_argnums=1)
def _farthest(
    points: Float[Array, "points state"], count: int, first: Int[Array, ""]
) -> Int[Array, " chosen"]:
    """Choose points one after the other, each the farthest from those before."""

    def choose(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        distance, newest = carry
        offset = points - points[newest][None]
        distance = jnp.minimum(distance, jnp.sum(offset**2, axis=1))
        return (distance, jnp.argmax(distance)), newest

    start = jnp.full(len(points), jnp.inf), first
    return jax.lax.scan(choose, start, None, length=count)[1]


def _first(
    observations: Float[np.ndarray, "times observation"], count: int
) -> Float[np.ndarray, "first observation"]:
    """Give the first observations; the last of them again where there are too few."""
    return observations[np.minimum(np.arange(count), len(observations) - 1)]


@eqx.filter_jit
def _filter(
    model: DVBF,
    observations: Float[Array, "windows times observation"],
    actions: Float[Array, "windows steps action"],
) -> Float[Array, "windows times state"]:
    return jax.vmap(Filter(model).run)(observations, actions)


@eqx.filter_jit
def _begin(
    model: DVBF, firsts: Float[Array, "episodes first observation"]
) -> Float[Array, "episodes state"]:
    return jax.vmap(Filter(model).init)(firsts)
