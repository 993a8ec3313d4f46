"""Probability distributions, unbatched: apply `jax.vmap` for batches."""

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
"""Largest triangular system that is solved by unrolled forward substitution."""


class AbstractDistribution(eqx.Module):
    """A distribution that can be sampled and evaluated."""

    @abstractmethod
    def sample(self, *, key: Key) -> Num[Array, "..."]:
        """Sample one value; the key is consumed."""

    @abstractmethod
    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-density, or log-probability, of a value."""

    def sample_and_log_prob(self, *, key: Key) -> tuple[Num[Array, "..."], Scalar]:
        """Sample one value with its log-density; the key is consumed."""
        value = self.sample(key=key)
        return value, self.log_prob(value)


class Gaussian(AbstractDistribution):
    r"""Diagonal Gaussian, $\mathcal{N}(\mu, \mathrm{diag}\,\sigma^2)$.

    A scale of zero is a point mass: it can be sampled, but has no density.

    Args:
        mean: $\mu$.
        scale: The standard deviations $\sigma$.
    """

    mean: Float[Array, " size"]
    scale: Float[Array, " size"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample by reparametrisation, differentiably in mean and scale."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + self.scale * noise

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-density of a value."""
        standardised = (value - self.mean) / self.scale
        normaliser = jnp.log(self.scale) + 0.5 * jnp.log(2 * jnp.pi)
        return -jnp.sum(0.5 * standardised**2 + normaliser)


def product(one: Gaussian, other: Gaussian) -> Gaussian:
    r"""Return the Gaussian proportional to the product of two densities.

    $$\mu = \frac{\mu_1 \sigma_2^2 + \mu_2 \sigma_1^2}{\sigma_1^2 + \sigma_2^2}, \qquad
    \sigma^2 = \frac{\sigma_1^2 \sigma_2^2}{\sigma_1^2 + \sigma_2^2}$$

    Karl et al. (2018), App. A.3.2: the fusion of two beliefs about the same state.
    """
    share = one.scale**2 / (one.scale**2 + other.scale**2)
    mean = one.mean + share * (other.mean - one.mean)
    return Gaussian(mean, jnp.sqrt(share) * other.scale)


def divergence_from_standard(given: Gaussian) -> Scalar:
    r"""Return $\mathrm{KL}(\mathcal{N}(\mu, \mathrm{diag}\,\sigma^2) \,\|\, \mathcal{N}(0, I))$."""
    return 0.5 * jnp.sum(given.mean**2 + given.scale**2 - 1) - jnp.sum(jnp.log(given.scale))


class FullGaussian(AbstractDistribution):
    r"""Gaussian with full covariance, $\mathcal{N}(\mu, L L^\top)$.

    Args:
        mean: $\mu$.
        factor: The Cholesky factor $L$, lower triangular with a positive diagonal.
    """

    mean: Float[Array, " size"]
    factor: Float[Array, "size size"]

    def whiten(self, value: Float[Array, " size"]) -> Float[Array, " size"]:
        r"""Whiten a value, $L^{-1} (x - \mu)$."""
        offset, white = value - self.mean, []
        if offset.size > _SMALL:
            return jax.scipy.linalg.solve_triangular(self.factor, offset, lower=True)
        for row in range(offset.size):  # Unrolled, small systems are three times faster.
            known = [self.factor[row, axis] * white[axis] for axis in range(row)]
            white.append((offset[row] - sum(known)) / self.factor[row, row])
        return jnp.stack(white)

    def colour(self, noise: Float[Array, " size"]) -> Float[Array, " size"]:
        r"""Map white noise to a value, $\mu + L \epsilon$: the inverse of `whiten`."""
        return self.mean + self.factor @ noise

    def log_volume(self) -> Scalar:
        r"""Return $\ln \det L$."""
        return jnp.sum(jnp.log(jnp.diag(self.factor)))

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample by reparametrisation, differentiably in mean and factor."""
        return self.colour(jax.random.normal(key, self.mean.shape, self.mean.dtype))

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-density of a value."""
        return standard_log_prob(self.whiten(value)) - self.log_volume()

    def sample_and_log_prob(self, *, key: Key) -> tuple[Float[Array, " size"], Scalar]:
        """Sample one value with its log-density, without a triangular solve."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.colour(noise), standard_log_prob(noise) - self.log_volume()


def standard_log_prob(noise: Float[Array, " size"]) -> Scalar:
    r"""Compute the log-density of $\mathcal{N}(0, I)$."""
    return -0.5 * jnp.sum(noise**2) - 0.5 * noise.size * math.log(2 * math.pi)


class Uniform(AbstractDistribution):
    """Uniform distribution over a box.

    Args:
        low: The lower corner.
        high: The upper corner.
    """

    low: Float[Array, " size"]
    high: Float[Array, " size"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample one point of the box."""
        unit = jax.random.uniform(key, self.low.shape, self.low.dtype)
        return self.low + (self.high - self.low) * unit

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-density: minus infinity outside the box."""
        inside = jnp.all((self.low <= value) & (value <= self.high))
        return jnp.where(inside, -jnp.sum(jnp.log(self.high - self.low)), -jnp.inf)


class Empirical(AbstractDistribution):
    """Empirical distribution of a sample.

    Args:
        values: The sample, one value per row.
    """

    values: Float[Array, "values size"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample one of the values, uniformly."""
        return self.values[jax.random.randint(key, (), 0, self.values.shape[0])]

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-frequency of a value in the sample."""
        return jnp.log(jnp.mean(jnp.all(self.values == value, axis=-1), dtype=self.values.dtype))


class Categorical(AbstractDistribution):
    """Categorical distribution over the indices of a probability vector.

    Args:
        probabilities: Non-negative, summing to one.
    """

    probabilities: Float[Array, " outcomes"]

    def sample(self, *, key: Key) -> Int[Array, ""]:
        """Sample one index."""
        return jax.random.categorical(key, jnp.log(self.probabilities))

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-probability of an index."""
        return jnp.log(self.probabilities[value])


def gauss_hermite(
    order: int, size: int
) -> tuple[Float[Array, "nodes size"], Float[Array, " nodes"]]:
    r"""Return nodes and weights of the product quadrature over standard normal noise.

    Exact for polynomials of degree below twice the order, along each of `size` axes.
    """
    ticks, weights = np.polynomial.hermite_e.hermegauss(order)
    nodes = np.stack(np.meshgrid(*[ticks] * size, indexing="ij"), axis=-1).reshape(-1, size)
    shares = functools.reduce(np.multiply.outer, [weights / weights.sum()] * size).ravel()
    return jnp.asarray(nodes, float), jnp.asarray(shares, float)
