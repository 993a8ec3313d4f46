"""Channels with finitely many plans, decoded by Bayes' rule."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jaxtyping import Array, Float

from empowerment.channel.base import AbstractChannel, Estimate, Inputs
from empowerment.distributions import gauss_hermite
from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, mean_observation, observation_density, perceive

_NEARLY_ZERO = 1e-6
"""Clips uniform samples, so that the noise stays within five standard deviations."""

_FUTURES_PER_DRAW = 16
"""The number of single-code samples that one sample of all codes replaces."""


class Codebook(AbstractChannel):
    r"""A source of finitely many plans $u^k(z)$ with weights $\omega_k(z)$.

    One network computes the plan and the weight of each code from the state and the code's
    place in a space of intents. Where the density of the perceived successor is known,
    planning is not learnt: Bayes' rule reads the code,

    $$q(k|z, x') = \frac{\omega_k(z)\, p(x'|z, u^k)}{\sum_j \omega_j(z)\, p(x'|z, u^j)},$$

    so that the gap of the bound (eq:gap) is zero and what is left is the source. A source
    that carries the capacity under limits on the amplitude *is* nearly discrete. Where the
    density is not known, Bayes' rule uses a Gaussian around the mean future of each plan,
    whose precision $W^\top W$ is learnt: any decoder of the code yields a bound.

    Where actions are discrete, the plans are given, and weights alone are computed; the place of a
    code is then its plan.

    Deviation: the paper learns planning, a Gaussian.

    Attributes:
        intents: The place of each code.
        plans: The plan of each code, one-hot, where actions are discrete.
        reader: $W$, the whitening matrix of the learnt precision; None if the density is known.
        inputs: The scaling of the network's inputs.
        steps: The number of actions $n$.
        has_all_plans: Whether `plans` are all that there are.
    """

    intents: Float[Array, "codes intent"]
    plans: Float[Array, "codes steps action"] | None
    reader: Float[Array, "observation observation"] | None
    from_state: eqx.nn.Linear
    from_intent: eqx.nn.Linear
    hidden: eqx.nn.Linear
    head: eqx.nn.Linear
    inputs: Inputs
    steps: int = eqx.field(static=True)
    has_all_plans: bool = eqx.field(static=True)

    def __init__(
        self,
        inputs: Inputs,
        *,
        steps: int,
        action_size: int,
        intent_size: int,
        num_codes: int,
        plans: Float[Array, "codes steps action"] | None = None,
        has_all_plans: bool = False,
        reader: Float[Array, "observation observation"] | None = None,
        width: int = 128,
        key: Key,
    ):
        state_key, intent_key, hidden_key, head_key = jax.random.split(key, 4)
        if plans is None:
            self.intents = _lattice(num_codes, intent_size)
        else:
            self.intents = plans.reshape(num_codes, intent_size)
        self.plans = plans
        self.reader = reader
        self.from_state = eqx.nn.Linear(inputs.size, width, key=state_key)
        self.from_intent = eqx.nn.Linear(intent_size, width, use_bias=False, key=intent_key)
        self.hidden = eqx.nn.Linear(width, width, key=hidden_key)
        out_size = steps * action_size + 1 if plans is None else 1
        self.head = eqx.nn.Linear(width, out_size, key=head_key)
        self.inputs = inputs
        self.steps = steps
        self.has_all_plans = has_all_plans

    def codes(
        self, state: State
    ) -> tuple[Float[Array, "codes steps action"], Float[Array, " codes"]]:
        """Compute the plan and the log-weight of each code."""
        of_state = self.from_state(self.inputs.features(state))
        hidden = jnp.tanh(of_state[None, :] + self.intents @ self.from_intent.weight.T)
        hidden = jnp.tanh(hidden @ self.hidden.weight.T + _row(self.hidden.bias))
        output = hidden @ self.head.weight.T + _row(self.head.bias)
        log_weights = jax.nn.log_softmax(output[:, -1])
        if self.plans is not None:
            return jax.lax.stop_gradient(self.plans), log_weights
        return output[:, :-1].reshape(len(self.intents), self.steps, -1), log_weights

    def draw(self, state: State, *, key: Key) -> Plan:
        """Sample a plan by its weight."""
        plans, log_weights = self.codes(state)
        return plans[jax.random.categorical(key, log_weights)]

    def draw_many(
        self, state: State, count: int, *, key: Key
    ) -> tuple[Float[Array, "codes steps action"], Float[Array, " codes"]]:
        """Return all plans with their log-weights; nothing is sampled."""
        return self.codes(state)

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        """Estimate the bound from one future of each code."""
        if self.reader is not None:
            return self._read(world, state, self.reader, key)
        shape = len(self.intents), self.inputs.whitener.shape[0]
        return self._information(world, state, _quasi_normal(*shape, key=key))

    def estimate(
        self, world: AbstractWorld, state: State, *, num_samples: int, key: Key
    ) -> Estimate:
        """Estimate the bound from many futures of each code.

        With one or two perceived axes the mean over the noise is a Gauss-Hermite sum; its
        error is estimated by a sum with fewer terms.
        """
        size = self.inputs.whitener.shape[0]
        # Each sample contains a future of every code, so fewer samples suffice.
        num_draws = max(num_samples // _FUTURES_PER_DRAW, 2)
        if self.reader is not None:
            keys = jax.random.split(key, num_draws)
            return Estimate.of(jax.vmap(lambda key: self.information(world, state, key=key))(keys))
        if size > 2:
            return self._paired(world, state, max(num_draws, 4), key)
        order = max(round(num_samples ** (1 / size)), 4)
        coarse, fine = (self._quadrature(world, state, count) for count in (order // 2, order))
        return Estimate(fine, jnp.abs(fine - coarse))

    def _paired(self, world: AbstractWorld, state: State, num_pairs: int, key: Key) -> Estimate:
        r"""Average over pairs of opposite noise, with its squared length as control variate.

        Opposite noise cancels the odd part of the bound; the even part varies mostly with
        $|\varepsilon|^2$, whose mean is known. Its coefficient for one half of the pairs is that
        of the other half, which keeps the estimate unbiased; it is between 0, where codes are far
        apart, and -1/2, where they are not told apart at all and only $\ln p(x'|z,u)$ varies.
        """
        size = self.inputs.whitener.shape[0]
        weights = jnp.exp(self.codes(state)[1])

        def of_pair(key: Key) -> tuple[Scalar, Scalar]:
            noise = _quasi_normal(len(self.intents), size, key=key)
            both = [self._information(world, state, sign * noise) for sign in (1.0, -1.0)]
            return 0.5 * (both[0] + both[1]), weights @ (jnp.sum(noise**2, axis=1) - size)

        keys = jax.random.split(key, num_pairs - num_pairs % 2)
        values, controls = (part.reshape(2, -1) for part in jax.lax.map(of_pair, keys))
        offsets = controls - controls.mean(axis=1, keepdims=True)
        slopes = (offsets * values).sum(axis=1) / jnp.maximum((offsets**2).sum(axis=1), 1e-12)
        slopes = jnp.clip(slopes, -0.5, 0.0)
        return Estimate.of((values - slopes[::-1, None] * controls).ravel())

    def _quadrature(self, world: AbstractWorld, state: State, order: int) -> Scalar:
        """Average over the noise by Gauss-Hermite quadrature."""
        size = self.inputs.whitener.shape[0]
        nodes, weights = gauss_hermite(order, size)

        def of_node(node: Float[Array, " observation"]) -> Scalar:
            noise = jnp.broadcast_to(node, (len(self.intents), size))
            return self._information(world, state, noise)

        return weights @ jax.lax.map(of_node, nodes, batch_size=16)

    def _information(
        self, world: AbstractWorld, state: State, noise: Float[Array, "codes observation"]
    ) -> Scalar:
        r"""Compute $\sum_k \omega_k [\ln p(x'^k|z,u^k) - \ln m(x'^k|z)]$, with $m$ the mixture.

        By Bayes' rule it is $\sum_k \omega_k [\ln q(k|z,x'^k) - \ln \omega_k]$.
        """
        plans, log_weights = self.codes(state)
        futures = jax.vmap(observation_density, in_axes=(None, None, 0))(world, state, plans)
        successors = futures.mean + futures.scale * noise
        log_likelihood = pairwise_log_prob(successors, futures.mean, futures.scale)
        log_mixture = jax.nn.logsumexp(log_weights[None, :] + log_likelihood, axis=1)
        return jnp.sum(jnp.exp(log_weights) * (jnp.diag(log_likelihood) - log_mixture))

    def _read(
        self,
        world: AbstractWorld,
        state: State,
        reader: Float[Array, "observation observation"],
        key: Key,
    ) -> Scalar:
        r"""Compute $\sum_k \omega_k [\ln q(k|z,x'^k) - \ln \omega_k]$ with the learnt precision."""
        plans, log_weights = self.codes(state)
        keys = jax.random.split(key, len(plans))
        successors = jax.vmap(lambda plan, key: perceive(world, state, plan, key=key))(plans, keys)
        means = jax.vmap(lambda plan: mean_observation(world, state, plan))(plans)
        white = means @ reader.T
        log_likelihood = pairwise_log_prob(successors @ reader.T, white, jnp.ones_like(white))
        log_mixture = jax.nn.logsumexp(log_weights[None, :] + log_likelihood, axis=1)
        return jnp.sum(jnp.exp(log_weights) * (jnp.diag(log_likelihood) - log_mixture))


def pairwise_log_prob(
    values: Float[Array, "values axes"],
    means: Float[Array, "codes axes"],
    scales: Float[Array, "codes axes"],
) -> Float[Array, "values codes"]:
    """Compute the log-density of each value under each Gaussian.

    The square is expanded, so that one matrix product yields all pairs; values and means are
    centred first to limit rounding errors.
    """
    middle = jax.lax.stop_gradient(means.mean(axis=0, keepdims=True))
    values, means, precision = values - middle, means - middle, 1 / scales**2
    products = (
        jnp.concatenate([values**2, values], axis=1)
        @ jnp.concatenate([-0.5 * precision, means * precision], axis=1).T
    )
    constant = 0.5 * math.log(2 * math.pi) * means.shape[1]
    of_means = jnp.sum(0.5 * means**2 * precision + jnp.log(scales), axis=1)
    return products - of_means[None] - constant


def _lattice(num_codes: int, size: int) -> Float[Array, "codes intent"]:
    """Return codes that are evenly spaced in a cube, with unit variance along each axis."""
    side = round(num_codes ** (1 / size))
    if side**size == num_codes:
        ticks = (jnp.arange(side, dtype=float) + 0.5) / side
        unit = jnp.stack(jnp.meshgrid(*[ticks] * size, indexing="ij"), axis=-1)
        unit = unit.reshape(-1, size)
    else:
        unit = _low_discrepancy(num_codes, size)
    return math.sqrt(12) * (unit - 0.5)


def _quasi_normal(count: int, size: int, *, key: Key) -> Float[Array, "count size"]:
    """Sample normal noise by randomised quasi-Monte Carlo: each row is standard normal."""
    shift = jax.random.uniform(key, (1, size))
    unit = jnp.mod(_low_discrepancy(count, size) + shift, 1.0)
    return jax.scipy.special.ndtri(jnp.clip(unit, _NEARLY_ZERO, 1 - _NEARLY_ZERO))


def _low_discrepancy(count: int, size: int) -> Float[Array, "count size"]:
    """Return low-discrepancy points, by the generalised golden ratio (Roberts, 2018)."""
    ratio = 2.0
    for _ in range(32):
        ratio = (1 + ratio) ** (1 / (size + 1))
    counts = np.arange(1, count + 1)[:, None]
    return jnp.asarray((0.5 + counts * ratio ** -np.arange(1.0, size + 1)) % 1.0, float)


def _row(bias: Array | None) -> Float[Array, "1 width"]:
    assert bias is not None
    return bias[None, :]
