"""The capacity of a discrete memoryless channel, with certified bounds.

NumPy in double precision: an independent reference that shares no code with the estimates.
"""

import enum
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from empowerment.errors import NotConvergedError

_TAILS = 6.0
"""Standard deviations at which the noise is truncated; the tails weigh 2e-9."""

_OUTPUT_SPACING = 1.0
"""Standard deviations between two outputs. Replacing the integral over a Gaussian by a sum
has an error of 2 exp(-2 pi^2 / spacing^2), here 5e-9; the measured error of a capacity is at
most 3e-4 nats, and 1e-5 at a spacing of 0.7."""

_TINY = np.finfo(float).tiny


class Stopped(enum.Enum):
    """The reason why an iteration stopped; the values are readable messages."""

    CONVERGED = "the certified bounds agree to within the tolerance"
    ITERATIONS = "the largest number of iterations was reached"


@dataclass(frozen=True)
class Capacity:
    """A capacity in nats, with proven bounds.

    Attributes:
        value: The best estimate.
        lower: The lower bound: the information that `source` carries.
        upper: The upper bound, which no source exceeds.
        source: The input probabilities that attain `lower`.
        iterations: The number of iterations.
        stopped: The reason for stopping.
    """

    value: float
    lower: float
    upper: float
    source: Float[np.ndarray, " inputs"]
    iterations: int
    stopped: Stopped


@runtime_checkable
class Channel(Protocol):
    """A memoryless channel with finitely many inputs."""

    @property
    def num_inputs(self) -> int:
        """The number of inputs."""
        ...

    def divergence(self, source: Float[np.ndarray, " inputs"]) -> Float[np.ndarray, " inputs"]:
        r"""Compute $D_i = \mathrm{KL}(p(y|i)\,\|\,\sum_j s_j\,p(y|j))$ for each input $i$."""
        ...


class DenseChannel:
    """A discrete memoryless channel, given by its transition matrix.

    Args:
        matrix: The probability of each output (column) given each input (row).
    """

    def __init__(self, matrix: Float[np.ndarray, "inputs outputs"]):
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(
                f"Expected a channel to be a table of inputs by outputs; got shape {matrix.shape}."
            )
        if not (np.all(matrix >= 0) and np.allclose(matrix.sum(axis=1), 1, atol=1e-5)):
            raise ValueError(
                "Expected each row of a channel to be probabilities that sum to one; got rows "
                f"that sum to {matrix.sum(axis=1).min()} at least and a smallest entry of "
                f"{matrix.min()}."
            )
        self.matrix = matrix / matrix.sum(axis=1, keepdims=True)
        self._negative_entropy = _x_log_x(self.matrix).sum(axis=1)

    @property
    def num_inputs(self) -> int:
        """The number of rows."""
        return len(self.matrix)

    def divergence(self, source: Float[np.ndarray, " inputs"]) -> Float[np.ndarray, " inputs"]:
        """Compute the divergence of each row from the output marginal."""
        return self._negative_entropy - self.matrix @ _log(source @ self.matrix)


class AdditiveChannel:
    r"""A channel from points in one or two dimensions through independent Gaussian noise.

    The output is a product grid, so the kernel is a product of one factor per axis and
    each iteration is two small matrix products.

    Args:
        inputs: The input points.
        scale: The standard deviation of the noise along each axis.
        spacing: Standard deviations between two outputs.
    """

    def __init__(
        self,
        inputs: Float[np.ndarray, "inputs axes"],
        scale: Float[np.ndarray, " axes"],
        spacing: float = _OUTPUT_SPACING,
    ):
        if inputs.ndim != 2 or inputs.shape[1] not in (1, 2) or len(inputs) == 0:
            raise ValueError(
                f"Expected inputs to be points on one or two axes; got shape {inputs.shape}."
            )
        if scale.shape != inputs.shape[1:] or not np.all(scale > 0):
            raise ValueError(
                f"Expected scale to be positive on each axis of the inputs; got {scale.tolist()}."
            )
        self._scale = np.asarray(scale, dtype=np.float64)
        points = np.asarray(inputs, dtype=np.float64) / self._scale
        self._outputs = [_lattice(axis, spacing) for axis in points.T]
        self._first, self._second = self._factors(points)
        self._negative_entropy = self._kernel_entropy(self._first, self._second)

    @property
    def num_inputs(self) -> int:
        """The number of points."""
        return len(self._first)

    def divergence(self, source: Float[np.ndarray, " inputs"]) -> Float[np.ndarray, " inputs"]:
        """Compute the divergence of each point's output from the output marginal."""
        log_output = _log((self._first * source[:, None]).T @ self._second)
        return self._negative_entropy - _mean(self._first, log_output, self._second)

    def divergence_at(
        self,
        points: Float[np.ndarray, "points axes"],
        source: Float[np.ndarray, " inputs"],
    ) -> Float[np.ndarray, " points"]:
        """Compute the divergence at points that need not be inputs.

        Its maximum over a set bounds the capacity of all inputs in the set.
        """
        log_output = _log((self._first * source[:, None]).T @ self._second)
        first, second = self._factors(points / self._scale)
        return self._kernel_entropy(first, second) - _mean(first, log_output, second)

    def _factors(
        self, points: Float[np.ndarray, "points axes"]
    ) -> tuple[Float[np.ndarray, "points first"], Float[np.ndarray, "points second"]]:
        """Tabulate the noise along each axis around each point."""
        factors = []
        for position, outputs in zip(points.T, self._outputs, strict=True):
            kernel = np.exp(-0.5 * (position[:, None] - outputs) ** 2)
            factors.append(kernel / kernel.sum(axis=1, keepdims=True))
        if len(factors) == 1:
            factors.append(np.ones((len(points), 1)))
        return factors[0], factors[1]

    @staticmethod
    def _kernel_entropy(
        first: Float[np.ndarray, "points first"], second: Float[np.ndarray, "points second"]
    ) -> Float[np.ndarray, " points"]:
        """Compute the negative entropy of a product kernel: the sum over its factors."""
        return _x_log_x(first).sum(axis=1) + _x_log_x(second).sum(axis=1)


