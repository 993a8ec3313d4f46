"""What a learnt world is judged by while it learns."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Gaussian, divergence_from_standard
from empowerment.model.dvbf import DVBF, Step
from empowerment.types import Action, Key, Observation, Scalar, State


class Elbo(eqx.Module):
    """What came of filtering one sequence.

    Attributes:
        reconstruction: The log-density of what was observed, given the states.
        divergence: Of the states from what the model expects.
        prediction: The log-density of what was observed after the filter was switched off.
        states: The filtered states, one for each observation.
    """

    reconstruction: Scalar
    divergence: Scalar
    prediction: Scalar
    states: Float[Array, "times state"]

    @property
    def value(self) -> Scalar:
        """The evidence lower bound, in nats."""
        return self.reconstruction - self.divergence


class _Carry(eqx.Module):
    """The states with and without a look at the observations."""

    filtered: State
    blind: State


def elbo(
    model: DVBF,
    observations: Float[Array, "times observation"],
    actions: Float[Array, "steps action"],
    *,
    key: Key,
) -> Elbo:
    r"""Filter a sequence, and bound the log-density of its observations given its actions.

    $$\ln p(x_{1:T}|u_{1:T-1}) \ge E_q\Bigl[\sum_t \ln p(x_t|z_t)\Bigr]
    - \mathrm{KL}\bigl(q(z_{1:T}|x_{1:T}, u_{1:T-1}) \,\|\, p(z_{1:T}|u_{1:T-1})\bigr)$$

    Karl et al. (2018), Sec. 2.4 and App. A.3.2, with the divergence of each step from the
    innovations.

    Deviation: the divergence is printed with a plus. From a random time in the first half on, a
    second state goes on without measurements; how well it predicts the rest is `prediction`, a
    term of its own beside the bound.

    Args:
        model: The model.
        observations: Scaled, in order.
        actions: Scaled, one fewer.
        key: Consumed.

    Returns:
        The parts of the bound, of the whole sequence, in units of the scaled observations.
    """
    first_key, noise_key, switch_key = jax.random.split(key, 3)
    times = observations.shape[0]
    measured = jax.vmap(model.measure)(observations)
    first = model.recognise(observations[: model.num_first])
    start = model.start(first.sample(key=first_key))
    noise = jax.random.normal(noise_key, (times - 1, model.latent_size), start.dtype)
    switch = jax.random.randint(switch_key, (), 0, max(times // 2, 1))
    blind = jnp.arange(times) > switch

    def step(
        carry: _Carry, inputs: tuple[Action, Gaussian, State, Array]
    ) -> tuple[_Carry, tuple[_Carry, Scalar]]:
        action, measured, noise, blind = inputs
        # Both at once: two small products cost twice as much as one of twice the size.
        both = jax.vmap(model.step, in_axes=(0, None))(
            jnp.stack([carry.filtered, carry.blind]), action
        )
        expected: Step = jax.tree.map(lambda leaf: leaf[0], both)
        belief = model.fuse(expected, measured)
        filtered = belief.mean + belief.scale * noise
        after = _Carry(filtered, jnp.where(blind, both.mean[1], filtered))
        return after, (after, divergence_from_standard(expected.innovation(belief)))

    later = jax.tree.map(lambda leaf: leaf[1:], measured)
    _, (states, divergences) = jax.lax.scan(
        step, _Carry(start, start), (actions, later, noise, blind[1:])
    )
    filtered = jnp.concatenate([start[None], states.filtered])
    seen = jax.vmap(model.decode)(filtered)
    foreseen = jax.vmap(lambda state: Gaussian(model.decoder(state), model.drift))(states.blind)
    density = jax.vmap(Gaussian.log_prob)
    return Elbo(
        density(seen, observations).sum(),
        divergence_from_standard(first) + divergences.sum(),
        blind[1:].astype(start.dtype) @ density(foreseen, observations[1:]),
        filtered,
    )


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
