"""Calibration of the process noise of a model."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.model.dvbf import DVBF
from empowerment.model.elbo import predict
from empowerment.model.training import Sequences
from empowerment.types import Action, Key, Observation, Scalar, State

_SETTLING = 5
"""Warm-up steps of the filter before predictions start, at most a quarter of a window."""

_NUM_WINDOWS = 256
_NUM_DRAWS = 64
_COVERAGE = 0.9
"""Nominal coverage of prediction intervals."""

_NUM_BISECTIONS = 8
_LARGEST_FACTOR = 8.0
"""The common factor is searched between its reciprocal and this, by bisection in log scale."""


def calibrate(model: DVBF, sequences: Sequences, *, key: Key) -> DVBF:
    """Estimate the ratio of process noise to the learnt prior scale.

    Along each axis it is proportional to the root mean square of the filter's innovations. A
    common factor is then chosen such that 90 % intervals of open-loop predictions cover 90 % of
    observations in the later half of windows: prediction errors grow faster than accumulated
    noise, so intervals that are right for the first steps become too narrow.

    Args:
        model: A trained model.
        sequences: Scaled windows of held-out data, about as long as the prediction horizon.
        key: Consumed.

    Returns:
        The model with calibrated `noise_factor`.
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
    """Calibrate on a fixed number of windows, so that compilation is independent of the data."""
    length = observations.shape[1]
    states, innovations = jax.vmap(lambda x, u: _filter(model, x, u))(observations, actions)
    shape = jnp.sqrt(jnp.mean(innovations**2, axis=(0, 1)))
    settled = min(_SETTLING, length // 4)
    first = min(max(settled, model.num_initial), length - 2)
    later = (length - 1 - first) // 2
    keys = jax.random.split(key, _NUM_WINDOWS)

    def coverage(factor: Scalar) -> Scalar:
        scaled = eqx.tree_at(lambda model: model.noise_factor, model, factor * shape)

        def of_window(state: State, actions: Array, observed: Array, key: Key) -> Array:
            draws = jax.vmap(lambda key: predict(scaled, state, actions, key=key))(
                jax.random.split(key, _NUM_DRAWS)
            )
            # By rank rather than by quantiles, which would need sorting.
            rank = jnp.mean(draws[:, later:] < observed[None, later:], axis=0, dtype=float)
            return jnp.mean(jnp.abs(rank - 0.5) <= _COVERAGE / 2, dtype=float)

        return jax.vmap(of_window)(
            states[:, first], actions[:, first:], observations[:, first + 1 :], keys
        ).mean()

    def bisect(_: Array, bracket: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = bracket
        middle = jnp.sqrt(low * high)
        enough = coverage(middle) >= _COVERAGE
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    bracket = jnp.array(1 / _LARGEST_FACTOR), jnp.array(_LARGEST_FACTOR)
    low, high = jax.lax.fori_loop(0, _NUM_BISECTIONS, bisect, bracket)
    return eqx.tree_at(lambda model: model.noise_factor, model, jnp.sqrt(low * high) * shape)


def _filter(
    model: DVBF,
    observations: Float[Array, "times observation"],
    actions: Float[Array, "steps action"],
) -> tuple[Float[Array, "times state"], Float[Array, "steps state"]]:
    """Filter a window; return its states and the mean innovation of each step."""
    start = model.start(model.recognise(observations[: model.num_initial]).mean)

    def step(state: State, inputs: tuple[Action, Observation]) -> tuple[State, tuple[State, State]]:
        action, observation = inputs
        expected = model.step(state, action)
        belief = model.fuse(expected, model.measure(observation))
        return belief.mean, (belief.mean, expected.innovation(belief).mean)

    rest, innovations = jax.lax.scan(step, start, (actions, observations[1:]))[1]
    return jnp.concatenate([start[None], rest]), innovations
