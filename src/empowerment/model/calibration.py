"""How noisy a learnt world is, found from what its predictions are off by."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.model.dvbf import DVBF
from empowerment.model.elbo import predict
from empowerment.model.training import Sequences
from empowerment.types import Action, Key, Observation, Scalar, State

_SETTLING = 5
"""Steps in which the filter may settle before it is switched off, at most a quarter of a window."""

_NUM_WINDOWS = 256
_NUM_DRAWS = 64
_WANTED = 0.9
"""The share of what comes that intervals of as much are to hold."""

_ROUNDS = 8
_MOST = 8.0
"""The largest factor that is looked at, and how often the range is halved."""


def calibrate(model: DVBF, sequences: Sequences, *, key: Key) -> DVBF:
    """Find out how much of the prior's scale is noise of the world.

    Along each axis it is what the mean of the filter is moved by when it sees the successor,
    relative to the prior's scale. One factor for all axes then makes intervals of 90 % hold 90 %
    of what comes, in predictions without measurements, over the later half of windows: what a
    prediction is off by grows faster than noise that adds up, so that intervals which are right
    at first become too narrow.

    Args:
        model: A trained model.
        sequences: Windows of data that it did not learn from, scaled; about as long as one wants
            to predict.
        key: Consumed.

    Returns:
        The model with `noise_factor` found.
    """
    choice_key, draw_key = jax.random.split(key)
    chosen = jax.random.randint(choice_key, (_NUM_WINDOWS,), 0, sequences.starts.size)
    return _calibrate(model, *sequences.take(chosen), draw_key)


@eqx.filter_jit
def _calibrate(
    model: DVBF,
    observations: Float[Array, "windows times observation"],
    actions: Float[Array, "windows steps action"],
    key: Key,
) -> DVBF:
    """Calibrate by some windows; compiled by itself, whatever the size of the data."""
    length = observations.shape[1]
    states, moved = jax.vmap(lambda x, u: _filter(model, x, u))(observations, actions)
    shape = jnp.sqrt(jnp.mean(moved**2, axis=(0, 1)))
    settled = min(_SETTLING, length // 4)
    first = min(max(settled, model.num_initial), length - 2)
    later = (length - 1 - first) // 2
    keys = jax.random.split(key, _NUM_WINDOWS)

    def coverage(factor: Scalar) -> Scalar:
        scaled = eqx.tree_at(lambda made: made.noise_factor, model, factor * shape)

        def of_window(state: State, actions: Array, came: Array, key: Key) -> Array:
            draws = jax.vmap(lambda key: predict(scaled, state, actions, key=key))(
                jax.random.split(key, _NUM_DRAWS)
            )
            # By rank rather than by quantiles, for which all draws would have to be sorted.
            below = jnp.mean(draws[:, later:] < came[None, later:], axis=0, dtype=float)
            return jnp.mean(jnp.abs(below - 0.5) <= _WANTED / 2, dtype=float)

        return jax.vmap(of_window)(
            states[:, first], actions[:, first:], observations[:, first + 1 :], keys
        ).mean()

    def narrow(_: Array, ends: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        enough = coverage(middle) >= _WANTED
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    ends = jnp.array(1 / _MOST), jnp.array(_MOST)
    low, high = jax.lax.fori_loop(0, _ROUNDS, narrow, ends)
    return eqx.tree_at(lambda made: made.noise_factor, model, jnp.sqrt(low * high) * shape)


def _filter(
    model: DVBF,
    observations: Float[Array, "times observation"],
    actions: Float[Array, "steps action"],
) -> tuple[Float[Array, "times state"], Float[Array, "steps state"]]:
    """Filter a window; tell how far each measurement moved the mean, in scales of the prior."""
    start = model.start(model.recognise(observations[: model.num_initial]).mean)

    def step(state: State, inputs: tuple[Action, Observation]) -> tuple[State, tuple[State, State]]:
        action, observation = inputs
        expected = model.step(state, action)
        belief = model.fuse(expected, model.measure(observation))
        return belief.mean, (belief.mean, expected.innovation(belief).mean)

    rest, moved = jax.lax.scan(step, start, (actions, observations[1:]))[1]
    return jnp.concatenate([start[None], rest]), moved
