"""Empowerment of the states of many environments: filter and fitted bound, in NumPy."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Num

from empowerment.controller.bundle import Bundle
from empowerment.controller.engine import LARGEST
from empowerment.controller.folding import Layer, fold
from empowerment.controller.numpy_engine import swapped

_IN_PLACE = {"identity": None, "relu": lambda value, out: np.maximum(value, 0.0, out=out)}
_IN_PLACE["tanh"] = np.tanh

Values = Float[np.ndarray, " envs"]
Rows = Num[np.ndarray, "envs _"]


class BoundTracker:
    """Tracks the states of environments, and evaluates the bound on empowerment there.

    Every environment is a column of the arrays. The actions are those of any agent: the policy of
    the bundle is not used. Without a filter the observation is the state. All is computed in double
    precision, so that it does not matter how many environments there are.

    Args:
        bundle: A controller bundle with a bound.
        num_envs: Number of environments.

    Raises:
        ValueError: If the bundle has no bound.
    """

    def __init__(self, bundle: Bundle, num_envs: int = 1):
        bundle.check_bound()
        self._bundle = bundle
        about, folded = bundle.description, fold(bundle)
        self._num, self._size = num_envs, about.latent_size
        self._low, self._high = (limit[:, None].astype(float) for limit in bundle.limits)
        self._middle, self._choices = bundle.middle[:, None].astype(float), about.choices
        self._firsts = np.cumsum((0, *about.choices[:-1]))
        self._columns = np.arange(num_envs)
        self._output = np.empty((1, num_envs))
        self._bound = _Network(folded["bound"], self._output)
        self._features = self._bound.inputs[:-1]
        self._lowest, self._highest = (limit[:, None].astype(float) for limit in bundle.region)
        centre = bundle.arrays["states.centre"][:, None].astype(float)
        if self._size:
            self._make_filter(bundle, folded)
            return
        self._state = np.zeros((about.observation_size, num_envs))
        self._offset, self._angles = centre, about.angles
        # The columns of the network's input that an axis of the state goes to.
        places = np.arange(about.state_size) + [
            sum(angle < axis for angle in about.angles) for axis in range(about.state_size)
        ]
        kept = [axis for axis in range(about.state_size) if axis not in about.angles]
        self._kept, self._places, self._turns = kept, places[kept], places[list(about.angles)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy by value: views of shared memory would come apart."""
        return _restored, (self._bundle, self._num, self._latent.copy() if self._size else None)

    def begin(self, observations: Rows, mask: Bool[np.ndarray, " envs"] | None = None) -> Values:
        """Begin an episode in all environments, or in those of a mask; the others stay.

        Args:
            observations: First observation of each that begins.
            mask: Which environments begin.

        Returns:
            Empowerment of each that begins, in nats; of the others any number.

        Raises:
            ValueError: If an observation is not finite.
        """
        if mask is not None:
            observations = np.where(mask[:, None], observations, 0.0)
        if not self._size:
            return self._evaluate_observed(observations)
        self._shift(observations)
        self._recognition.inputs[:-1] = np.tile(self._shifted, (self._repeats, 1))
        self._recognition.run()
        self._start.run()
        where = True if mask is None else mask
        np.copyto(self._latent, self._recognised, where=where)
        return self._evaluate_latent()

    def advance(self, observations: Rows, actions: np.ndarray) -> Values:
        """Follow all environments by one step.

        Args:
            observations: Observation of each after its action.
            actions: Action of each: numbers within the limits, or else clipped to them; the index
                of a choice for each column if they are discrete.

        Returns:
            Empowerment of each at its state, in nats.

        Raises:
            ValueError: If an observation is not finite.
        """
        if not self._size:
            return self._evaluate_observed(observations)
        self._encode(actions)
        self._transition.run()
        latent, predicted = self._latent, self._predicted
        if self._residual:
            np.add(latent, self._change, predicted)
        else:
            predicted[...] = self._change
        self._shift(observations)
        self._measurement.run()
        self._square(self._raw_scales)
        # The product of two Gaussians.
        own, other = self._own, self._other
        np.add(own, other, other)
        np.divide(own, other, own)
        np.subtract(self._measured, predicted, latent)
        np.multiply(latent, own, latent)
        np.add(latent, predicted, latent)
        return self._evaluate_latent()

    def _encode(self, actions: np.ndarray) -> None:
        """Write actions into the input of the transition, relative to the middle or one-hot."""
        applied = self._applied
        if self._choices:
            applied.fill(0.0)
            for first, column in zip(self._firsts, actions.T, strict=True):
                applied[first + column, self._columns] = 1.0
            return
        applied[...] = actions.T
        np.maximum(applied, self._low, out=applied)
        np.minimum(applied, self._high, out=applied)
        np.subtract(applied, self._middle, applied)

    def _shift(self, observations: Rows) -> None:
        np.subtract(_checked(observations).T, self._offset, self._shifted)

    def _square(self, raw: np.ndarray) -> None:
        """Convert raw outputs of a network to squared scales, in place."""
        if self._softplus:
            np.logaddexp(raw, 0.0, out=raw)
            np.add(raw, self._least, out=raw)
            np.multiply(raw, raw, out=raw)
        else:
            np.multiply(raw, raw, out=raw)
            np.add(raw, self._least * self._least, out=raw)

    def _evaluate_latent(self) -> Values:
        features = self._features
        np.maximum(self._latent, self._lowest, out=features)
        np.minimum(features, self._highest, out=features)
        return self._run_bound()

    def _evaluate_observed(self, observations: Rows) -> Values:
        state, features = self._state, self._features
        state[...] = _checked(observations).T
        for axis, place in zip(self._angles, self._turns, strict=True):
            np.cos(state[axis], out=features[place])
            np.sin(state[axis], out=features[place + 1])
        np.maximum(state, self._lowest, out=state)
        np.minimum(state, self._highest, out=state)
        np.subtract(state, self._offset, out=state)
        if self._angles:
            features[self._places] = state[self._kept]
        else:
            features[...] = state
        return self._run_bound()

    def _run_bound(self) -> Values:
        self._bound.run()
        values = self._output[0]
        if not np.vdot(values, values) < LARGEST:
            raise ValueError(
                "Expected observations and actions of which empowerment can be computed; the "
                f"result is {values.tolist()!r:.80}."
            )
        return values.copy()

    def _make_filter(self, bundle: Bundle, folded: dict[str, list[Layer]]) -> None:
        about, size, num = bundle.description, self._size, self._num
        self._residual, self._repeats = about.residual, about.num_initial
        self._softplus = about.scales == "softplus"
        self._least = about.least_scale
        self._offset = bundle.arrays["observations.offset"][:, None].astype(float)
        # Outputs of transition and measurement, with the two raw scales adjacent.
        output = np.empty((4 * size, num))
        self._change, self._raw_scales = output[:size], output[size : 3 * size]
        self._measured = output[3 * size :]
        self._own, self._other = output[size : 2 * size], output[2 * size : 3 * size]
        self._transition = _Network(folded["transition"], output[: 2 * size])
        self._measurement = _Network(swapped(folded["measurement"]), output[2 * size :])
        self._latent = self._transition.inputs[:size]
        self._applied = self._transition.inputs[size:-1]
        self._latent.fill(0.0)
        self._shifted = self._measurement.inputs[:-1]
        self._predicted, self._recognised = (np.empty((size, num)) for _ in range(2))
        self._start = _Network(folded["start"], self._recognised)
        self._recognition = _Network(folded["recognition"], self._start.inputs[:-1])


