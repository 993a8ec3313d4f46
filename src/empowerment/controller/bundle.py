"""What a controller is made of, and the rules that it keeps: sizes, names, finite weights."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

LEAST_SCALE = 1e-3
"""Added to every scale of the filter: no belief is beyond doubt."""

LOG_SCALES = (-4.0, 1.0)
"""Where the logarithm of the policy's scale stays."""

ACTIVATIONS = ("identity", "relu", "sigmoid", "tanh")
"""What a layer may end in."""

_LARGEST_SIZE = 1 << 16
"""More axes than this nobody controls: such a number is a mistake or an attack."""

_MOST_LAYERS = 32

Scales = Literal["softplus", "square"]
Vector = Float[np.ndarray, " _"]


@dataclass(frozen=True)
class Description:
    """What a controller is, without its weights.

    Attributes:
        observation_names: A word for each number that is observed.
        action_names: A word for each number that is done.
        low: The least that each axis of an action can be.
        high: The most.
        angles: The axes of the policy's input that are angles, in radians.
        networks: For each network the activation of each of its layers.
        latent_size: The number of axes of the filter's state; 0 where there is no filter.
        num_initial: How many observations the first state is recognised from.
        residual: Whether the transition gives a change of the state, or the state itself.
        scales: How scales are made of the output of a network.
        environment: The Gymnasium id of what it was trained for, if it has one.
        interval: Seconds from one action to the next, if known.
        action_repeat: Steps of the environment for which an action is held.
        about: Anything else, for people.
    """

    observation_names: tuple[str, ...]
    action_names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    networks: Mapping[str, tuple[str, ...]]
    angles: tuple[int, ...] = ()
    latent_size: int = 0
    num_initial: int = 1
    residual: bool = True
    scales: Scales = "softplus"
    environment: str | None = None
    interval: float | None = None
    action_repeat: int = 1
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        """Refuse what cannot be."""
        for what in ("observation_names", "action_names"):
            names = getattr(self, what)
            if not 0 < len(names) <= _LARGEST_SIZE:
                raise ValueError(
                    f"Expected {what} to be 1 to {_LARGEST_SIZE} words; got {len(names)}."
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
        for what, least, most in (
            ("latent_size", 0, _LARGEST_SIZE),
            ("num_initial", 1, _LARGEST_SIZE),
            ("action_repeat", 1, _LARGEST_SIZE),
        ):
            given = getattr(self, what)
            if not least <= given <= most:
                raise ValueError(
                    f"Expected {what} to be a whole number from {least} to {most}; got {given!r}."
                )
        if self.interval is not None and not (_is_number(self.interval) and self.interval > 0):
            raise ValueError(
                f"Expected the interval to be a number of seconds above zero; got "
                f"{self.interval!r:.80}."
            )
        self._check_networks()

    def _check_networks(self) -> None:
        """Refuse networks that are not those of a controller, and angles that are not there."""
        needed = {"policy"}
        if self.latent_size:
            needed |= {"recognition", "start", "transition", "measurement"}
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
        axes = range(self.state_size)
        if len(set(self.angles)) != len(self.angles) or not all(
            angle in axes for angle in self.angles
        ):
            raise ValueError(
                f"Expected the angles to be different axes below {self.state_size}; got "
                f"{self.angles!r:.80}."
            )

    @property
    def observation_size(self) -> int:
        """The number of axes of an observation."""
        return len(self.observation_names)

    @property
    def action_size(self) -> int:
        """The number of axes of an action."""
        return len(self.action_names)

    @property
    def state_size(self) -> int:
        """The number of axes of what the policy sees."""
        return self.latent_size or self.observation_size

    @property
    def memory_size(self) -> int:
        """The number of axes of what is carried from one step to the next.

        Whether a step was made yet (0 or 1), the state of the filter, and the last action
        relative to the middle of its limits. All zeros is a new start.
        """
        return 1 + self.latent_size + self.action_size

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Give the number of inputs and outputs of each network."""
        latent, seen, done = self.latent_size, self.observation_size, self.action_size
        sizes = {"policy": (self.state_size + len(self.angles), 2 * done)}
        if latent:
            sizes |= {
                "recognition": (self.num_initial * seen, latent),
                "start": (latent, latent),
                "transition": (latent + done, 2 * latent),
                "measurement": (seen, 2 * latent),
            }
        return sizes


@dataclass(frozen=True, eq=False)
class Bundle:
    """A controller as it is kept in files: what it is, and its arrays by their names.

    `policy.0.weight` of shape (outputs, inputs) and `policy.0.bias` are the first layer of the
    policy; `states.centre` and `states.half_width` scale what it sees. With a filter there are
    also `recognition`, `start`, `transition`, `measurement`, and the `offset` and `scale` of
    `observations` and `actions`. All are of single precision.

    Attributes:
        description: What it is.
        arrays: By name.
    """

    description: Description
    arrays: Mapping[str, np.ndarray]

    def __post_init__(self):
        """Refuse arrays that are missing, too many, of another shape or not finite."""
        shapes = self._shapes()
        if set(shapes) != set(self.arrays):
            odd = sorted(set(shapes) ^ set(self.arrays))
            raise ValueError(
                "Expected exactly the arrays that the description names; missing or too many: "
                f"{', '.join(odd)[:200]}."
            )
        for name, shape in shapes.items():
            array = self.arrays[name]
            if array.dtype != np.float32 or array.shape != shape:
                raise ValueError(
                    f"Expected {name} to be of single precision and shape {shape}; got "
                    f"{array.dtype} and {array.shape}."
                )
            if not np.isfinite(array).all():
                raise ValueError(f"Expected the weights to be finite; {name} is not.")
            if name.endswith(("scale", "half_width")) and not (array > 0).all():
                raise ValueError(f"Expected {name} to be above zero; it is not everywhere.")

    def layers(self, network: str) -> list[tuple[np.ndarray, np.ndarray, str]]:
        """Give weight, bias and activation of each layer of a network."""
        return [
            (self.arrays[f"{network}.{i}.weight"], self.arrays[f"{network}.{i}.bias"], activation)
            for i, activation in enumerate(self.description.networks[network])
        ]

    @property
    def middle(self) -> Vector:
        """The middle between the limits of the actions, in single precision."""
        low, high = self.limits
        return (low + high) * np.float32(0.5)

    @property
    def limits(self) -> tuple[Vector, Vector]:
        """The limits of the actions, in single precision."""
        return np.array(self.description.low, np.float32), np.array(
            self.description.high, np.float32
        )

    @property
    def idle(self) -> Vector:
        """The allowed action that is nearest to none."""
        return np.clip(np.zeros(self.description.action_size, np.float32), *self.limits)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Give the shape that each array must have; hidden layers are as large as they are."""
        about = self.description
        size = about.state_size
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(
            ("states.centre", "states.half_width"), (size,)
        )
        if about.latent_size:
            seen, done = (about.observation_size,), (about.action_size,)
            shapes |= dict.fromkeys(("observations.offset", "observations.scale"), seen)
            shapes |= dict.fromkeys(("actions.offset", "actions.scale"), done)
        for network, (in_size, out_size) in about.sizes().items():
            last = len(about.networks[network]) - 1
            for index in range(last + 1):
                bias = self.arrays.get(f"{network}.{index}.bias")
                hidden = len(bias) if bias is not None and bias.ndim == 1 else 0
                width = out_size if index == last else hidden
                shapes[f"{network}.{index}.weight"] = (width, in_size)
                shapes[f"{network}.{index}.bias"] = (width,)
                in_size = width
        return shapes


def _is_number(value: float) -> bool:
    """Tell whether a value is a finite number that single precision can hold."""
    return abs(value) <= float(np.finfo(np.float32).max) and math.isfinite(value)
