"""Engine compiled by numba, equal to the NumPy engine up to rounding."""

import inspect
import itertools
import math
from typing import Any

import numba  # pyright: ignore[reportMissingImports]
import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle
from empowerment.controller.engine import LARGEST, NUM_KEPT, AbstractEngine, buffer_shapes
from empowerment.controller.folding import fold
from empowerment.controller.numpy_engine import NumpyEngine, swapped

_ACTIVATIONS = {"identity": 0, "relu": 1, "tanh": 2}
_NETWORKS = ("transition", "measurement", "policy")
# Single precision: a double would promote every expression.
_ZERO, _ONE, _TWO, _EIGHTH = (np.float32(x) for x in (0, 1, 2, 0.125))
_NINE = np.float32(9.0)  # Beyond it tanh rounds to one.
_A0, _A1, _A2, _B1, _B2 = (np.float32(x) for x in (10395, 1260, 21, 4725, 210))
_E3, _E4, _E5, _E6, _E7 = (1 / math.factorial(n) for n in range(3, 8))
_L3, _L5, _L7, _L9, _L11, _L13 = (1 / n for n in range(3, 14, 2))
_LARGEST = np.float32(LARGEST)

_STEP, _SEEN, _PREDICT = 0, 1, 2  # Check the observation first, trust it, or ignore it.


def _compile(function: Any) -> Any:
    """Compile a function, without the shape checks that tests wrap around it.

    Nothing is allocated, hence no reference counting (`_nrt`), which would cost a quarter of the
    time.
    """
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}
    return numba.njit(**options)(inspect.unwrap(function))


class NumbaEngine(AbstractEngine):
    """Engine in one compiled function; the first step after a restart is computed in NumPy."""

    name = "numba"

    def __init__(self, bundle: Bundle):
        self._arena, self._layout, (scratch, *buffers) = _allocate(bundle)
        super().__init__(bundle, buffers)
        self.predicted = scratch[: self._size]
        self._first = NumpyEngine(bundle, buffers)
        # Compile now rather than in the first cycle.
        _step(self._arena, self._layout, NUM_KEPT, _STEP)
        self.load(np.zeros_like(self.memory))

    def step(self, place: int) -> bool | None:
        """Make a step with the observation in a row; see `AbstractEngine.step`."""
        self.observation = self.rows[place]
        if self._full[0] < 0.5:
            return self._first.step(place)
        return True if _step(self._arena, self._layout, place, _STEP) else None

    def run(self, *, seen: bool) -> bool:
        """Make a step with or without `observation`; see `AbstractEngine.run`."""
        if self._full[0] < 0.5:
            self._first.observation = self.observation
            return self._first.run(seen=seen)
        self.rows[NUM_KEPT][...] = self.observation  # Where the compiled step can read it.
        if seen and _step(self._arena, self._layout, NUM_KEPT, _SEEN):
            return True
        if self._size:
            _step(self._arena, self._layout, NUM_KEPT, _PREDICT)
        return False

    def begin(self, observations: Float[np.ndarray, "first observation"]) -> bool:
        """Make the first step of a filter; see `AbstractEngine.begin`."""
        return self._first.begin(observations)