class _Network:
    """A network whose layers write into the inputs of the next; the last input is a one (bias).

    Args:
        layers: The layers.
        output: Output of the last layer, with a column for each environment.

    Attributes:
        inputs: Inputs of the first layer, ending in a one.
    """

    def __init__(self, layers: list[Layer], output: Float[np.ndarray, "output envs"]):
        num = output.shape[1]
        self._steps, target = [], output
        for layer in reversed(layers):
            weight = np.concatenate([layer.weight, layer.bias[:, None]], axis=1, dtype=float)
            self.inputs = np.ones((weight.shape[1], num))
            self._steps.append((weight.dot, self.inputs, target, _IN_PLACE[layer.activation]))
            target = self.inputs[:-1]
        self._steps.reverse()

    def run(self) -> None:
        """Compute the output from the inputs."""
        for dot, source, target, activation in self._steps:
            dot(source, target)
            if activation is not None:
                activation(target, out=target)


def _restored(
    bundle: Bundle, num_envs: int, latent: Float[np.ndarray, "latent envs"] | None
) -> BoundTracker:
    """Build a tracker that goes on from the states of another."""
    tracker = BoundTracker(bundle, num_envs)
    if latent is not None:
        tracker._latent[...] = latent
    return tracker


def _checked(observations: Rows) -> Float[np.ndarray, "envs _"]:
    """Refuse numbers whose squares overflow; the sum of squares is finite only if each one is."""
    if observations.dtype.kind != "f":
        observations = observations.astype(float)
    flat = observations.ravel()
    if not np.vdot(flat, flat) < LARGEST:
        raise ValueError(
            "Expected the observations of the environment to be finite numbers; got "
            f"{observations.tolist()!r:.80}."
        )
    return observations
