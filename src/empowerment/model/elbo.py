"""What a learnt world is judged by while it learns."""

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
"""The scale of values that are far off, where the model allows for them."""


class Elbo(eqx.Module):
    """What came of filtering sequences.

    Attributes:
        reconstruction: The log-density of what was observed, given the states.
        divergence: Of the states from what the model expects.
        prediction: The log-density of what was observed after the filter was switched off.
    """

    reconstruction: Float[Array, " sequences"]
    divergence: Float[Array, " sequences"]
    prediction: Float[Array, " sequences"]

    @property
    def value(self) -> Float[Array, " sequences"]:
        """The evidence lower bound, in nats."""
        return self.reconstruction - self.divergence


class _Carry(eqx.Module):
    """The states with and without a look at the observations."""

    filtered: Float[Array, "sequences state"]
    blind: Float[Array, "sequences state"]


def elbo(
    model: DVBF,
    observations: Float[Array, "sequences times observation"],
    actions: Float[Array, "sequences steps action"],
    *,
    key: Key,
) -> Elbo:
    r"""Filter sequences, and bound the log-density of their observations given their actions.

    $$\ln p(x_{1:T}|u_{1:T-1}) \ge E_q\Bigl[\sum_t \ln p(x_t|z_t)\Bigr]
    - \mathrm{KL}\bigl(q(z_{1:T}|x_{1:T}, u_{1:T-1}) \,\|\, p(z_{1:T}|u_{1:T-1})\bigr)$$

    Karl et al. (2018), Sec. 2.4 and App. A.3.2, with the divergence of each step from the
    innovations.

    Deviation: the divergence is printed with a plus. From a random time in the first half on, a
    second state goes on without measurements; how well it predicts the rest is `prediction`, a
    term of its own beside the bound. With
    `model.outlier_probability`, each observed value is an outlier with that probability.

    Args:
        model: The model.
        observations: Scaled, in order.
        actions: Scaled, one fewer.
        key: Consumed.

    Returns:
        The parts of the bound, of each whole sequence, in units of the scaled observations.
    """
    first_key, noise_key, switch_key = jax.random.split(key, 3)
    count, times, _ = observations.shape
    observed, done = observations.swapaxes(0, 1), actions.swapaxes(0, 1)
    measured = _table(model.measure, observed)
    first = jax.vmap(model.recognise)(observations[:, : model.num_initial])
    beginning = jax.vmap(Gaussian.sample)(first, key=jax.random.split(first_key, count))
    start = jax.vmap(model.start)(beginning)
    noise = jax.random.normal(noise_key, (times - 1, *start.shape), start.dtype)
    switch = jax.random.randint(switch_key, (count,), 0, max(times // 2, 1))
    blind = jnp.arange(times)[:, None] > switch[None]

    def look(expected: Prediction, measured: Gaussian, noise: State) -> tuple[State, Scalar]:
        belief = model.fuse(expected, measured)
        divergence = divergence_from_standard(expected.innovation(belief))
        return belief.mean + belief.scale * noise, divergence

    def step(
        carry: _Carry, inputs: tuple[Array, Gaussian, Array, Array]
    ) -> tuple[_Carry, tuple[_Carry, Array]]:
        action, measured, noise, blind = inputs
        # Both at once: two small products cost twice as much as one of twice the size.
        both = jax.vmap(model.step)(
            jnp.concatenate([carry.filtered, carry.blind]), jnp.concatenate([action, action])
        )
        expected: Prediction = jax.tree.map(lambda leaf: leaf[:count], both)
        filtered, divergence = jax.vmap(look)(expected, measured, noise)
        after = _Carry(filtered, jnp.where(blind[:, None], both.mean[count:], filtered))
        return after, (after, divergence)

    later = jax.tree.map(lambda leaf: leaf[1:], measured)
    _, (states, divergences) = jax.lax.scan(
        step, _Carry(start, start), (done, later, noise, blind[1:])
    )
    seen = _table(model.decoder, jnp.concatenate([start[None], states.filtered]))
    foreseen = _table(model.decoder, states.blind)
    foretold = _log_prob(foreseen, model.drift, observed[1:], model.outlier_probability)
    return Elbo(
        _log_prob(seen, model.noise, observed, model.outlier_probability).sum(0),
        jax.vmap(divergence_from_standard)(first) + divergences.sum(0),
        jnp.sum(foretold * blind[1:].astype(start.dtype), axis=0),
    )


def _table(function: Callable, rows: Float[Array, "times sequences size"]):
    """Apply a function to each row of a table.

    As one long list: the gradient of a weight is then one product, and not one for each time.
    """
    shape = rows.shape[:2]
    found = jax.vmap(function)(rows.reshape(-1, rows.shape[2]))
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, -1), found)


def _log_prob(
    means: Float[Array, "times sequences size"],
    scale: Observation,
    values: Float[Array, "times sequences size"],
    outlier_probability: float,
) -> Float[Array, "times sequences"]:
    """Evaluate the log-density of each row, in which some values may be far off."""
    off = (values - means) ** 2
    scales = scale[None, None]
    density = jnp.log((1 - outlier_probability) / scales) - off / (2 * scales**2)
    if outlier_probability:
        far = math.log(outlier_probability / _WIDE) - off / (2 * _WIDE**2)
        density = jnp.logaddexp(density, far)
    return jnp.sum(density - 0.5 * math.log(2 * math.pi), axis=2)


def predict(
    model: DVBF, state: State, actions: Float[Array, "steps action"], *, key: Key | None = None
) -> Float[Array, "steps observation"]:
    """Foresee what is observed after each of some actions, with nothing measured on the way.

    Args:
        model: The model.
        state: Where it begins.
        actions: Scaled.
        key: Of the noise on the way and in what is seen; without one, nothing is random.

    Returns:
        Scaled observations.
    """
    shape = actions.shape[0], model.latent_size
    if key is None:
        noise, sight = jnp.zeros(shape), jnp.zeros((shape[0], model.noise.size))
    else:
        noise_key, sight_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, shape)
        sight = jax.random.normal(sight_key, (shape[0], model.noise.size))

    def step(state: State, inputs: tuple[Action, State]) -> tuple[State, Observation]:
        action, noise = inputs
        expected = model.transition(state, action)
        state = expected.mean + expected.scale * noise
        return state, model.decoder(state)

    seen = jax.lax.scan(step, state, (actions, noise))[1]
    return seen + model.noise[None] * sight
