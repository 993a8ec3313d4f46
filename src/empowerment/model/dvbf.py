"""Deep Variational Bayes Filter: a learnt latent state-space model."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Gaussian, product
from empowerment.model.scaling import Scaling
from empowerment.networks import Network, network
from empowerment.types import Action, Key, Observation, State

LEAST_SCALE = 1e-3
"""Lower bound of the scales of latent beliefs; a controller must apply the same."""

_LEAST_NOISE = 1e-3
"""Lower bound of the scale of observation noise."""

_FAST = 10.0
"""Learning-rate factor of the log-scale of observation noise: it changes by orders of magnitude,
and while it is too large the filter ignores measurements."""


class Prediction(eqx.Module):
    r"""The predicted successor, before its observation is measured.

    Attributes:
        mean: $\mu_\mathrm{trans}$, shared by prior and inference.
        prior_scale: $\sigma_\mathrm{trans}$, of $p(z'|z,u)$.
        inference_scale: $\sigma_\mathrm{inf}$, of $q_\mathrm{trans}(z'|z,u)$.
    """

    mean: State
    prior_scale: State
    inference_scale: State

    @property
    def prior(self) -> Gaussian:
        """The generative transition, $p(z'|z,u)$."""
        return Gaussian(self.mean, self.prior_scale)

    @property
    def inference(self) -> Gaussian:
        r"""The transition of the filter, $q_\mathrm{trans}(z'|z,u)$."""
        return Gaussian(self.mean, self.inference_scale)

    def innovation(self, belief: Gaussian) -> Gaussian:
        r"""Express a belief about the successor as innovation, standard normal under the prior.

        $\mu_w = (\mu - \mu_\mathrm{trans}) / \sigma_\mathrm{trans}$ and $\sigma_w = \sigma /
        \sigma_\mathrm{trans}$.
        """
        return Gaussian(
            (belief.mean - self.mean) / self.prior_scale, belief.scale / self.prior_scale
        )


class DVBF(eqx.Module):
    r"""Deep Variational Bayes Filter: transition, decoder and filter, learnt jointly from data.

    Karl et al. (2018), Sec. 2.4 and App. A.3.2. All methods expect observations and actions
    that are scaled to order one by `observations` and `actions`.

    Deviation: the transition is residual, $\mu_\mathrm{trans} = z + f(z, u)$, scales are by
    softplus rather than square, hidden layers are tanh, and every observed axis has its own
    noise; `as_published=True` takes all four as the paper prints them.

    Attributes:
        recognition: Network from the first observations to mean and scale of $w_1$.
        start: Network from $w_1$ to $z_1$.
        transition_network: Network to $\mu_\mathrm{trans}, \sigma_\mathrm{trans},
            \sigma_\mathrm{inf}$.
        measurement_network: Network to mean and scale of $q_\mathrm{meas}(z|x)$.
        decoder: Network to the mean of $p(x|z)$.
        raw_noise: Unconstrained scale of $p(x|z)$.
        raw_drift: Unconstrained scale of open-loop prediction errors.
        noise_factor: Calibrated ratio of process noise to the learnt prior scale.
        observations: Scaling of observations.
        actions: Scaling of actions.
        latent_size: The number of axes of a latent state.
        num_initial: The number of observations $K$ from which the initial state is inferred.
        as_published: Whether the architecture is that of the paper.
        outlier_probability: Outlier probability of the contaminated-Gaussian likelihood used in
            training. With a Gaussian alone, the few unpredictable rows, such as contacts,
            dominate the loss.
    """

    recognition: Network
    start: Network
    transition_network: Network
    measurement_network: Network
    decoder: Network
    raw_noise: Float[Array, " noise"]
    raw_drift: Float[Array, " observation"]
    noise_factor: State
    observations: Scaling
    actions: Scaling
    latent_size: int = eqx.field(static=True)
    num_initial: int = eqx.field(static=True)
    as_published: bool = eqx.field(static=True)
    outlier_probability: float = eqx.field(static=True)

    def __init__(
        self,
        observations: Scaling,
        actions: Scaling,
        *,
        latent_size: int,
        width: int = 128,
        depth: int = 1,
        num_initial: int = 1,
        as_published: bool = False,
        outlier_probability: float = 0.0,
        key: Key,
    ):
        observation_size, action_size = observations.offset.size, actions.offset.size
        relu: Callable = jax.nn.relu if as_published else jnp.tanh
        sigmoid: Callable = jax.nn.sigmoid if as_published else jnp.tanh
        keys = jax.random.split(key, 5)

        def make(in_size: int, out_size: int, activation: Callable, key: Key) -> Network:
            return network(
                in_size, out_size, width=width, depth=depth, activation=activation, key=key
            )

        self.recognition = make(num_initial * observation_size, 2 * latent_size, relu, keys[0])
        self.start = make(latent_size, latent_size, relu, keys[1])
        self.transition_network = make(latent_size + action_size, 3 * latent_size, sigmoid, keys[2])
        self.measurement_network = make(observation_size, 2 * latent_size, relu, keys[3])
        self.decoder = make(latent_size, observation_size, relu, keys[4])
        self.raw_noise = jnp.zeros(1 if as_published else observation_size)
        self.raw_drift = jnp.zeros(observation_size)
        self.noise_factor = jnp.ones(latent_size)
        self.observations = observations
        self.actions = actions
        self.latent_size = latent_size
        self.num_initial = num_initial
        self.as_published = as_published
        self.outlier_probability = outlier_probability

    def recognise(self, first: Float[Array, "first observation"]) -> Gaussian:
        r"""Return the posterior of $w_1$ given the first observations; its prior is $N(0, I)$."""
        mean, raw = jnp.split(self.recognition(first.ravel()), 2)
        return Gaussian(mean, self._scale(raw))

    def step(self, state: State, action: Action) -> Prediction:
        """Predict the successor: shared mean, prior and inference scales."""
        output = self.transition_network(jnp.concatenate([state, action]))
        change, prior, inference = jnp.split(output, 3)
        mean = change if self.as_published else state + change
        return Prediction(mean, self._scale(prior), self._scale(inference))

    def transition(self, state: State, action: Action) -> Gaussian:
        r"""Return $p(z'|z,u)$ with the calibrated process noise.

        Deviation: the learnt scale of the prior also covers the filter's uncertainty about the
        previous state, which is not process noise. `calibrate` estimates the ratio of the two.
        """
        prior = self.step(state, action).prior
        return Gaussian(prior.mean, jax.lax.stop_gradient(self.noise_factor) * prior.scale)

    def measure(self, observation: Observation) -> Gaussian:
        r"""Return $q_\mathrm{meas}(z|x)$."""
        mean, raw = jnp.split(self.measurement_network(observation), 2)
        return Gaussian(mean, self._scale(raw))

    def fuse(self, step: Prediction, measured: Gaussian) -> Gaussian:
        r"""Return $q(z'|z,u,x') \propto q_\mathrm{trans}(z'|z,u)\, q_\mathrm{meas}(z'|x')$."""
        return product(step.inference, measured)

    def decode(self, state: State) -> Gaussian:
        """Return $p(x|z)$."""
        return Gaussian(self.decoder(state), self.noise)

    @property
    def noise(self) -> Observation:
        """The scale of the observation noise."""
        scale = _LEAST_NOISE + jnp.exp(_FAST * self.raw_noise)
        return jnp.broadcast_to(scale, self.observations.offset.shape)

    @property
    def drift(self) -> Observation:
        """The scale of open-loop prediction errors."""
        return _LEAST_NOISE + jnp.exp(_FAST * self.raw_drift)

    def _scale(self, raw: State) -> State:
        if self.as_published:
            return jnp.sqrt(raw**2 + LEAST_SCALE**2)
        return jax.nn.softplus(raw) + LEAST_SCALE
