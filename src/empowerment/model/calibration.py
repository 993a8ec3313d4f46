"""Calibration of the process noise of a model."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from empowerment.model.dvbf import DVBF
from empowerment.model.elbo import predict
from empowerment.model.training import Sequences
from empowerment.types import Action, Key, Observation, Scalar, State

_SETTLING = 5
"""Warm-up steps of the filter before predictions start, at most a quarter of a window."""

_NUM_WINDOWS = 256
_NUM_DRAWS = 59
"""Sampled futures: an observation has one of 60 ranks among them, of which 54 are 90 %."""

_COVERAGE = 0.9
"""Nominal coverage of prediction intervals."""

_NUM_BISECTIONS = 8
_LARGEST_FACTOR = 8.0
"""The common factor is searched between its reciprocal and this, by bisection in log scale."""

_LEAST_ROWS = 20
"""Predicted rows that must have been recorded, to calibrate."""

_TOO_NARROW = (
    f"The calibration of the process noise stopped at its largest factor, {_LARGEST_FACTOR:g}: "
    "90 % intervals of the model still cover less than 90 % of the validation data. Its "
    "predictions are worse than it knows: train longer, or collect more data."
)
_TOO_WIDE = (
    f"The calibration of the process noise stopped at its smallest factor, 1/{_LARGEST_FACTOR:g}: "
    "90 % intervals of the model still cover 90 % of the validation data. Its observation noise "
    "alone explains its errors: train longer, or do without process noise in training a policy "
    "(--no-process-noise)."
)


@dataclass(frozen=True)
class Calibration:
    """Facts about the calibration of a model.

    Attributes:
        factor: Ratio of the process noise to the root mean square of the filter's innovations;
            none if it was not calibrated.
        num_rows: Number of recorded rows of the validation data that could be judged.
        warning: What is wrong with it, in sentences for the user; empty if nothing is.
    """

    factor: float | None
    num_rows: int
    warning: str


def calibrate(model: DVBF, sequences: Sequences, *, key: Key) -> tuple[DVBF, Calibration]:
    """Estimate the ratio of process noise to the learnt prior scale.

    Along each axis it is proportional to the root mean square of the filter's innovations. A
    common factor is then chosen such that 90 % intervals of open-loop predictions cover 90 % of
    observations: prediction errors grow faster than accumulated noise, so intervals that are
    right for the first steps become too narrow. Of each window, what is judged is the later half
    of the recorded rows that follow after the filter has settled.

    Args:
        model: A trained model.
        sequences: Scaled windows of validation data, about as long as the prediction horizon;
            rows of weight zero are not recorded ones.
        key: Consumed.

    Returns:
        The model with calibrated `noise_factor`, as it was if there are too few recorded rows, and
        facts about the calibration.
    """
    choice_key, draw_key = jax.random.split(key)
    first = _first(model, sequences.length)
    places = np.arange(sequences.length)[None, :]
    rows = np.asarray(sequences.starts)[:, None] + places
    recorded = np.ones(rows.shape, bool)
    if sequences.weights is not None:
        recorded = (np.asarray(sequences.weights) > 0)[rows]
    last = recorded.sum(axis=1, keepdims=True) - 1
    judged = recorded & (places > first + (last - first) // 2) & (last > first)
    num_rows = len(np.unique(rows[judged]))
    if num_rows < _LEAST_ROWS:
        warning = (
            f"The process noise was not calibrated: the validation data have {num_rows} recorded "
            f"rows to predict, and {_LEAST_ROWS} are needed. Collect more or longer episodes."
        )
        return model, Calibration(None, num_rows, warning)
    usable = np.flatnonzero(judged.any(axis=1))
    chosen = usable[jax.random.randint(choice_key, (_NUM_WINDOWS,), 0, len(usable))]
    masks = jnp.asarray(recorded[chosen, 1:]), jnp.asarray(judged[chosen, first + 1 :])
    shape, low, high = _search(model, *sequences.take(jnp.asarray(chosen)), *masks, draw_key)
    factor, warning = jnp.sqrt(low * high), ""
    if float(high) == _LARGEST_FACTOR:
        warning = _TOO_NARROW
    elif float(low) == 1 / _LARGEST_FACTOR:
        warning = _TOO_WIDE
    calibrated = eqx.tree_at(lambda model: model.noise_factor, model, factor * shape)
    return calibrated, Calibration(float(factor), num_rows, warning)


def within_interval(
    draws: Float[Array, "draws *shape"], observed: Float[Array, "*shape"]
) -> Bool[Array, "*shape"]:
    """Return whether observations are within the central 90 % interval of draws, by their rank."""
    count = draws.shape[0]
    below = jnp.sum(draws < observed[None], axis=0, dtype=float)
    return jnp.abs(below - count / 2) <= _COVERAGE / 2 * (count + 1)


def _first(model: DVBF, length: int) -> int:
    """Return the row of a window after which predictions start."""
    settled = min(_SETTLING, length // 4)
    return min(max(settled, model.num_initial), length - 2)


@eqx.filter_jit
def _search(
    model: DVBF,
    observations: Float[Array, "windows times observation"],
    actions: Float[Array, "windows steps action"],
    recorded: Bool[Array, "windows steps"],
    judged: Bool[Array, "windows predictions"],
    key: Key,
) -> tuple[State, Scalar, Scalar]:
    """Search the factor on a fixed number of windows: compilation is independent of the data.

    Returns:
        The root mean square of innovations along each axis, and bounds on the factor.
    """
    first = _first(model, observations.shape[1])
    states, innovations = jax.vmap(lambda x, u: _filter(model, x, u))(observations, actions)
    shape = jnp.sqrt(jnp.mean(innovations**2, axis=(0, 1), where=recorded[:, :, None]))
    keys = jax.random.split(key, _NUM_WINDOWS)

    def coverage(factor: Scalar) -> Scalar:
        scaled = eqx.tree_at(lambda model: model.noise_factor, model, factor * shape)

        def of_window(state: State, actions: Array, observed: Array, key: Key) -> Array:
            draws = jax.vmap(lambda key: predict(scaled, state, actions, key=key))(
                jax.random.split(key, _NUM_DRAWS)
            )
            return jnp.mean(within_interval(draws, observed), axis=1, dtype=float)

        covered = jax.vmap(of_window)(
            states[:, first], actions[:, first:], observations[:, first + 1 :], keys
        )
        return jnp.mean(covered, where=judged)

    def bisect(_: Array, bracket: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = bracket
        middle = jnp.sqrt(low * high)
        enough = coverage(middle) >= _COVERAGE
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    bracket = jnp.array(1 / _LARGEST_FACTOR), jnp.array(_LARGEST_FACTOR)
    low, high = jax.lax.fori_loop(0, _NUM_BISECTIONS, bisect, bracket)
    return shape, low, high


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