def _allocate(bundle: Bundle) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Put weights and buffers into one array: each argument of a compiled function costs time.

    Returns:
        The array, its layout, and as views the scratch and the buffers.
    """
    about, folded = bundle.description, fold(bundle)
    table, parts, place = [], [], 0
    for name in _NETWORKS:
        layers = folded.get(name, [])
        if name == "measurement" and layers:  # Its raw scales follow those of the transition.
            layers = swapped(layers)
        for layer in layers:
            out_size, in_size = layer.weight.shape
            table.append((in_size, out_size, _ACTIVATIONS[layer.activation], place))
            parts += [layer.weight.T.ravel(), layer.bias]
            place += layer.weight.size + layer.bias.size
    offset = bundle.arrays["observations.offset" if about.latent_size else "states.centre"]
    low, high = bundle.limits
    parts += [offset, bundle.middle, (high - low) * np.float32(0.5), low, high]
    widest = max(max(sizes[:2]) for sizes in table)
    shapes = [(4 * about.latent_size + 2 * widest,), *buffer_shapes(about)]
    weights = np.concatenate(parts)
    places = weights.size + np.cumsum([0, *map(math.prod, shapes)])
    arena = np.concatenate([weights, np.zeros(places[-1] - weights.size, np.float32)])
    spans = zip(itertools.pairwise(places), shapes, strict=True)
    views = [arena[begin:end].reshape(shape) for (begin, end), shape in spans]
    layout = [
        about.latent_size,
        about.observation_size,
        about.action_size,
        about.residual,
        about.scales == "softplus",
        place,
        *np.cumsum([len(folded.get(name, ())) for name in _NETWORKS]),
        *places[:-1],
        np.float64(about.least_scale).view(np.int64),  # Its bits, read back as a double.
        *(axis in about.angles for axis in range(about.observation_size)),
        *(about.choices or [0] * about.action_size),
        *np.ravel(table),
    ]
    return arena, np.array(layout, np.int64), views


@_compile
def _tanh(x: Any) -> Any:
    """Compute tanh by a continued fraction at an eighth, and doubling three times.

    Only divisions and multiplications, so that it is vectorised. Doubling does not amplify the
    error.
    """
    y = min(max(x, -_NINE), _NINE) * _EIGHTH
    z = y * y
    t = y * (_A0 + z * (_A1 + z * _A2)) / (_A0 + z * (_B1 + z * (_B2 + z)))
    t = _TWO * t / (_ONE + t * t)
    t = _TWO * t / (_ONE + t * t)
    return _TWO * t / (_ONE + t * t)


@_compile
def _dense(
    weights: Any, place: int, in_size: int, out_size: int, source: Any, target: Any, activation: int
) -> None:
    """Compute one layer; the weights have a row for each input, followed by the biases."""
    matrix = weights[place : place + in_size * out_size].reshape(in_size, out_size)
    bias = weights[place + in_size * out_size :]
    target = target[:out_size]
    for j in range(out_size):
        target[j] = bias[j]
    for block in range(in_size // 8):  # Unrolled: fewer passes over the target.
        i = 8 * block
        a, b, c, d = source[i], source[i + 1], source[i + 2], source[i + 3]
        e, f, g, h = source[i + 4], source[i + 5], source[i + 6], source[i + 7]
        for j in range(out_size):
            target[j] += (
                (a * matrix[i, j] + b * matrix[i + 1, j])
                + (c * matrix[i + 2, j] + d * matrix[i + 3, j])
                + (e * matrix[i + 4, j] + f * matrix[i + 5, j])
                + (g * matrix[i + 6, j] + h * matrix[i + 7, j])
            )
    for i in range(in_size - in_size % 8, in_size):
        a = source[i]
        for j in range(out_size):
            target[j] += a * matrix[i, j]
    if activation == 1:
        for j in range(out_size):
            target[j] = max(target[j], _ZERO)
    elif activation == 2:
        for j in range(out_size):
            target[j] = _tanh(target[j])


@_compile
def _network(
    arena: Any, layout: Any, table: int, begin: int, end: int, source: Any, hidden: Any, target: Any
) -> None:
    """Compute a network; hidden layers alternate between the two halves of `hidden`."""
    half = hidden.size // 2
    for index in range(begin, end):
        at = table + 4 * index
        last = index == end - 1
        side = half * ((index - begin) % 2)
        into = target if last else hidden[side : side + layout[at + 1]]
        _dense(arena, layout[at + 3], layout[at], layout[at + 1], source, into, layout[at + 2])
        source = into


@_compile
def _variances(raw: Any, softplus: int, least_scale: float) -> None:
    """Convert raw outputs of a network to squared scales, in place.

    The softplus is max(x, 0) + ln(1 + exp(-|x|)): the exponential is that of a 64th, squared six
    times, the logarithm a series in e / (2 + e). In double precision and without calls, so that
    it is vectorised.
    """
    if not softplus:
        least_square = np.float32(least_scale * least_scale)
        for i in range(raw.size):
            raw[i] = raw[i] * raw[i] + least_square
        return
    for i in range(raw.size):
        x = np.float64(raw[i])
        y = min(abs(x), 30.0) * -0.015625
        e = _E4 + y * (_E5 + y * (_E6 + y * _E7))
        e = 1.0 + y * (1.0 + y * (0.5 + y * (_E3 + y * e)))
        for _ in range(6):
            e = e * e
        s = e / (2.0 + e)
        t = s * s
        series = _L9 + t * (_L11 + t * _L13)
        series = 1.0 + t * (_L3 + t * (_L5 + t * (_L7 + t * series)))
        scale = max(x, 0.0) + 2.0 * s * series + least_scale
        raw[i] = scale * scale


@_compile
def _choose(choices: Any, scores: Any, action: Any) -> None:
    """Set each column of an action to the index of its largest score, the first on a tie.

    The one-hot encoding of the action replaces the scores.
    """
    begin = 0
    for i in range(choices.size):
        best, end = begin, begin + choices[i]
        for j in range(begin + 1, end):
            if scores[j] > scores[best]:
                best = j
        scores[begin:end] = _ZERO
        scores[best] = _ONE
        action[i] = best - begin
        begin = end


@_compile
def _step(arena: Any, layout: Any, place: int, task: int) -> bool:
    """Make a step; undo it and return false if the input or the result overflows."""
    size, num_seen, num_done = layout[0], layout[1], layout[2]
    constants, table = arena[layout[5] :], 16 + num_seen + num_done
    choices = layout[16 + num_seen : table]  # Zeros if actions are continuous.
    first, second, third = layout[6], layout[7], layout[8]
    scratch = arena[layout[9] : layout[10]]
    full, before = arena[layout[10] : layout[11]], arena[layout[11] : layout[12]]
    action = arena[layout[12] : layout[13]]
    observation = arena[layout[13] + place * num_seen : layout[13] + (place + 1) * num_seen]
    memory_size = full.size - 1
    kept = arena[layout[14] + place * memory_size : layout[14] + (place + 1) * memory_size]
    output, hidden = scratch[: 4 * size], scratch[4 * size :]
    half = hidden.size // 2
    if task == _STEP:
        total = _ZERO
        for i in range(num_seen):
            total += observation[i] * observation[i]
        if not total < _LARGEST:
            return False
    for i in range(full.size):
        before[i] = full[i]
    latent = full[1 : 1 + size]
    if size:
        _network(arena, layout, table, 0, first, full[1:], hidden, output[: 2 * size])
        if layout[3]:
            for i in range(size):
                output[i] += latent[i]
        if task != _PREDICT:
            shifted = hidden[half : half + num_seen]
            for i in range(num_seen):
                shifted[i] = observation[i] - constants[i]
            _network(arena, layout, table, first, second, shifted, hidden, output[2 * size :])
            _variances(output[size : 3 * size], layout[4], layout[15:16].view(np.float64)[0])
            for i in range(size):
                own, other = output[size + i], output[2 * size + i]
                predicted = output[i]
                latent[i] = predicted + own / (own + other) * (output[3 * size + i] - predicted)
        else:
            for i in range(size):
                latent[i] = output[i]
        source = full[1:]
    else:
        source = hidden[half:]
        at = 0
        for i in range(num_seen):
            if layout[16 + i]:
                source[at], source[at + 1] = np.cos(observation[i]), np.sin(observation[i])
                at += 2
            else:
                source[at] = observation[i] - constants[i]
                at += 1
    relative = full[1 + size : memory_size]
    _network(arena, layout, table, second, third, source, hidden, relative)
    limits = constants[num_seen:]
    if not choices[0]:
        for i in range(num_done):
            relative[i] = _tanh(relative[i]) * limits[num_done + i]
    total = _ZERO
    for i in range(full.size):
        total += full[i] * full[i]
    if not total < _LARGEST:
        for i in range(full.size):
            full[i] = before[i]
        return False
    full[0] = _ONE
    if choices[0]:
        _choose(choices, relative, action)
    else:
        for i in range(num_done):
            low, high = limits[2 * num_done + i], limits[3 * num_done + i]
            action[i] = min(max(relative[i] + limits[i], low), high)
    for i in range(memory_size):
        kept[i] = full[i]
    return True
