"""Engine that samples actions from the policy, to collect data."""

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle
from empowerment.controller.numpy_engine import NumpyEngine


class SamplingEngine(NumpyEngine):
    """Engine in NumPy that draws each action from the policy instead of taking its mean.

    Args:
        bundle: The controller bundle.
        seed: Random seed.
    """

    def __init__(self, bundle: Bundle, *, seed: int):
        super().__init__(bundle, sample=True)
        self._random = np.random.default_rng(seed)
        self._is_discrete = bool(bundle.description.choices)

    def run(self, *, seen: bool) -> bool:
        """Make a step; see `AbstractEngine.run`."""
        self._draw()
        return super().run(seen=seen)

    def begin(self, observations: Float[np.ndarray, "first observation"]) -> bool:
        """Make the first step of a filter; see `AbstractEngine.begin`."""
        self._draw()
        return super().begin(observations)

    def _draw(self) -> None:
        assert self.noise is not None
        draw = self._random.gumbel if self._is_discrete else self._random.normal
        self.noise[...] = draw(size=self.noise.shape)
