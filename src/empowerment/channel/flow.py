"""Flows: a Gaussian bent by splines until it has the shape that is needed."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from empowerment.distributions import AbstractDistribution, FullGaussian, standard_log_prob
from empowerment.networks import Network, network
from empowerment.types import Key, Scalar

_NUM_LAYERS = 4
"""Coupling layers of a flow."""

_NUM_BINS = 8
_REACH = 4.0
"""Splines bend what is within so many standard deviations; beyond they are the identity."""

_SMALLEST = 1e-3
"""Of a bin, as a share of all, and of a slope: keeps the inverse well-behaved."""

_UNIT_SLOPE = math.log(math.expm1(1 - _SMALLEST))
"""The input of softplus at which a slope is one."""

SPLINE_SIZE = 3 * _NUM_BINS - 1
"""Parameters of a spline: widths and heights of its bins, and the slopes between them."""


class _Bins(eqx.Module):
    """The bins of the splines of several axes, one row for each axis.

    Attributes:
        left: Where each bin begins.
        width: How wide it is.
        bottom: The value at its beginning.
        height: How much the value rises in it.
        slopes: The slope at its beginning and at its end.
    """

    left: Float[Array, "axes bins"]
    width: Float[Array, "axes bins"]
    bottom: Float[Array, "axes bins"]
    height: Float[Array, "axes bins"]
    slopes: tuple[Float[Array, "axes bins"], Float[Array, "axes bins"]]


def _bins(parameters: Float[Array, "axes parameters"]) -> _Bins:
    """Read parameters as bins; zeros mean the identity."""
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
    """Give the beginnings and the sizes of bins that fill the reach of a spline."""
    share = _SMALLEST + (1 - _NUM_BINS * _SMALLEST) * jax.nn.softmax(logits, axis=1)
    size = 2 * _REACH * share
    return jnp.cumsum(size, axis=1) - size - _REACH, size


def _pick(bins: _Bins, begins: Float[Array, "axes bins"], value: Float[Array, " axes"]) -> _Bins:
    """Find the bin of each value by where bins begin; sums are faster than a lookup."""
    reached = (value[:, None] >= begins).at[:, 0].set(True)
    after = jnp.concatenate([reached[:, 1:], jnp.zeros_like(reached[:, :1])], axis=1)
    return jax.tree.map(lambda a: jnp.sum(jnp.where(reached & ~after, a, 0.0), axis=1), bins)


def spline(
    parameters: Float[Array, "axes parameters"], value: Float[Array, " axes"]
) -> tuple[Float[Array, " axes"], Scalar]:
    r"""Bend each axis by a monotone rational-quadratic spline.

    Durkan et al. (2019), *Neural Spline Flows*, Eqs. 4 and 5; the identity outside the reach.

    Args:
        parameters: `SPLINE_SIZE` for each axis; zeros mean the identity.
        value: Where to evaluate.

    Returns:
        The value bent, and the logarithm of the determinant of the Jacobian.
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
    """Undo `spline`; the logarithm of the determinant is that of the undoing.

    Durkan et al. (2019), Eqs. 6 to 8: the root of a quadratic.
    """
    inside = jnp.abs(value) < _REACH
    within = jnp.where(inside, value, 0.0)
    bins = _bins(parameters)
    here = _pick(bins, bins.bottom, within)
    mean_slope = here.height / here.width
    first, last = here.slopes
    risen = within - here.bottom
    bend = risen * (first + last - 2 * mean_slope)
    a = here.height * (mean_slope - first) + bend
    b = here.height * first - bend
    c = -mean_slope * risen
    place = 2 * c / (-b - jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 1e-12)))
    place = jnp.clip(place, 0.0, 1.0)
    unbent = here.left + here.width * place
    log_slope = _log_slope(here, place)
    return jnp.where(inside, unbent, value), -jnp.sum(jnp.where(inside, log_slope, 0.0))


def _rise(
    here: _Bins, place: Float[Array, " axes"]
) -> tuple[Float[Array, " axes"], Float[Array, " axes"]]:
    """Give the share of its height that a bin has risen, and the denominator of that share."""
    mean_slope = here.height / here.width
    first, last = here.slopes
    mixed = place * (1 - place)
    denominator = mean_slope + (first + last - 2 * mean_slope) * mixed
    return (mean_slope * place**2 + first * mixed) / denominator, denominator


def _log_slope(here: _Bins, place: Float[Array, " axes"]) -> Float[Array, " axes"]:
    """Give the logarithm of the slope at a place within a bin."""
    mean_slope = here.height / here.width
    first, last = here.slopes
    left = 1 - place
    numerator = last * place**2 + 2 * mean_slope * place * left + first * left**2
    return 2 * jnp.log(mean_slope / _rise(here, place)[1]) + jnp.log(numerator)


