"""Descriptions of controllers: everything about them except their weights, validated."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

ACTIVATIONS = ("identity", "relu", "sigmoid", "tanh")
"""Activations that a layer may have."""

_LARGEST_SIZE = 1 << 16
"""Upper limit of all sizes; a larger number is a mistake or an attack."""

_MOST_LAYERS = 32
_MOST_STEPS = 1 << 40

Scales = Literal["softplus", "square"]


@dataclass(frozen=True)
class MonitorLimits:
    """When observations are so unlike what the model expects that the controller has to stop.

    The statistic is the largest axis of the squared innovation in units of its spread, each axis
    smoothed exponentially over time. Squares are limited, so that it needs more than one.

    Attributes:
        threshold: Value of the statistic above which observations are unfamiliar.
        false_alarms_per_step: Bound on the probability of a false alarm per step, on data such as
            it was calibrated on.
        num_steps: Number of recorded steps that it was calibrated on.
        most: Square that counts at most.
        weight: Weight of the latest step in the smoothed square.
        running: Number of consecutive unfamiliar steps that is a fault.
        settling: Number of observations after the start that are not judged.
    """

    threshold: float
    false_alarms_per_step: float
    num_steps: int
    most: float
    weight: float
    running: int
    settling: int

    def __post_init__(self):
        """Validate every field."""
        if not (_is_number(self.threshold) and self.threshold > 0):
            raise ValueError(
                f"Expected the threshold to be a number above zero; got {self.threshold!r:.80}."
            )
        if not (_is_number(self.most) and self.most > self.threshold):
            raise ValueError(
                f"Expected most to be a number above the threshold; got {self.most!r:.80}."
            )
        for what in ("false_alarms_per_step", "weight"):
            value = getattr(self, what)
            if not 0 < value <= 1:
                raise ValueError(f"Expected {what} to be above 0 and at most 1; got {value!r:.80}.")
        for what in ("num_steps", "running", "settling"):
            value = getattr(self, what)
            if not 1 <= value <= _MOST_STEPS:
                raise ValueError(
                    f"Expected {what} to be an integer from 1 to {_MOST_STEPS}; got {value!r:.80}."
                )


@dataclass(frozen=True)
class Description:
    """Everything that defines a controller except its weights.

    Attributes:
        observation_names: Name of each axis of an observation.
        action_names: Name of each axis (column) of an action.
        low: Lower limit of each axis of an action.
        high: Upper limit of each axis of an action.
        angles: Axes of the policy's input that are angles, in radians.
        networks: Activation of each layer, by network; `bound` is there where empowerment is.
        choices: Number of choices of each column of a discrete action, which is the index of one,
            from 0; empty if actions are continuous.
        latent_size: Number of axes of the filter's state; 0 without a filter.
        num_initial: Number of observations from which the initial state is recognised.
        residual: Whether the transition predicts the change of the state or the state itself.
        scales: How the filter's raw outputs are turned into scales.
        least_scale: Lower bound of the filter's scales.
        log_scales: Bounds of the logarithm of the policy's scale.
        uniform_share: Share of the uniform distribution among sampled discrete actions.
        bound_error: Root mean square error of `bound` in nats, at states to which it was not fitted
            and before it was refined; None without that network.
        monitor: When observations are unfamiliar; None without a monitor. `decoder` is there with
            it.
        environment: Gymnasium id of the environment it was trained for, if any.
        interval: Seconds between actions, if known.
        action_repeat: Environment steps for which each action is held.
        about: Further information for human readers.
    """

    observation_names: tuple[str, ...]
    action_names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    networks: Mapping[str, tuple[str, ...]]
    angles: tuple[int, ...] = ()
    choices: tuple[int, ...] = ()
    latent_size: int = 0
    num_initial: int = 1
    residual: bool = True
    scales: Scales = "softplus"
    least_scale: float = 1e-3
    log_scales: tuple[float, float] = (-4.0, 1.0)
    uniform_share: float = 0.0
    bound_error: float | None = None
    monitor: MonitorLimits | None = None
    environment: str | None = None
    interval: float | None = None
    action_repeat: int = 1
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        """Validate every field."""
        for what in ("observation_names", "action_names"):
            names = getattr(self, what)
            if not 0 < len(names) <= _LARGEST_SIZE:
                raise ValueError(
                    f"Expected {what} to be 1 to {_LARGEST_SIZE} names; got {len(names)}."
                )
        limits = (*self.low, *self.high)
        if not len(self.low) == len(self.high) == len(self.action_names) or not (
            all(_is_number(limit) for limit in limits)
            and all(low < high for low, high in zip(self.low, self.high, strict=True))
        ):
            raise ValueError(
                "Expected low and high to be finite limits for each action, low below high; got "
                f"{self.low!r:.80} and {self.high!r:.80}."
            )
        self._check_choices()
        for what, least in (("latent_size", 0), ("num_initial", 1), ("action_repeat", 1)):
            value = getattr(self, what)
            if not least <= value <= _LARGEST_SIZE:
                raise ValueError(
                    f"Expected {what} to be an integer from {least} to {_LARGEST_SIZE}; got "
                    f"{value!r}."
                )
        # Below and above, squares in single precision vanish or overflow.
        if not 1e-18 <= self.least_scale <= 1e18:
            raise ValueError(
                f"Expected least_scale to be from 1e-18 to 1e18; got {self.least_scale!r:.80}."
            )
        if not -20 <= self.log_scales[0] < 0 < self.log_scales[1] <= 20:
            raise ValueError(
                "Expected log_scales to be a negative and a positive number within -20 and 20; got "
                f"{self.log_scales!r:.80}."
            )
        if not 0 <= self.uniform_share <= 1:
            raise ValueError(
                f"Expected uniform_share to be from 0 to 1; got {self.uniform_share!r:.80}."
            )
        if self.bound_error is not None and not 0 <= self.bound_error < math.inf:
            raise ValueError(
                f"Expected bound_error to be a number of nats from zero; got {self.bound_error}."
            )
        if self.interval is not None and not (_is_number(self.interval) and self.interval > 0):
            raise ValueError(
                f"Expected the interval to be a number of seconds above zero; got "
                f"{self.interval!r:.80}."
            )
        self._check_networks()

    def _check_choices(self) -> None:
        """Check the numbers of choices, and the limits against them."""
        if not self.choices:
            return
        if len(self.choices) != self.action_size or min(self.choices) < 2:
            raise ValueError(
                "Expected choices to be numbers from 2, one for each of the "
                f"{self.action_size} actions; got {self.choices!r:.80}."
            )
        if sum(self.choices) > _LARGEST_SIZE:
            raise ValueError(
                f"Expected choices to be at most {_LARGEST_SIZE} together; got {sum(self.choices)}."
            )
        if any(self.low) or self.high != tuple(count - 1 for count in self.choices):
            raise ValueError(
                "Expected low and high to be 0 and the number of choices minus 1; got "
                f"{self.low!r:.80} and {self.high!r:.80} for {self.choices!r:.80}."
            )

    def _check_networks(self) -> None:
        """Check the networks and their activations, and the axes that are angles."""
        needed = {"policy"}
        if self.latent_size:
            needed |= {"recognition", "start", "transition", "measurement"}
        if self.bound_error is not None:
            needed.add("bound")
        if self.monitor is not None:
            needed.add("decoder")
            if not self.latent_size:
                raise ValueError("Expected a monitor only with a filter; got one without.")
        if set(self.networks) != needed or not all(
            0 < len(layers) <= _MOST_LAYERS
            and all(layer in ACTIVATIONS for layer in layers)
            and layers[-1] == "identity"
            for layers in self.networks.values()
        ):
            raise ValueError(
                f"Expected the networks to be {', '.join(sorted(needed))}, each with 1 to "
                f"{_MOST_LAYERS} of {', '.join(ACTIVATIONS)} that end in identity; got "
                f"{dict(self.networks)!r:.200}."
            )
        if len(set(self.angles) & set(range(self.state_size))) != len(self.angles):
            raise ValueError(
                f"Expected the angles to be different axes below {self.state_size}; got "
                f"{self.angles!r:.80}."
            )

    @property
    def observation_size(self) -> int:
        """Number of axes of an observation."""
        return len(self.observation_names)

    @property
    def action_size(self) -> int:
        """Number of axes of an action."""
        return len(self.action_names)

    @property
    def encoded_size(self) -> int:
        """Number of axes of an encoded action: one-hot per column if discrete, else as it is."""
        return sum(self.choices) or self.action_size

    @property
    def state_size(self) -> int:
        """Number of axes of the policy's input state."""
        return self.latent_size or self.observation_size

    @property
    def memory_size(self) -> int:
        """Number of axes of the memory that is carried from step to step.

        It consists of a flag that is 1 after the first step, the state of the filter, and the
        last action: relative to the middle of its limits, or one-hot encoded if it is discrete.
        All zeros restart the controller.
        """
        return 1 + self.latent_size + self.encoded_size

    @property
    def has_bound(self) -> bool:
        """Whether there is a network that returns the bound on empowerment at a state."""
        return "bound" in self.networks

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the number of inputs and outputs of each network."""
        latent, observed, encoded = self.latent_size, self.observation_size, self.encoded_size
        # Logits of all choices, or mean and raw scale.
        outputs = encoded if self.choices else 2 * encoded
        features = self.state_size + len(self.angles)
        sizes = {"policy": (features, outputs)}
        if self.has_bound:
            sizes["bound"] = (features, 1)
        if latent:
            sizes |= {
                "recognition": (self.num_initial * observed, latent),
                "start": (latent, latent),
                "transition": (latent + encoded, 2 * latent),
                "measurement": (observed, 2 * latent),
            }
        if self.monitor is not None:
            sizes["decoder"] = (latent, observed)
        return sizes


def _is_number(value: float) -> bool:
    """Return whether a value is a finite number in single precision."""
    return abs(value) <= float(np.finfo(np.float32).max) and math.isfinite(value)
