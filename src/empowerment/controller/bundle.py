"""Controller bundles: a description and the arrays that it requires, both validated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from empowerment.controller.description import Description as Description

Vector = Float[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class Bundle:
    """A controller as stored on disk: its description and its arrays by name.

    `policy.0.weight` of shape (outputs, inputs) and `policy.0.bias` are the first layer of the
    policy; `states.centre` and `states.half_width` scale its input. `bound`, if it is there, takes
    the same input of the nearest state within that region, and returns empowerment in nats. With a
    filter there are also `recognition`, `start`, `transition`, `measurement`, and the `offset` and
    `scale` of `observations` and `actions`. With a monitor there are `decoder`, from the filter's
    state to the scaled observation that is expected, and `innovations.scale`, the spread of the
    differences from it. All arrays are in single precision.

    Attributes:
        description: Everything except the weights.
        arrays: Arrays by name.
    """

    description: Description
    arrays: Mapping[str, np.ndarray]

    def __post_init__(self):
        """Check that the arrays are complete, of the right shapes, and finite."""
        shapes = self._shapes()
        if set(shapes) != set(self.arrays):
            odd = sorted(set(shapes) ^ set(self.arrays))
            raise ValueError(
                "Expected the arrays to be those of the description; missing or unexpected: "
                f"{', '.join(odd)[:200]}."
            )
        for name, shape in shapes.items():
            array = self.arrays[name]
            if array.dtype != np.float32 or array.shape != shape:
                raise ValueError(
                    f"Expected {name} to be in single precision and of shape {shape}; got "
                    f"{array.dtype} and {array.shape}."
                )
            if not np.isfinite(array).all():
                raise ValueError(f"Expected the weights to be finite; {name} is not.")
            if name.endswith(("scale", "half_width")) and not (array > 0).all():
                raise ValueError(f"Expected {name} to be above zero; it is not everywhere.")

    def without_bound(self) -> "Bundle":
        """Return the bundle without the network that returns empowerment."""
        return self._without("bound", bound_error=None)

    def without_monitor(self) -> "Bundle":
        """Return the bundle without the monitor of the model."""
        return self._without("decoder", "innovations", monitor=None)

    def _without(self, *parts: str, **fields: None) -> "Bundle":
        """Return the bundle without some parts, and without the fields that describe them."""
        networks = {k: v for k, v in self.description.networks.items() if k not in parts}
        arrays = {k: v for k, v in self.arrays.items() if k.partition(".")[0] not in parts}
        return Bundle(replace(self.description, networks=networks, **fields), arrays)

    def layers(self, network: str) -> list[tuple[np.ndarray, np.ndarray, str]]:
        """Return weight, bias and activation of each layer of a network."""
        return [
            (self.arrays[f"{network}.{i}.weight"], self.arrays[f"{network}.{i}.bias"], activation)
            for i, activation in enumerate(self.description.networks[network])
        ]

    def check_bound(self) -> None:
        """Refuse a bundle that cannot say how empowered a state is."""
        if not self.description.has_bound:
            raise ValueError(
                "Expected a controller with a bound on empowerment; this one was written without. "
                "If an earlier version wrote it, resume its run: that writes it anew."
            )

    @property
    def region(self) -> tuple[Vector, Vector]:
        """Lowest and highest states of the region that the bound is fitted in."""
        centre, half = self.arrays["states.centre"], self.arrays["states.half_width"]
        return centre - half, centre + half

    @property
    def middle(self) -> Vector:
        """Origin of encoded actions in memory: midpoint of the limits, zero if discrete."""
        if self.description.choices:
            return np.zeros(self.description.encoded_size, np.float32)
        low, high = self.limits
        return (low + high) * np.float32(0.5)

    @property
    def limits(self) -> tuple[Vector, Vector]:
        """Lower and upper action limits, in single precision."""
        about = self.description
        return np.array(about.low, np.float32), np.array(about.high, np.float32)

    @property
    def idle(self) -> Vector:
        """The admissible action closest to zero; the first choice of each column if discrete."""
        return np.clip(np.zeros(self.description.action_size, np.float32), *self.limits)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the required shape of each array; widths of hidden layers are free."""
        about = self.description
        size = (about.state_size,)
        shapes: dict[str, tuple[int, ...]] = {"states.centre": size, "states.half_width": size}
        if about.latent_size:
            for name in ("offset", "scale"):
                shapes[f"observations.{name}"] = (about.observation_size,)
                shapes[f"actions.{name}"] = (about.encoded_size,)
        if about.monitor is not None:
            shapes["innovations.scale"] = (about.observation_size,)
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