def blahut_arimoto(
    channel: Channel | Float[np.ndarray, "inputs outputs"],
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 100_000,
    throw: bool = True,
) -> Capacity:
    r"""Find the capacity of a channel, $\max_s \sum_i s_i D_i(s)$.

    Any source $s$ proves $\sum_i s_i D_i \le C \le \max_i D_i$ (Blahut, 1972; Arimoto,
    1972); the best of both bounds are kept. The plain iteration $s_i \leftarrow s_i
    \exp(D_i) / Z$ is mirror ascent with step one. Here it is given momentum (Hanzely,
    Richtarik and Xiao, 2021), and starts anew whenever the information falls: about ten
    times fewer iterations to a gap of 0.001 nats, and the bounds prove the result all
    the same.

    Args:
        channel: A table of probabilities, inputs by outputs, or a channel object.
        tolerance: The largest difference of the bounds, in nats.
        max_iterations: When to give up.
        throw: Whether to raise if the bounds did not meet; otherwise `stopped` tells.

    Returns:
        The capacity, in the middle of its bounds.

    Raises:
        NotConvergedError: If the bounds do not meet within `max_iterations`.
    """
    if isinstance(channel, np.ndarray):
        channel = DenseChannel(channel)
    if not tolerance > 0:
        raise ValueError(f"Expected tolerance to be positive; got {tolerance}.")

    main = np.full(channel.num_inputs, 1.0 / channel.num_inputs)
    log_ahead, weight, previous = np.log(main), 1.0, -np.inf
    best_source, lower, upper = main, -np.inf, np.inf
    stopped, iteration = Stopped.ITERATIONS, 0
    while iteration < max_iterations:
        iteration += 1
        source = (1 - weight) * main + weight * np.exp(log_ahead)
        divergence = channel.divergence(source)
        information = float(source @ divergence)
        upper = min(upper, float(divergence.max()))
        if information > lower:
            best_source, lower = source, information
        if upper - lower <= tolerance:
            stopped = Stopped.CONVERGED
            break
        if information < previous:  # Momentum went too far: forget it.
            log_ahead, weight, previous = _log(main), 1.0, -np.inf
            continue
        previous = information
        log_ahead = log_ahead + (divergence - divergence.max()) / weight
        log_ahead -= np.log(np.exp(log_ahead - log_ahead.max()).sum()) + log_ahead.max()
        main = (1 - weight) * main + weight * np.exp(log_ahead)
        weight = 2 / (2 / weight + 1)

    lower, upper = max(lower, 0.0), max(upper, 0.0)
    if throw and stopped is not Stopped.CONVERGED:
        raise NotConvergedError(
            f"Expected the bounds on the capacity to agree to within {tolerance} nats; got "
            f"{lower} and {upper} after {iteration} iterations. Allow more iterations or a "
            "larger tolerance."
        )
    return Capacity(0.5 * (lower + upper), lower, upper, best_source, iteration, stopped)


def _lattice(positions: Float[np.ndarray, " points"], spacing: float) -> np.ndarray:
    """Return a lattice over the positions and the tails around them."""
    low, high = positions.min() - _TAILS, positions.max() + _TAILS
    return np.linspace(low, high, int(np.ceil((high - low) / spacing)) + 1)


def _mean(
    first: Float[np.ndarray, "points first"],
    table: Float[np.ndarray, "first second"],
    second: Float[np.ndarray, "points second"],
) -> Float[np.ndarray, " points"]:
    """Average a table over the outputs of each point."""
    return np.einsum("ij,ij->i", first @ table, second)


def _log(values: np.ndarray) -> np.ndarray:
    """Compute logarithms, with zeros replaced by the smallest normal number."""
    return np.log(np.maximum(values, _TINY))


def _x_log_x(values: np.ndarray) -> np.ndarray:
    """Compute x log x, zero at zero."""
    return values * _log(values)
