"""Building the world of a trained model: its states are those that the data led through."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from empowerment.data import Trajectories, action_bounds, windows
from empowerment.model.dvbf import DVBF
from empowerment.model.filter import Filter, filter_windows
from empowerment.model.world import LearntWorld
from empowerment.worlds import Box

_MAX_CANDIDATES = 32768
"""Maximal number of filtered states that are considered."""

_NUM_STATES = 2048
"""Maximal number of states chosen to cover the data evenly, and of as many chosen at random."""

_NUM_INITIAL = 1024
"""Number of initial states: the same in every round, so that nothing is compiled again."""

_SETTLING = 0.25
"""Fraction of a window after which the filter is taken to have converged; where an episode ends
within it, after half of what was recorded at most."""

_ENDED = 0.2
"""Largest share of states past the end of an episode: where episodes are short, they are most."""

_RESOLUTION = 0.02
"""Default resolution, as a fraction of the standard deviation of an observed column."""

_NUM_SCALES = 3.0
"""Half-width of the region of states, in standard deviations."""


def action_limits(
    trajectories: Trajectories,
) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
    """Return the limits of actions: of the space, or of the data where the space has none."""
    low, high = action_bounds(trajectories)
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
    """Build the world of a model: its states are those that the filter estimates in the data.

    Args:
        model: A trained model.
        trajectories: The data.
        length: Observations in a window.
        resolution: Scale of the noise on what is perceived, in addition to the learnt noise, in
            the units of the data; by default a fraction of the scale of each column.
        seed: Random seed of the choice of states.

    Returns:
        The world, in the units of the data.
    """
    cut = windows(trajectories, length, seed=seed)
    generator = np.random.default_rng(seed)
    settled = min(max(round(_SETTLING * length), model.num_initial - 1), length - 1)
    count = min(len(cut.starts), -(-_MAX_CANDIDATES // (length - settled)))
    rows = generator.choice(cut.starts, count, replace=False)[:, None] + np.arange(length)
    filtered = filter_windows(
        model,
        jnp.asarray(cut.observations[rows], float),
        jnp.asarray(cut.actions[rows[:, :-1]], float),
    )
    candidates = filtered[_kept(cut.recorded[rows], settled, generator)]
    mean, scale = candidates.mean(0), candidates.std(0) + 1e-3
    visited = _cover((candidates - mean[None]) / scale[None], candidates, generator)
    firsts = np.stack([_first(e.observations, model.num_initial) for e in trajectories.episodes])
    drawn = np.resize(generator.permutation(len(firsts)), _NUM_INITIAL)
    initial_states = _begin(model, jnp.asarray(firsts[drawn], float))
    observed = np.concatenate([episode.observations for episode in trajectories.episodes])
    resolved = jnp.asarray(_RESOLUTION * observed.std(0), float)
    if resolution is not None:
        resolved = jnp.full_like(resolved, resolution)
    return LearntWorld(
        model,
        visited,
        initial_states,
        resolved,
        Box(
            mean - _NUM_SCALES * scale,
            mean + _NUM_SCALES * scale,
            tuple(f"z{axis + 1}" for axis in range(model.latent_size)),
        ),
        Box(
            *action_limits(trajectories),
            trajectories.spaces.encoded_names,
            choices=trajectories.spaces.action_choices,
        ),
    )


def _kept(
    recorded: Bool[np.ndarray, "windows times"], settled: int, generator: np.random.Generator
) -> Bool[np.ndarray, "windows times"]:
    """Choose the rows of windows whose states are considered: few of those past an end."""
    first = np.minimum(settled, recorded.sum(axis=1, keepdims=True) // 2)
    alive = recorded & (np.arange(recorded.shape[1])[None] >= first)
    ended = np.flatnonzero(~recorded)
    most = int(_ENDED / (1 - _ENDED) * alive.sum())
    if len(ended) > most:
        ended = generator.choice(ended, most, replace=False)
    kept = alive.ravel()
    kept[ended] = True
    return kept.reshape(recorded.shape)


def _cover(
    scaled: Float[Array, "candidates state"],
    candidates: Float[Array, "candidates state"],
    generator: np.random.Generator,
) -> Float[Array, "chosen state"]:
    """Choose states: half by farthest-point sampling, half at random.

    The channel must also be right where a random policy hardly ever goes, as at the top of a
    swing: a better policy will go there.
    """
    count = min(_NUM_STATES, len(candidates))
    far = _farthest(scaled, count, jnp.asarray(generator.integers(len(candidates))))
    often = generator.integers(0, len(candidates), count)
    return jnp.concatenate([candidates[far], candidates[often]])


@partial(jax.jit, static_argnums=1)
def _farthest(
    points: Float[Array, "points state"], count: int, first: Int[Array, ""]
) -> Int[Array, " chosen"]:
    """Farthest-point sampling: choose each point farthest from those chosen before."""

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
    """Return the first observations; the last one is repeated where there are too few."""
    return observations[np.minimum(np.arange(count), len(observations) - 1)]


@eqx.filter_jit
def _begin(
    model: DVBF, firsts: Float[Array, "episodes first observation"]
) -> Float[Array, "episodes state"]:
    return jax.vmap(Filter(model).init)(firsts)
