"""Distributions: what a world or a channel answers when it is given its condition.

All are unbatched; the caller writes `jax.vmap`.
"""

import functools
import math
from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jaxtyping import Array, Float, Int, Num

from empowerment.types import Key, Scalar

_SMALL = 8
"""Axes up to which a triangular system is solved one by one."""


class AbstractDistribution(eqx.Module):
    """A distribution that can be sampled and evaluated."""

    @abstractmethod
    def sample(self, *, key: Key) -> Num[Array, "..."]:
        """Draw one value; the key is consumed."""

    @abstractmethod
    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the logarithm of the density, or of the probability, at a value."""

    def sample_and_log_prob(self, *, key: Key) -> tuple[Num[Array, "..."], Scalar]:
        """Draw one value with its log-density; the key is consumed."""
        value = self.sample(key=key)
        return value, self.log_prob(value)


class Gaussian(AbstractDistribution):
    r"""Independent Gaussians, $\mathcal{N}(\mu, \mathrm{diag}\,\sigma^2)$.

    A scale of zero is a point mass: it can be sampled, but has no density.

    Args:
        mean: $\mu$.
        scale: The standard deviations $\sigma$.
    """

    mean: Float[Array, " size"]
    scale: Float[Array, " size"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Draw by reparametrisation, so that gradients reach mean and scale."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + self.scale * noise

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the log-density at a value."""
        standardised = (value - self.mean) / self.scale
        normaliser = jnp.log(self.scale) + 0.5 * jnp.log(2 * jnp.pi)
        return -jnp.sum(0.5 * standardised**2 + normaliser)


def product(one: Gaussian, other: Gaussian) -> Gaussian:
    r"""Give the Gaussian proportional to the product of two densities.

    $$\mu = \frac{\mu_1 \sigma_2^2 + \mu_2 \sigma_1^2}{\sigma_1^2 + \sigma_2^2}, \qquad
    \sigma^2 = \frac{\sigma_1^2 \sigma_2^2}{\sigma_1^2 + \sigma_2^2}$$

    Karl et al. (2018), App. A.3.2: two beliefs about the same state become one.
    """
    share = one.scale**2 / (one.scale**2 + other.scale**2)
    mean = one.mean + share * (other.mean - one.mean)
    return Gaussian(mean, jnp.sqrt(share) * other.scale)


def divergence_from_standard(given: Gaussian) -> Scalar:
    r"""Give $\mathrm{KL}(\mathcal{N}(\mu, \mathrm{diag}\,\sigma^2) \,\|\, \mathcal{N}(0, I))$."""
    return 0.5 * jnp.sum(given.mean**2 + given.scale**2 - 1) - jnp.sum(jnp.log(given.scale))


class FullGaussian(AbstractDistribution):
    r"""A Gaussian whose axes depend on one another, $\mathcal{N}(\mu, L L^\top)$.

    Args:
        mean: $\mu$.
        factor: $L$, lower triangular with a positive diagonal.
    """

    mean: Float[Array, " size"]
    factor: Float[Array, "size size"]

    def whiten(self, value: Float[Array, " size"]) -> Float[Array, " size"]:
        r"""Undo mean and covariance, $L^{-1} (x - \mu)$."""
        offset, white = value - self.mean, []
        if offset.size > _SMALL:
            return jax.scipy.linalg.solve_triangular(self.factor, offset, lower=True)
        for row in range(offset.size):  # So few axes are three times faster one by one.
            known = [self.factor[row, axis] * white[axis] for axis in range(row)]
            white.append((offset[row] - sum(known)) / self.factor[row, row])
        return jnp.stack(white)

    def colour(self, noise: Float[Array, " size"]) -> Float[Array, " size"]:
        r"""Give white noise mean and covariance, $\mu + L \epsilon$."""
        return self.mean + self.factor @ noise

    def log_volume(self) -> Scalar:
        r"""Give $\ln \det L$."""
        return jnp.sum(jnp.log(jnp.diag(self.factor)))

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Draw by reparametrisation, so that gradients reach mean and factor."""
        return self.colour(jax.random.normal(key, self.mean.shape, self.mean.dtype))

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the log-density at a value."""
        return standard_log_prob(self.whiten(value)) - self.log_volume()

    def sample_and_log_prob(self, *, key: Key) -> tuple[Float[Array, " size"], Scalar]:
        """Draw one value with its log-density, without undoing the drawing."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.colour(noise), standard_log_prob(noise) - self.log_volume()


def standard_log_prob(noise: Float[Array, " size"]) -> Scalar:
    """Evaluate the log-density of white noise of unit variance."""
    return -0.5 * jnp.sum(noise**2) - 0.5 * noise.size * math.log(2 * math.pi)


class Uniform(AbstractDistribution):
    """The uniform distribution over a box.

    Args:
        low: The lower corner.
        high: The upper corner.
    """

    low: Float[Array, " size"]
    high: Float[Array, " size"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Draw one point of the box."""
        unit = jax.random.uniform(key, self.low.shape, self.low.dtype)
        return self.low + (self.high - self.low) * unit

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the log-density: minus infinity outside the box."""
        inside = jnp.all((self.low <= value) & (value <= self.high))
        return jnp.where(inside, -jnp.sum(jnp.log(self.high - self.low)), -jnp.inf)


class Empirical(AbstractDistribution):
    """The values of a sample, each as likely as the others.

    Args:
        values: One in each row.
    """

    values: Float[Array, "values size"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Draw one of the values."""
        return self.values[jax.random.randint(key, (), 0, self.values.shape[0])]

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the logarithm of the share of a value in the sample."""
        return jnp.log(jnp.mean(jnp.all(self.values == value, axis=-1), dtype=self.values.dtype))


class Categorical(AbstractDistribution):
    """A distribution over the indices of a vector of probabilities.

    Args:
        probabilities: Non-negative, summing to one.
    """

    probabilities: Float[Array, " outcomes"]

    def sample(self, *, key: Key) -> Int[Array, ""]:
        """Draw one index."""
        return jax.random.categorical(key, jnp.log(self.probabilities))

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the log-probability of an index."""
        return jnp.log(self.probabilities[value])


def gauss_hermite(
    order: int, size: int
) -> tuple[Float[Array, "nodes size"], Float[Array, " nodes"]]:
    r"""Give nodes and shares whose sum is the mean over standard normal noise.

    Exact for polynomials of degree below twice the order, along each of `size` axes.
    """
    ticks, weights = np.polynomial.hermite_e.hermegauss(order)
    nodes = np.stack(np.meshgrid(*[ticks] * size, indexing="ij"), axis=-1).reshape(-1, size)
    shares = functools.reduce(np.multiply.outer, [weights / weights.sum()] * size).ravel()
    return jnp.asarray(nodes, float), jnp.asarray(shares, float)
