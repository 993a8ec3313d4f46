"""Normalising flows: Gaussians transformed by spline coupling layers."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from empowerment.distributions import AbstractDistribution, FullGaussian, standard_log_prob
from empowerment.networks import Network, network
from empowerment.types import Key, Scalar

_NUM_LAYERS = 4
"""Number of coupling layers of a flow."""

_NUM_BINS = 8
_REACH = 4.0
"""Half-width of the domain of a spline, in standard deviations; it is the identity beyond."""

_SMALLEST = 1e-3
"""Smallest bin, as a fraction of the domain, and smallest slope; keeps the inverse stable."""

_UNIT_SLOPE = math.log(math.expm1(1 - _SMALLEST))
"""The input of softplus at which a slope is one."""

SPLINE_SIZE = 3 * _NUM_BINS - 1
"""Number of parameters of a spline: widths and heights of bins, and inner slopes."""


class _Bins(eqx.Module):
    """The bins of the splines of several axes, one row for each axis.

    Attributes:
        left: The left edge of each bin.
        width: Its width.
        bottom: The value at its left edge.
        height: The increase of the value over it.
        slopes: The slopes at its left and right edge.
    """

    left: Float[Array, "axes bins"]
    width: Float[Array, "axes bins"]
    bottom: Float[Array, "axes bins"]
    height: Float[Array, "axes bins"]
    slopes: tuple[Float[Array, "axes bins"], Float[Array, "axes bins"]]


def _bins(parameters: Float[Array, "axes parameters"]) -> _Bins:
    """Compute bins from unconstrained parameters; zeros mean the identity."""
    widths, heights, inner = jnp.split(parameters, (_NUM_BINS, 2 * _NUM_BINS), axis=1)
    left, width = _edges(widths)
    bottom, height = _edges(heights)
    slopes = _SMALLEST + jax.nn.softplus(inner + _UNIT_SLOPE)
    ends = jnp.ones_like(slopes[:, :1])
    slopes = jnp.concatenate([ends, slopes, ends], axis=1)
    return _Bins(left, width, bottom, height, (slopes[:, :-1], slopes[:, 1:]))


def _edges(
    logits: Float[Array, "axes bins"],
) -> tuple[Float[Array, "axes bins"], Float[Array, "axes bins"]]:
    """Compute left edges and sizes of bins that fill the domain of a spline."""
    share = _SMALLEST + (1 - _NUM_BINS * _SMALLEST) * jax.nn.softmax(logits, axis=1)
    size = 2 * _REACH * share
    return jnp.cumsum(size, axis=1) - size - _REACH, size


def _pick(bins: _Bins, edges: Float[Array, "axes bins"], value: Float[Array, " axes"]) -> _Bins:
    """Select the bin of each value by its lower edge; masked sums are faster than a gather."""
    reached = (value[:, None] >= edges).at[:, 0].set(True)
    after = jnp.concatenate([reached[:, 1:], jnp.zeros_like(reached[:, :1])], axis=1)
    return jax.tree.map(lambda a: jnp.sum(jnp.where(reached & ~after, a, 0.0), axis=1), bins)


def spline(
    parameters: Float[Array, "axes parameters"], value: Float[Array, " axes"]
) -> tuple[Float[Array, " axes"], Scalar]:
    r"""Transform each axis by a monotone rational-quadratic spline.

    Durkan et al. (2019), *Neural Spline Flows*, Eqs. 4 and 5; the identity outside the domain.

    Args:
        parameters: `SPLINE_SIZE` for each axis; zeros mean the identity.
        value: The point to transform.

    Returns:
        The transformed value, and the log-determinant of the Jacobian.
    """
    inside = jnp.abs(value) < _REACH
    within = jnp.where(inside, value, 0.0)
    bins = _bins(parameters)
    here = _pick(bins, bins.left, within)
    place = (within - here.left) / here.width
    bent = here.bottom + here.height * _rise(here, place)[0]
    log_slope = _log_slope(here, place)
    return jnp.where(inside, bent, value), jnp.sum(jnp.where(inside, log_slope, 0.0))


def unspline(
    parameters: Float[Array, "axes parameters"], value: Float[Array, " axes"]
) -> tuple[Float[Array, " axes"], Scalar]:
    """Invert `spline`; the log-determinant is that of the inverse.

    Durkan et al. (2019), Eqs. 6 to 8: the root of a quadratic.
    """
    inside = jnp.abs(value) < _REACH
    within = jnp.where(inside, value, 0.0)
    bins = _bins(parameters)
    here = _pick(bins, bins.bottom, within)
    mean_slope = here.height / here.width
    first, last = here.slopes
    risen = within - here.bottom
    curvature = risen * (first + last - 2 * mean_slope)
    a = here.height * (mean_slope - first) + curvature
    b = here.height * first - curvature
    c = -mean_slope * risen
    place = 2 * c / (-b - jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 1e-12)))
    place = jnp.clip(place, 0.0, 1.0)
    unbent = here.left + here.width * place
    log_slope = _log_slope(here, place)
    return jnp.where(inside, unbent, value), -jnp.sum(jnp.where(inside, log_slope, 0.0))


def _rise(
    here: _Bins, place: Float[Array, " axes"]
) -> tuple[Float[Array, " axes"], Float[Array, " axes"]]:
    """Compute the relative height within a bin, and the denominator of that fraction."""
    mean_slope = here.height / here.width
    first, last = here.slopes
    mixed = place * (1 - place)
    denominator = mean_slope + (first + last - 2 * mean_slope) * mixed
    return (mean_slope * place**2 + first * mixed) / denominator, denominator


def _log_slope(here: _Bins, place: Float[Array, " axes"]) -> Float[Array, " axes"]:
    """Compute the log-slope at a relative position within a bin."""
    mean_slope = here.height / here.width
    first, last = here.slopes
    left = 1 - place
    numerator = last * place**2 + 2 * mean_slope * place * left + first * left**2
    return 2 * jnp.log(mean_slope / _rise(here, place)[1]) + jnp.log(numerator)


class Coupling(eqx.Module):
    """Coupling layer: splines on half of the axes, conditioned on the rest and a condition.

    The axes then rotate, the unchanged ones to the front, so that over several layers every
    axis is transformed and conditions others. A single axis depends on the condition alone.

    Args:
        size: The number of axes.
        condition_size: The size of the condition.
        width: The size of a hidden layer.
        depth: The number of hidden layers.
        key: Consumed.
    """

    network: Network
    num_bent: int = eqx.field(static=True)

    def __init__(self, size: int, condition_size: int, *, width: int, depth: int, key: Key):
        self.num_bent = (size + 1) // 2
        in_size = size - self.num_bent + condition_size
        out_size = self.num_bent * SPLINE_SIZE
        # Initialised close to the identity: training starts from the Gaussian.
        self.network = eqx.tree_at(
            lambda net: (net.layers[-1].weight, net.layers[-1].bias),
            network(in_size, out_size, width=width, depth=depth, key=key),
            replace_fn=lambda leaf: 0.01 * leaf,
        )

    def __call__(
        self, value: Float[Array, " size"], condition: Float[Array, " condition"]
    ) -> tuple[Float[Array, " size"], Scalar]:
        """Transform and rotate; return also the log-determinant."""
        bent, kept = jnp.split(value, (self.num_bent,))
        bent, log_slope = spline(self._parameters(kept, condition), bent)
        return jnp.concatenate([kept, bent]), log_slope

    def inverse(
        self, value: Float[Array, " size"], condition: Float[Array, " condition"]
    ) -> tuple[Float[Array, " size"], Scalar]:
        """Invert the layer; return also the log-determinant of the inverse."""
        kept, bent = jnp.split(value, (value.size - self.num_bent,))
        bent, log_slope = unspline(self._parameters(kept, condition), bent)
        return jnp.concatenate([bent, kept]), log_slope

    def _parameters(
        self, kept: Float[Array, " kept"], condition: Float[Array, " condition"]
    ) -> Float[Array, "bent parameters"]:
        output = self.network(jnp.concatenate([kept, condition]))
        return output.reshape(self.num_bent, SPLINE_SIZE)


class Flow(AbstractDistribution):
    r"""A Gaussian transformed by coupling layers, $x = \mu + L f^{-1}(\epsilon)$.

    Args:
        gaussian: The affine part, $\mu$ and $L$.
        layers: Stacked coupling layers; their composition is $f$, from a value to noise.
        condition: The condition of the layers.
    """

    gaussian: FullGaussian
    layers: Coupling
    condition: Float[Array, " condition"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Sample by reparametrisation, differentiably in all parameters."""
        return self.sample_and_log_prob(key=key)[0]

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Compute the log-density of a value."""
        noise, log_slope = self._through(self.gaussian.whiten(value), inverse=False)
        return standard_log_prob(noise) + log_slope - self.gaussian.log_volume()

    def sample_and_log_prob(self, *, key: Key) -> tuple[Float[Array, " size"], Scalar]:
        """Sample one value with its log-density, in one pass through the layers."""
        mean = self.gaussian.mean
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        white, log_slope = self._through(noise, inverse=True)
        log_prob = standard_log_prob(noise) - log_slope - self.gaussian.log_volume()
        return self.gaussian.colour(white), log_prob

    def _through(
        self, value: Float[Array, " size"], *, inverse: bool
    ) -> tuple[Float[Array, " size"], Scalar]:
        """Apply all layers by a scan, which compiles a single layer."""
        arrays, rest = eqx.partition(self.layers, eqx.is_array)

        def step(value: Float[Array, " size"], arrays: Coupling):
            layer = eqx.combine(arrays, rest)
            return (layer.inverse if inverse else layer)(value, self.condition)

        value, log_slopes = jax.lax.scan(step, value, arrays, reverse=inverse)
        return value, log_slopes.sum()


def transform(
    gaussian: FullGaussian, layers: Coupling | None, condition: Float[Array, " condition"]
) -> FullGaussian | Flow:
    """Transform a Gaussian by coupling layers; without layers, return it unchanged."""
    return gaussian if layers is None else Flow(gaussian, layers, condition)


def couplings(size: int, condition_size: int, *, width: int, depth: int, key: Key) -> Coupling:
    """Build the stacked coupling layers of a flow."""

    def one(key: Key) -> Coupling:
        return Coupling(size, condition_size, width=width, depth=depth, key=key)

    return eqx.filter_vmap(one)(jax.random.split(key, _NUM_LAYERS))
