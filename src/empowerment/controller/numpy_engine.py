"""Engine in NumPy: preallocated buffers and as few calls as possible."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle, Vector
from empowerment.controller.engine import (
    LARGEST,
    NUM_KEPT as NUM_KEPT,
    AbstractEngine,
    buffer_shapes,
)
from empowerment.controller.folding import Layer, fold


class NumpyEngine(AbstractEngine):
    """Engine in NumPy; its buffers are new by default.

    Attributes:
        noise: Where actions are sampled, the noise of the next one: standard normal for each axis,
            or standard Gumbel for each choice.
    """

    name = "numpy"

    def __init__(
        self,
        bundle: Bundle,
        buffers: Sequence[np.ndarray] | None = None,
        *,
        sample: bool = False,
    ):
        about, folded = bundle.description, fold(bundle, scales=sample)
        if buffers is None:
            buffers = [np.zeros(shape, np.float32) for shape in buffer_shapes(about)]
        super().__init__(bundle, buffers)
        self._half = (self._high - self._low) * np.float32(0.5)
        outputs = np.empty(len(folded["policy"][-1].bias), np.float32)
        self._raw, self._spread = outputs[: about.encoded_size], outputs[about.encoded_size :]
        self.noise = np.zeros(about.encoded_size, np.float32) if sample else None
        self._log_scales, self._uniform_share = about.log_scales, about.uniform_share
        self._inputs = self._full[1:]
        if about.latent_size:
            self._make_filter(bundle, folded)
            columns = self._inputs.size
            self._policy = Chain(folded["policy"], outputs, columns, inputs=self._inputs)
        else:
            self._policy = Chain(folded["policy"], outputs)
            self._make_features(bundle)

    def step(self, place: int) -> bool | None:
        """Make a step with the observation in a row; see `AbstractEngine.step`."""
        row = self.observation = self.rows[place]
        # The sum of squares is finite only if every number is; vdot never warns.
        if not np.vdot(row, row) < LARGEST:
            return None
        used = self.run(seen=True)
        self._memory_rows[place][...] = self.memory
        return used

    def run(self, *, seen: bool) -> bool:
        """Make a step with or without `observation`; see `AbstractEngine.run`."""
        started = self._full[0] > 0.5
        if not seen and not (self._size and started):
            return False
        self._before[...] = self._full
        if not self._size:
            self._compute_features()
        elif started:
            self._advance(seen=seen)
        else:
            self._recognise(self.observation[None])
        if self._act():
            return seen
        # The measurement may have overflowed: predict without it.
        if seen and started:
            self.run(seen=False)
        return False

    def begin(self, observations: Float[np.ndarray, "first observation"]) -> bool:
        """Make the first step of a filter; see `AbstractEngine.begin`."""
        self._before[...] = self._full
        self._recognise(observations)
        return self._act()

    def _act(self) -> bool:
        """Evaluate the policy; restore the memory if the result is not finite."""
        full = self._full
        self._policy.run()
        if self.noise is not None:
            self._perturb(self.noise)
        if self._choices:
            self._relative[...] = self._raw  # Logits, until they are known to be finite.
        else:
            np.tanh(self._raw, self._raw)
            np.multiply(self._raw, self._half, self._relative)
        if not np.vdot(full, full) < LARGEST:
            full[...] = self._before
            return False
        full[0] = 1.0
        self._set_action()
        return True

    def _perturb(self, noise: Vector) -> None:
        """Add noise: in the policy's scale, or to the logarithms of the shares of choices."""
        raw = self._raw
        if not self._choices:
            low, high = self._log_scales
            share = 1 / (1 + np.exp(-self._spread) * (-high / low))
            raw += np.exp(low + (high - low) * share) * noise
            return
        for scores in np.split(raw, np.cumsum(self._choices)[:-1]):
            likely = np.exp(scores - scores.max())
            likely *= (1 - self._uniform_share) / likely.sum()
            np.log(likely + self._uniform_share / len(scores), scores)
        raw += noise

    def _recognise(self, observations: Float[np.ndarray, "rows observation"]) -> None:
        """Set the filter's state from the initial observations."""
        shifted = observations - self._offset
        self._recognition.inputs[:-1] = np.resize(shifted, self._recognition.inputs.size - 1)
        self._recognition.run()
        self._start.run()

    def _make_filter(self, bundle: Bundle, folded: dict[str, list[Layer]]) -> None:
        size, arrays = self._size, bundle.arrays
        self._residual = bundle.description.residual
        self._softplus = bundle.description.scales == "softplus"
        self._offset = arrays["observations.offset"]
        # Outputs of transition and measurement, with the two raw scales adjacent.
        output = np.empty(4 * size, np.float32)
        self._change, self._raw_scales = output[:size], output[size : 3 * size]
        self._measured = output[3 * size :]
        self._own, self._other = output[size : 2 * size], output[2 * size : 3 * size]
        self._transition = Chain(
            folded["transition"], output[: 2 * size], self._inputs.size, inputs=self._inputs
        )
        self._measurement = Chain(swapped(folded["measurement"]), output[2 * size :])
        self._shifted = self._measurement.inputs[:-1]
        self._zeros = np.zeros(2 * size, np.float32)
        self._least = np.full(2 * size, bundle.description.least_scale, np.float32)
        self._least_square = self._least**2
        self._start = Chain(folded["start"], self._latent)
        self._recognition = Chain(folded["recognition"], self._start.inputs[:-1])

    def _advance(self, *, seen: bool) -> None:
        """Predict, and combine with the measurement: the product of two Gaussians."""
        self._transition.run()
        predicted, latent = self.predicted, self._latent
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

    def _compute_features(self) -> None:
        """Shift the observation; an angle becomes cosine and sine."""
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


class Chain:
    """A network whose layers write into the inputs of the next; the last input is a one (bias).

    Args:
        layers: The layers.
        output: Output of the last layer.
        columns: Number of inputs if there are more than the first layer takes; the rest is ignored.
        inputs: Inputs of the first layer, ending in a one.
    """

    def __init__(
        self,
        layers: list[Layer],
        output: Float[np.ndarray, " output"],
        columns: int | None = None,
        inputs: Float[np.ndarray, " inputs"] | None = None,
    ):
        self._steps = []
        source = inputs
        for index, layer in enumerate(layers):
            out_size, in_size = layer.weight.shape
            width = columns if index == 0 and columns is not None else in_size + 1
            weight = np.zeros((width, out_size), np.float32)
            weight[:in_size] = layer.weight.T
            weight[-1] = layer.bias
            if source is None:
                source = np.ones(width, np.float32)
            if index == 0:
                self.inputs = source
            following = None
            target = output
            if index < len(layers) - 1:
                following = np.ones(out_size + 1, np.float32)
                target = following[:-1]
            self._steps.append((source.dot, weight, target, _IN_PLACE[layer.activation]))
            source = following

    def run(self) -> None:
        """Compute the output from the inputs."""
        for dot, weight, target, activation in self._steps:
            dot(weight, target)
            if activation is not None:
                activation(target, out=target)


def swapped(layers: list[Layer]) -> list[Layer]:
    """Return a network with the two halves of its outputs exchanged."""
    last = layers[-1]
    rows = np.roll(np.arange(len(last.bias)), len(last.bias) // 2)
    return [*layers[:-1], Layer(last.weight[rows], last.bias[rows], last.activation)]
