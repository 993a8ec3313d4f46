"""The evidence lower bound of a model, and its open-loop predictions."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Gaussian, divergence_from_standard
from empowerment.model.dvbf import DVBF, Prediction
from empowerment.types import Action, Key, Observation, Scalar, State

_WIDE = 3.0
"""The scale of outliers."""


class Elbo(eqx.Module):
    """The terms of the evidence lower bound, and an auxiliary prediction term.

    Attributes:
        reconstruction: The log-density of observations given filtered states.
        divergence: The divergence of filtered states from the prior.
        prediction: The log-density of observations under open-loop predictions.
    """

    reconstruction: Float[Array, " sequences"]
    divergence: Float[Array, " sequences"]
    prediction: Float[Array, " sequences"]

    @property
    def value(self) -> Float[Array, " sequences"]:
        """The evidence lower bound, in nats."""
        return self.reconstruction - self.divergence


class _Carry(eqx.Module):
    """Filtered states, and states that are predicted open-loop after a switch."""

    filtered: Float[Array, "sequences state"]
    predicted: Float[Array, "sequences state"]


def elbo(
    model: DVBF,
    observations: Float[Array, "sequences times observation"],
    actions: Float[Array, "sequences steps action"],
    *,
    weights: Float[Array, "sequences times"] | None = None,
    key: Key,
) -> Elbo:
    r"""Filter sequences and bound the log-density of their observations given their actions.

    $$\ln p(x_{1:T}|u_{1:T-1}) \ge E_q\Bigl[\sum_t \ln p(x_t|z_t)\Bigr]
    - \mathrm{KL}\bigl(q(z_{1:T}|x_{1:T}, u_{1:T-1}) \,\|\, p(z_{1:T}|u_{1:T-1})\bigr)$$

    Karl et al. (2018), Sec. 2.4 and App. A.3.2, with the divergence of each step from the
    innovations.

    Deviation: the divergence is printed with a plus. From a random time in the first half on, a
    second state is predicted open-loop; the log-density of the rest under it is `prediction`, an
    auxiliary term beside the bound. Each observed value is an outlier with probability
    `model.outlier_probability`.

    Args:
        model: The model.
        observations: Scaled observations.
        actions: Scaled actions, one fewer than observations.
        weights: Weight of each row in the sums; by default all count.
        key: Consumed.

    Returns:
        The terms, summed over each sequence, in units of the scaled observations.
    """
    first_key, noise_key, switch_key = jax.random.split(key, 3)
    count, times, _ = observations.shape
    observed, acted = observations.swapaxes(0, 1), actions.swapaxes(0, 1)
    measured = _map_rows(model.measure, observed)
    first = jax.vmap(model.recognise)(observations[:, : model.num_initial])
    initial = jax.vmap(Gaussian.sample)(first, key=jax.random.split(first_key, count))
    start = jax.vmap(model.start)(initial)
    noise = jax.random.normal(noise_key, (times - 1, *start.shape), start.dtype)
    switch = jax.random.randint(switch_key, (count,), 0, max(times // 2, 1))
    open_loop = jnp.arange(times)[:, None] > switch[None]

    def update(expected: Prediction, measured: Gaussian, noise: State) -> tuple[State, Scalar]:
        belief = model.fuse(expected, measured)
        divergence = divergence_from_standard(expected.innovation(belief))
        return belief.mean + belief.scale * noise, divergence

    def step(
        carry: _Carry, inputs: tuple[Array, Gaussian, Array, Array]
    ) -> tuple[_Carry, tuple[_Carry, Array]]:
        action, measured, noise, open_loop = inputs
        # One batch for both: two matrix products cost twice as much as one of twice the size.
        both = jax.vmap(model.step)(
            jnp.concatenate([carry.filtered, carry.predicted]), jnp.concatenate([action, action])
        )
        expected: Prediction = jax.tree.map(lambda leaf: leaf[:count], both)
        filtered, divergence = jax.vmap(update)(expected, measured, noise)
        after = _Carry(filtered, jnp.where(open_loop[:, None], both.mean[count:], filtered))
        return after, (after, divergence)

    later = jax.tree.map(lambda leaf: leaf[1:], measured)
    _, (states, divergences) = jax.lax.scan(
        step, _Carry(start, start), (acted, later, noise, open_loop[1:])
    )
    decoded = _map_rows(model.decoder, jnp.concatenate([start[None], states.filtered]))
    predicted = _map_rows(model.decoder, states.predicted)
    log_predicted = _log_prob(predicted, model.drift, observed[1:], model.outlier_probability)
    log_decoded = _log_prob(decoded, model.noise, observed, model.outlier_probability)
    if weights is not None:
        of_rows = weights.swapaxes(0, 1)
        log_decoded, log_predicted = of_rows * log_decoded, of_rows[1:] * log_predicted
        divergences = of_rows[1:] * divergences
    return Elbo(
        log_decoded.sum(0),
        jax.vmap(divergence_from_standard)(first) + divergences.sum(0),
        jnp.sum(log_predicted * open_loop[1:].astype(start.dtype), axis=0),
    )


def _map_rows(function: Callable, rows: Float[Array, "times sequences size"]):
    """Apply a function to each row, as one flat batch: a weight gradient is one product."""
    shape = rows.shape[:2]
    outputs = jax.vmap(function)(rows.reshape(-1, rows.shape[2]))
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, -1), outputs)


def _log_prob(
    means: Float[Array, "times sequences size"],
    scale: Observation,
    values: Float[Array, "times sequences size"],
    outlier_probability: float,
) -> Float[Array, "times sequences"]:
    """Compute the log-density of each row under a contaminated Gaussian."""
    squares = (values - means) ** 2
    scales = scale[None, None]
    density = jnp.log((1 - outlier_probability) / scales) - squares / (2 * scales**2)
    if outlier_probability:
        outlier = math.log(outlier_probability / _WIDE) - squares / (2 * _WIDE**2)
        density = jnp.logaddexp(density, outlier)
    return jnp.sum(density - 0.5 * math.log(2 * math.pi), axis=2)


def predict(
    model: DVBF, state: State, actions: Float[Array, "steps action"], *, key: Key | None = None
) -> Float[Array, "steps observation"]:
    """Predict the observation after each action, open-loop.

    Args:
        model: The model.
        state: The start state.
        actions: Scaled actions.
        key: Samples process and observation noise; None predicts means. Consumed.

    Returns:
        Scaled observations.
    """
    shape = actions.shape[0], model.latent_size
    if key is None:
        process, emission = jnp.zeros(shape), jnp.zeros((shape[0], model.noise.size))
    else:
        process_key, emission_key = jax.random.split(key)
        process = jax.random.normal(process_key, shape)
        emission = jax.random.normal(emission_key, (shape[0], model.noise.size))

    def step(state: State, inputs: tuple[Action, State]) -> tuple[State, Observation]:
        action, noise = inputs
        expected = model.transition(state, action)
        state = expected.mean + expected.scale * noise
        return state, model.decoder(state)

    means = jax.lax.scan(step, state, (actions, process))[1]
    return means + model.noise[None] * emission
