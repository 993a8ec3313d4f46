"""One step in NumPy: buffers made beforehand, as few calls as there can be."""

import math

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import LEAST_SCALE, Bundle, Description
from empowerment.controller.folding import Layer, fold

NUM_KEPT = 100
"""Steps that are kept, to be looked at after a fault."""

LARGEST = 1e30
"""Sums of squares above this are not trusted: something overflows."""


class NumpyEngine:
    """Computes steps by NumPy; the state is in `memory`, which the caller may overwrite.

    Args:
        bundle: The controller.

    Attributes:
        observation: What is observed, to be there before `run`.
        memory: What is carried from step to step, see `Description.memory_size`.
        action: The last action, physical and within its limits.
        observations: Of the last steps, in turn.
        memories: Of the last steps, in turn.
        rows: Of the observations.
    """

    name = "numpy"

    def __init__(self, bundle: Bundle):
        about = bundle.description
        size = self._size = about.latent_size
        folded = fold(bundle)
        self._make_buffers(about)
        # The memory and a one for the biases: both transition and policy take it as it is.
        self._full[-1] = 1.0
        self.memory = self._full[:-1]
        # Made beforehand: making a view takes as long as filling it.
        self.rows = list(self.observations)
        self._memory_rows = list(self.memories)
        self.observation = self.rows[0]
        self.action[:] = bundle.idle
        self._idle = bundle.idle
        self._latent = self._full[1 : 1 + size]
        self._relative = self._full[1 + size : -1]
        self._low, self._high = bundle.limits
        self._middle = bundle.middle
        self._half = (self._high - self._low) * np.float32(0.5)
        self._raw = np.empty(about.action_size, np.float32)
        self._inputs = self._full[1:]
        if size:
            self._make_filter(bundle, folded)
            columns = self._inputs.size
            self._policy = _Chain(folded["policy"], self._raw, columns, inputs=self._inputs)
        else:
            self._policy = _Chain(folded["policy"], self._raw)
            self._make_features(bundle)

    def step(self, place: int) -> bool | None:
        """Make a step upon the observation in a row, and keep the memory there.

        Args:
            place: The row.

        Returns:
            As `run`, or None if nothing was done: the observation is to be looked at closely.
        """
        row = self.observation = self.rows[place]
        # If one number is not finite, neither is the sum of squares; vdot never warns.
        if not np.vdot(row, row) < LARGEST:
            return None
        used = self.run(seen=True)
        self._memory_rows[place][...] = self.memory
        return used

    def keep(self, place: int) -> None:
        """Keep the memory in a row."""
        self._memory_rows[place][...] = self.memory

    def run(self, *, seen: bool) -> bool:
        """Make a step upon `observation`, or upon nothing.

        Where the observation cannot be used, the filter predicts alone; without a filter, or if
        that comes to nothing either, memory and action stay as they are.

        Args:
            seen: Whether all of the observation is there and finite.

        Returns:
            Whether the observation was used.
        """
        started = self._full[0] > 0.5
        if not seen and not (self._size and started):
            return False
        self._before[...] = self._full
        if not self._size:
            self._see_features()
        elif started:
            self._advance(seen=seen)
        else:
            self._recognise(self.observation[None])
        if self._act():
            return seen
        # What was measured may be out of all reason: then it does not count.
        if seen and started:
            self.run(seen=False)
        return False

    def begin(self, observations: Float[np.ndarray, "first observation"]) -> bool:
        """Make the first step of a filter upon the first observations.

        Args:
            observations: As many as the first state is recognised from; fewer are repeated.

        Returns:
            Whether the observations were used.
        """
        self._before[...] = self._full
        self._recognise(observations)
        return self._act()

    def load(self, memory: Float[np.ndarray, " memory"]) -> None:
        """Go on from what is remembered of another step."""
        self.memory[...] = memory
        if memory[0] > 0.5:
            self._tell()
        else:
            self.action[...] = self._idle

    def set_action(self, action: Float[np.ndarray, " action"]) -> None:
        """Note that another action is done than the one that was given."""
        self.action[...] = action
        np.subtract(action, self._middle, self._relative)

    def _act(self) -> bool:
        """Ask the policy; undo everything if what comes out is not finite."""
        full = self._full
        self._policy.run()
        np.tanh(self._raw, self._raw)
        np.multiply(self._raw, self._half, self._relative)
        # If one number is not finite, neither is the sum.
        if not np.vdot(full, full) < LARGEST:
            full[...] = self._before
            return False
        full[0] = 1.0
        self._tell()
        return True

    def _tell(self) -> None:
        """Give the action in its own units, and within its limits however it was rounded."""
        np.add(self._relative, self._middle, self.action)
        np.maximum(self.action, self._low, out=self.action)
        np.minimum(self.action, self._high, out=self.action)

    def _recognise(self, observations: Float[np.ndarray, "rows observation"]) -> None:
        """Set the state of the filter from the first observations."""
        shifted = observations - self._offset
        self._recognition.inputs[:-1] = np.resize(shifted, self._recognition.inputs.size - 1)
        self._recognition.run()
        self._start.run()

    def _make_buffers(self, about: Description) -> None:
        self._full = np.zeros(about.memory_size + 1, np.float32)
        self._before = np.zeros_like(self._full)
        self.action = np.empty(about.action_size, np.float32)
        self.observations = np.zeros((NUM_KEPT, about.observation_size), np.float32)
        self.memories = np.zeros((NUM_KEPT, about.memory_size), np.float32)

    def _make_filter(self, bundle: Bundle, folded: dict[str, list[Layer]]) -> None:
        size, arrays = self._size, bundle.arrays
        self._residual = bundle.description.residual
        self._softplus = bundle.description.scales == "softplus"
        self._offset = arrays["observations.offset"]
        # What comes of transition and measurement, the two raw scales beside each other.
        output = np.empty(4 * size, np.float32)
        self._change, self._raw_scales = output[:size], output[size : 3 * size]
        self._measured = output[3 * size :]
        self._own, self._other = output[size : 2 * size], output[2 * size : 3 * size]
        self._transition = _Chain(
            folded["transition"], output[: 2 * size], self._inputs.size, inputs=self._inputs
        )
        self._measurement = _Chain(swapped(folded["measurement"]), output[2 * size :])
        self._shifted = self._measurement.inputs[:-1]
        self._predicted = np.empty(size, np.float32)
        self._zeros = np.zeros(2 * size, np.float32)
        self._least = np.full(2 * size, LEAST_SCALE, np.float32)
        self._least_square = self._least**2
        self._start = _Chain(folded["start"], self._latent)
        self._recognition = _Chain(folded["recognition"], self._start.inputs[:-1])

    def _advance(self, *, seen: bool) -> None:
        """Predict, measure, and take the product."""
        self._transition.run()
        predicted, latent = self._predicted, self._latent
        if self._residual:
            np.add(latent, self._change, predicted)
        else:
            predicted[...] = self._change
        if not seen:
            latent[...] = predicted
            return
        np.subtract(self.observation, self._offset, self._shifted)
        self._measurement.run()
        scales, own, other = self._raw_scales, self._own, self._other
        if self._softplus:
            np.logaddexp(scales, self._zeros, scales)
            np.add(scales, self._least, scales)
            np.multiply(scales, scales, scales)
        else:
            np.multiply(scales, scales, scales)
            np.add(scales, self._least_square, scales)
        np.add(own, other, other)
        np.divide(own, other, own)
        np.subtract(self._measured, predicted, latent)
        np.multiply(latent, own, latent)
        np.add(latent, predicted, latent)

    def _make_features(self, bundle: Bundle) -> None:
        about = bundle.description
        self._offset = bundle.arrays["states.centre"]
        self._shifted = np.empty_like(self.observation)
        self._angles, self._kept, self._places, place = [], [], [], 0
        for axis in range(about.observation_size):
            if axis in about.angles:
                self._angles.append((axis, place))
                place += 2
            else:
                self._kept.append(axis)
                self._places.append(place)
                place += 1

    def _see_features(self) -> None:
        """Scale the observation to order one; an angle becomes cosine and sine."""
        features = self._policy.inputs
        np.subtract(self.observation, self._offset, self._shifted)
        if self._angles:
            features[self._places] = self._shifted[self._kept]
            for axis, place in self._angles:
                angle = float(self.observation[axis])
                features[place], features[place + 1] = math.cos(angle), math.sin(angle)
        else:
            features[:-1][...] = self._shifted