class Coupling(eqx.Module):
    """Bends the first half of all axes by splines that the rest and the condition choose.

    Then the axes move round, those that were kept to the front, so that in time each is bent
    and each has a say. With a single axis the condition alone chooses.

    Args:
        size: The number of axes.
        condition_size: The size of the condition.
        width: Of the network.
        depth: Of the network.
        key: Consumed.
    """

    network: Network
    num_bent: int = eqx.field(static=True)

    def __init__(self, size: int, condition_size: int, *, width: int, depth: int, key: Key):
        self.num_bent = (size + 1) // 2
        in_size = size - self.num_bent + condition_size
        out_size = self.num_bent * SPLINE_SIZE
        made = network(in_size, out_size, width=width, depth=depth, key=key)
        # A flow begins close to the identity: training starts from the Gaussian.
        self.network = eqx.tree_at(
            lambda made: (made.layers[-1].weight, made.layers[-1].bias),
            made,
            replace_fn=lambda leaf: 0.01 * leaf,
        )

    def __call__(
        self, value: Float[Array, " size"], condition: Float[Array, " condition"]
    ) -> tuple[Float[Array, " size"], Scalar]:
        """Bend and move round, with the logarithm of the determinant."""
        bent, kept = jnp.split(value, (self.num_bent,))
        bent, log_slope = spline(self._parameters(kept, condition), bent)
        return jnp.concatenate([kept, bent]), log_slope

    def inverse(
        self, value: Float[Array, " size"], condition: Float[Array, " condition"]
    ) -> tuple[Float[Array, " size"], Scalar]:
        """Undo it, with the logarithm of the determinant of the undoing."""
        kept, bent = jnp.split(value, (value.size - self.num_bent,))
        bent, log_slope = unspline(self._parameters(kept, condition), bent)
        return jnp.concatenate([bent, kept]), log_slope

    def _parameters(
        self, kept: Float[Array, " kept"], condition: Float[Array, " condition"]
    ) -> Float[Array, "bent parameters"]:
        output = self.network(jnp.concatenate([kept, condition]))
        return output.reshape(self.num_bent, SPLINE_SIZE)


class Flow(AbstractDistribution):
    r"""A Gaussian bent by coupling layers, $x = \mu + L f^{-1}(\epsilon)$.

    Args:
        gaussian: Gives $\mu$ and $L$: what is left to bend is white.
        layers: Stacked; they compose $f$, from a value towards the noise.
        condition: What the layers see besides the value.
    """

    gaussian: FullGaussian
    layers: Coupling
    condition: Float[Array, " condition"]

    def sample(self, *, key: Key) -> Float[Array, " size"]:
        """Draw by reparametrisation, so that gradients reach all parameters."""
        return self.sample_and_log_prob(key=key)[0]

    def log_prob(self, value: Num[Array, "..."]) -> Scalar:
        """Evaluate the log-density at a value."""
        noise, log_slope = self._through(self.gaussian.whiten(value), inverse=False)
        return standard_log_prob(noise) + log_slope - self.gaussian.log_volume()

    def sample_and_log_prob(self, *, key: Key) -> tuple[Float[Array, " size"], Scalar]:
        """Draw one value with its log-density, in one pass through the layers."""
        mean = self.gaussian.mean
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        white, log_slope = self._through(noise, inverse=True)
        log_prob = standard_log_prob(noise) - log_slope - self.gaussian.log_volume()
        return self.gaussian.colour(white), log_prob

    def _through(
        self, value: Float[Array, " size"], *, inverse: bool
    ) -> tuple[Float[Array, " size"], Scalar]:
        """Go through all layers: a loop compiles once, however many there are."""
        arrays, rest = eqx.partition(self.layers, eqx.is_array)

        def step(value: Float[Array, " size"], arrays: Coupling):
            layer = eqx.combine(arrays, rest)
            return (layer.inverse if inverse else layer)(value, self.condition)

        value, log_slopes = jax.lax.scan(step, value, arrays, reverse=inverse)
        return value, log_slopes.sum()


def bend(
    gaussian: FullGaussian, layers: Coupling | None, condition: Float[Array, " condition"]
) -> FullGaussian | Flow:
    """Bend a Gaussian by coupling layers; without any it stays as it is."""
    return gaussian if layers is None else Flow(gaussian, layers, condition)


def couplings(size: int, condition_size: int, *, width: int, depth: int, key: Key) -> Coupling:
    """Make the coupling layers of a flow, stacked."""

    def one(key: Key) -> Coupling:
        return Coupling(size, condition_size, width=width, depth=depth, key=key)

    return eqx.filter_vmap(one)(jax.random.split(key, _NUM_LAYERS))
