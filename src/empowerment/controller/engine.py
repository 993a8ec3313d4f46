"""Abstract base of the engines that compute the steps of a controller."""

import abc
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle, Description, Vector
from empowerment.controller.choices import encode

NUM_KEPT = 100
"""Steps kept in the ring buffers, for the record of a fault."""

LARGEST = 1e30
"""Sums of squares above this count as overflow."""


class AbstractEngine(abc.ABC):
    """State of a controller, and the steps that advance it.

    Args:
        bundle: The controller bundle.
        buffers: Arrays to work in, of the shapes of `buffer_shapes`; engines may share them.

    Attributes:
        name: Name of the engine.
        observation: Input of `run`.
        memory: State carried from step to step, see `Description.memory_size`; may be overwritten.
        action: Last action, in physical units and within its limits; indices if discrete.
        observations: Ring buffer of observations, and a spare row.
        memories: Ring buffer of memories, and a spare row.
        rows: Rows of `observations`.
        predicted: The filter's state as it was predicted in the last step, before the measurement;
            there is no prediction in the first step.
    """

    name: str

    def __init__(self, bundle: Bundle, buffers: Sequence[np.ndarray]):
        size = self._size = bundle.description.latent_size
        self._full, self._before, self.action, self.observations, self.memories = buffers
        # Memory and a final one for the biases: both transition and policy take it as input.
        self._full[-1] = 1.0
        self.memory = self._full[:-1]
        # Views are created in advance: creating one takes as long as filling it.
        self.rows, self._memory_rows = list(self.observations), list(self.memories)
        self.observation = self.rows[0]
        self.predicted = np.zeros(size, np.float32)
        self.action[:] = self._idle = bundle.idle
        self._latent, self._relative = self._full[1 : 1 + size], self._full[1 + size : -1]
        self._low, self._high = bundle.limits
        self._middle = bundle.middle
        self._choices = bundle.description.choices
        self._columns = np.split(self._relative, np.cumsum(self._choices)[:-1].astype(int))

    @abc.abstractmethod
    def step(self, place: int) -> bool | None:
        """Make a step with the observation in a row, and store the memory in the same row.

        Returns:
            As `run`; None if the observation was rejected and must be inspected by the caller.
        """

    @abc.abstractmethod
    def run(self, *, seen: bool) -> bool:
        """Make a step with `observation`, or without one.

        If the observation cannot be used, the filter only predicts; without a filter, or if the
        prediction overflows too, memory and action stay unchanged.

        Args:
            seen: Whether the observation is complete and finite.

        Returns:
            Whether the observation was used.
        """

    @abc.abstractmethod
    def begin(self, observations: Float[np.ndarray, "first observation"]) -> bool:
        """Make the first step of a filter from the initial observations, repeated if too few.

        Returns:
            Whether the observations were used.
        """

    def keep(self, place: int) -> None:
        """Store the memory in a row of the ring buffer."""
        self._memory_rows[place][...] = self.memory

    def load(self, memory: Vector) -> None:
        """Continue from a given memory."""
        self.memory[...] = memory
        if memory[0] > 0.5:
            self._set_action()
        else:
            self.action[...] = self._idle

    def set_action(self, action: Vector) -> None:
        """Replace the action by the one that is applied."""
        self.action[...] = action
        np.subtract(encode(action, self._choices), self._middle, self._relative)

    def _set_action(self) -> None:
        """Set the action from the memory; clip it to its limits, or choose if it is discrete."""
        if self._choices:
            # As `choose` and `encode`, but in place.
            for index, scores in enumerate(self._columns):
                self.action[index] = best = scores.argmax()
                scores.fill(0.0)
                scores[best] = 1.0
            return
        np.add(self._relative, self._middle, self.action)
        np.maximum(self.action, self._low, out=self.action)
        np.minimum(self.action, self._high, out=self.action)


def buffer_shapes(about: Description) -> list[tuple[int, ...]]:
    """Return the shapes of memory with a final one, its backup, action and both ring buffers."""
    full, rows = (about.memory_size + 1,), NUM_KEPT + 1
    kept = (rows, about.observation_size), (rows, about.memory_size)
    return [full, full, (about.action_size,), *kept]
