r"""A state-space model to be learnt: a Deep Variational Bayes Filter."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from empowerment.distributions import Gaussian, product
from empowerment.model.scaling import Scaling
from empowerment.networks import Network, network
from empowerment.types import Action, Key, Observation, State

_LEAST_SCALE = 1e-3
"""Added to every scale, in units of order one: no belief is beyond doubt."""

_LEAST_NOISE = 1e-3
"""The same for what is perceived."""

_FAST = 10.0
"""How much faster the noise of the decoder learns than a weight: it has far to go, and as long
as it is too large the filter takes no notice of what is measured."""


class Prediction(eqx.Module):
    r"""What is said of a successor, before it is seen.

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
        """What the model says: $p(z'|z,u)$."""
        return Gaussian(self.mean, self.prior_scale)

    @property
    def inference(self) -> Gaussian:
        r"""What the filter takes for granted: $q_\mathrm{trans}(z'|z,u)$."""
        return Gaussian(self.mean, self.inference_scale)

    def innovation(self, belief: Gaussian) -> Gaussian:
        r"""Give a belief about the successor as noise that the prior calls standard normal.

        $\mu_w = (\mu - \mu_\mathrm{trans}) / \sigma_\mathrm{trans}$ and $\sigma_w = \sigma /
        \sigma_\mathrm{trans}$.
        """
        return Gaussian(
            (belief.mean - self.mean) / self.prior_scale, belief.scale / self.prior_scale
        )


class DVBF(eqx.Module):
    r"""A Deep Variational Bayes Filter: world and filter, learnt together from data.

    Karl et al. (2018), Sec. 2.4 and App. A.3.2. Observations and actions are scaled to order
    one before they come here (`observations`, `actions`), except where said otherwise.

    Deviation: the transition is residual, $\mu_\mathrm{trans} = z + f(z, u)$, scales are by
    softplus rather than square, hidden layers are tanh, and every observed axis has a noise of
    its own; `printed=True` takes all four as the paper prints them.

    Attributes:
        recognition: Gives mean and scale of $w_1$ from the first observations.
        start: Makes $z_1$ from $w_1$.
        transition_network: Gives $\mu_\mathrm{trans}, \sigma_\mathrm{trans}, \sigma_\mathrm{inf}$.
        measurement_network: Gives mean and scale of $q_\mathrm{meas}(z|x)$.
        decoder: Gives the mean of $p(x|z)$.
        raw_noise: Gives its scale.
        raw_drift: Gives the scale of what predictions are off by when nothing is measured.
        calm: What the scale of the prior is multiplied by to be the noise of the world.
        observations: How observations are scaled.
        actions: How actions are scaled.
        latent_size: The number of axes of a state.
        num_initial: How many observations the first state is recognised from, $K$.
        printed: Whether everything is as the paper prints it.
        stray: How often a value that is observed is far off what is expected, in training.
            Where the noise is Gaussian alone, the few rows that nobody could foresee, such as a
            contact, outweigh all the others.
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
        seen, done = observations.offset.size, actions.offset.size
        relu: Callable = jax.nn.relu if as_published else jnp.tanh
        sigmoid: Callable = jax.nn.sigmoid if as_published else jnp.tanh
        keys = jax.random.split(key, 5)

        def make(in_size: int, out_size: int, activation: Callable, key: Key) -> Network:
            return network(
                in_size, out_size, width=width, depth=depth, activation=activation, key=key
            )

        self.recognition = make(num_initial * seen, 2 * latent_size, relu, keys[0])
        self.start = make(latent_size, latent_size, relu, keys[1])
        self.transition_network = make(latent_size + done, 3 * latent_size, sigmoid, keys[2])
        self.measurement_network = make(seen, 2 * latent_size, relu, keys[3])
        self.decoder = make(latent_size, seen, relu, keys[4])
        self.raw_noise = jnp.zeros(1 if as_published else seen)
        self.raw_drift = jnp.zeros(seen)
        self.noise_factor = jnp.ones(latent_size)
        self.observations = observations
        self.actions = actions
        self.latent_size = latent_size
        self.num_initial = num_initial
        self.as_published = as_published
        self.outlier_probability = outlier_probability

    def recognise(self, first: Float[Array, "first observation"]) -> Gaussian:
        r"""Give what the first observations say of $w_1$; its prior is standard normal."""
        mean, raw = jnp.split(self.recognition(first.ravel()), 2)
        return Gaussian(mean, self._scale(raw))

    def step(self, state: State, action: Action) -> Prediction:
        """Say what is to be expected of the successor."""
        output = self.transition_network(jnp.concatenate([state, action]))
        change, prior, inference = jnp.split(output, 3)
        mean = change if self.as_published else state + change
        return Prediction(mean, self._scale(prior), self._scale(inference))

    def transition(self, state: State, action: Action) -> Gaussian:
        r"""Give $p(z'|z,u)$ as the world has it.

        Deviation: while it learns, the scale of the prior also covers how unsure the filter is of
        the state that it starts from, which is no noise of the world. `calibrate` finds out how
        much of it is.
        """
        expected = self.step(state, action)
        return Gaussian(
            expected.mean, jax.lax.stop_gradient(self.noise_factor) * expected.prior_scale
        )

    def measure(self, observation: Observation) -> Gaussian:
        r"""Give $q_\mathrm{meas}(z|x)$."""
        mean, raw = jnp.split(self.measurement_network(observation), 2)
        return Gaussian(mean, self._scale(raw))

    def fuse(self, step: Prediction, measured: Gaussian) -> Gaussian:
        r"""Give $q(z'|z,u,x') \propto q_\mathrm{trans}(z'|z,u)\, q_\mathrm{meas}(z'|x')$."""
        return product(step.inference, measured)

    def decode(self, state: State) -> Gaussian:
        """Give $p(x|z)$."""
        return Gaussian(self.decoder(state), self.noise)

    @property
    def noise(self) -> Observation:
        """The scale of the noise on what is perceived."""
        scale = _LEAST_NOISE + jnp.exp(_FAST * self.raw_noise)
        return jnp.broadcast_to(scale, self.observations.offset.shape)

    @property
    def drift(self) -> Observation:
        """The scale of what predictions are off by when nothing is measured."""
        return _LEAST_NOISE + jnp.exp(_FAST * self.raw_drift)

    def _scale(self, raw: State) -> State:
        """Make a scale of the output of a network."""
        if self.as_published:
            return jnp.sqrt(raw**2 + _LEAST_SCALE**2)
        return jax.nn.softplus(raw) + _LEAST_SCALE
