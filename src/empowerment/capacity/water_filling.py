"""The capacity of a linear Gaussian channel under a power constraint."""

import jax.numpy as jnp
import jax.scipy.linalg
from jaxtyping import Array, Float

from empowerment.types import Scalar


def water_filling(
    gain: Float[Array, "outputs inputs"],
    noise: Float[Array, "outputs outputs"],
    power: Scalar,
) -> Scalar:
    r"""Compute the capacity of $y = G u + \varepsilon$ with $E[u^\top u] \le P$, in nats.

    With $\lambda_i$ the eigenvalues of $N^{-1/2} G G^\top N^{-1/2}$, the power fills them
    to a common level $\mu$:

    $$C = \tfrac12 \sum_i \bigl[\ln \mu \lambda_i\bigr]_+, \qquad
    \sum_i \bigl[\mu - \tfrac1{\lambda_i}\bigr]_+ = P.$$

    In closed form, and differentiable in all arguments, also where eigenvalues coincide.

    Args:
        gain: $G$.
        noise: The covariance $N$ of the noise, positive definite.
        power: $P$, the total power over all inputs.

    Returns:
        $C$.
    """
    whitener = jnp.linalg.cholesky(noise)
    whitened = jax.scipy.linalg.solve_triangular(whitener, gain, lower=True)
    strengths = jnp.linalg.eigvalsh(whitened @ whitened.T)[::-1]
    used = strengths > jnp.finfo(strengths.dtype).eps * jnp.maximum(strengths[0], 1e-30)
    strengths = jnp.where(used, strengths, 1.0)
    heights = jnp.where(used, 1 / strengths, 0.0)
    # Level if exactly the k strongest are used; it is right for the largest k whose own
    # height is still below it.
    counts = jnp.arange(1, strengths.size + 1, dtype=strengths.dtype)
    levels = (power + jnp.cumsum(heights)) / counts
    num_wet = jnp.sum(used & (levels > heights))
    level = levels[jnp.maximum(num_wet - 1, 0)]
    wet = jnp.arange(strengths.size) < num_wet
    return 0.5 * jnp.sum(jnp.where(wet, jnp.log(jnp.where(wet, level * strengths, 1.0)), 0.0))