def _relu(value: np.ndarray, out: np.ndarray) -> None:
    np.maximum(value, _ZERO, out=out)


_ZERO = np.float32(0)
_IN_PLACE = {"identity": None, "relu": _relu, "tanh": np.tanh}


class _Chain:
    """A network whose layers write into the inputs of the next; a last input of one is the bias.

    Args:
        layers: The layers.
        output: What the last one writes to.
        columns: Inputs of the first, where there are more than it takes: the rest is not used.
        inputs: What the first one reads, with the one at its end.
    """

    def __init__(
        self,
        layers: list[Layer],
        output: Float[np.ndarray, " output"],
        columns: int | None = None,
        inputs: Float[np.ndarray, " inputs"] | None = None,
    ):
        self._steps = []
        given = inputs
        for index, layer in enumerate(layers):
            out_size, in_size = layer.weight.shape
            width = columns if index == 0 and columns is not None else in_size + 1
            weight = np.zeros((width, out_size), np.float32)
            weight[:in_size] = layer.weight.T
            weight[-1] = layer.bias
            if given is None:
                given = np.ones(width, np.float32)
            if index == 0:
                self.inputs = given
            following = None
            target = output
            if index < len(layers) - 1:
                following = np.ones(out_size + 1, np.float32)
                target = following[:-1]
            self._steps.append((given.dot, weight, target, _IN_PLACE[layer.activation]))
            given = following

    def run(self) -> None:
        """Compute the output from the inputs."""
        for dot, weight, target, activation in self._steps:
            dot(weight, target)
            if activation is not None:
                activation(target, out=target)


def swapped(layers: list[Layer]) -> list[Layer]:
    """Give a network with the second half of its outputs before the first."""
    last = layers[-1]
    rows = np.roll(np.arange(len(last.bias)), len(last.bias) // 2)
    return [*layers[:-1], Layer(last.weight[rows], last.bias[rows], last.activation)]
