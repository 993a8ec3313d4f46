"""Monitor of the model: whether observations are what the filter expects of them."""

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle, Vector
from empowerment.controller.description import MonitorLimits
from empowerment.controller.engine import AbstractEngine
from empowerment.controller.folding import fold
from empowerment.controller.numpy_engine import Chain

AFTER_MISSING = 2
"""Observations that are not judged after each that was missing, up to those at the start: without
measurements the prediction becomes worse."""


def per_spread(bundle: Bundle) -> Vector:
    """Return what one unit of each axis of an observation is in units of the spread."""
    arrays = bundle.arrays
    return 1 / (arrays["observations.scale"] * arrays["innovations.scale"].astype(float))


class Innovations:
    """Differences of observations from what the filter expected, in units of their usual spread.

    Args:
        bundle: A controller bundle with a monitor.
        engine: The engine whose filter predicts.
    """

    def __init__(self, bundle: Bundle, engine: AbstractEngine):
        self._offset = bundle.arrays["observations.offset"].astype(float)
        self._per_unit = per_spread(bundle)
        self._predicted = engine.predicted
        self._expected = np.empty(self._offset.size, np.float32)
        self._decoder = Chain(fold(bundle)["decoder"], self._expected)
        self._state = self._decoder.inputs[:-1]

    def __call__(self, observation: Vector) -> Float[np.ndarray, " observation"]:
        r"""Compute $(x - \mathrm{dec}(\mu_\mathrm{trans})) / s$ of the step that was just made."""
        self._state[...] = self._predicted
        self._decoder.run()
        innovation = np.subtract(observation, self._offset)
        np.multiply(innovation, self._per_unit, innovation)
        return np.subtract(innovation, self._expected, innovation)


class Smoothed:
    r"""Squared innovations of each axis, smoothed over time.

    $l \leftarrow l + w\, (\min(e^2, m) - l)$, where $e$ is the innovation, $m$ the largest square
    that counts, and $w$ the weight.

    Args:
        limits: Says how.
        size: Number of axes of an observation.

    Attributes:
        levels: The smoothed squares; they begin with zero.
    """

    def __init__(self, limits: MonitorLimits, size: int):
        self._weight, self._settling, self._most = limits.weight, limits.settling, limits.most
        self.levels = np.zeros(size)
        self.clear()

    def clear(self) -> None:
        """Begin."""
        self._wait = self._settling
        self.levels.fill(0.0)

    def miss(self) -> None:
        """Register that an observation is missing."""
        self._wait = min(self._wait + AFTER_MISSING, self._settling)

    def is_settling(self) -> bool:
        """Register an observation, and return whether it is too early to judge it."""
        if not self._wait:
            return False
        self._wait -= 1
        return True

    def take(self, innovation: Float[np.ndarray, " observation"]) -> float:
        """Add an innovation; return the largest level."""
        levels, change = self.levels, innovation
        np.multiply(innovation, innovation, change)
        np.fmin(change, self._most, change)  # What is not a number is as large as can be.
        np.subtract(change, levels, change)
        np.multiply(change, self._weight, change)
        np.add(levels, change, levels)
        return np.maximum.reduce(levels)


class Monitor:
    """Judge of each observation after the filter has taken it.

    Args:
        bundle: A controller bundle with a monitor.
        engine: The engine whose filter predicts.
    """

    def __init__(self, bundle: Bundle, engine: AbstractEngine):
        limits = bundle.description.monitor
        assert limits is not None
        self._names = bundle.description.observation_names
        self._innovations = Innovations(bundle, engine)
        self._smoothed = Smoothed(limits, len(self._names))
        self._threshold, self._running = limits.threshold, limits.running
        self.clear()

    @property
    def levels(self) -> Vector:
        """The smoothed squared innovations of each axis."""
        return self._smoothed.levels.copy()

    def clear(self) -> None:
        """Begin again."""
        self._smoothed.clear()
        self._count = 0

    def miss(self) -> None:
        """Register that the observation of a step is missing."""
        self._smoothed.miss()

    def judge(self, observation: Vector) -> str | None:
        """Judge an observation that the filter has just taken.

        Returns:
            Description of the fault, if any.
        """
        if self._smoothed.is_settling():
            return None
        if self._smoothed.take(self._innovations(observation)) <= self._threshold:
            self._count = 0
            return None
        self._count += 1
        if self._count < self._running:
            return None
        name = self._names[int(self._smoothed.levels.argmax())]
        return f"observations are unfamiliar: {name} is not what the model expects"
