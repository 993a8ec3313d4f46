"""Folding of scalings into network weights: fewer operations for the same function."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle


@dataclass(frozen=True, eq=False)
class Layer:
    """An affine layer with an activation.

    Attributes:
        weight: One row per output.
        bias: One number per output.
        activation: `tanh`, `relu` or `identity`.
    """

    weight: Float[np.ndarray, "out in"]
    bias: Float[np.ndarray, " out"]
    activation: str


def fold(bundle: Bundle, *, scales: bool = False) -> dict[str, list[Layer]]:
    """Fold affine operations into the weights, in double precision.

    - `measurement` and `recognition` take observations minus their offset.
    - `transition` takes the state and the last action as in memory: relative to the middle of its
      limits, or one-hot encoded.
    - `policy` returns the mean only (unless `scales`), or the logits of discrete actions. It takes
      the unscaled state of the filter; without a filter, observations minus their centre, with
      angles as cosine and sine.
    - `bound`, if it is there, takes the same input as the policy, but of the nearest state in the
      region of the fit.
    - `decoder`, if it is there, returns the expected observation, minus the offset, in units of the
      spread of innovations.
    - A sigmoid becomes a tanh of half its argument.

    Args:
        bundle: The controller bundle.
        scales: Whether `policy` returns raw scales after the mean.

    Returns:
        The layers of each network, in single precision.
    """
    networks = {
        name: [(w.astype(float), b.astype(float), a) for w, b, a in bundle.layers(name)]
        for name in bundle.description.networks
    }
    about = bundle.description
    if not scales:
        weight, bias, activation = networks["policy"][-1]
        size = about.encoded_size
        networks["policy"][-1] = (weight[:size], bias[:size], activation)
    arrays = {name: array.astype(float) for name, array in bundle.arrays.items()}
    if about.latent_size:
        if about.monitor is not None:
            weight, bias, activation = networks["decoder"][-1]
            per_spread = 1 / arrays["innovations.scale"]
            scaled = weight * per_spread[:, None], bias * per_spread, activation
            networks["decoder"][-1] = scaled
        none, factor = np.zeros(about.latent_size), np.ones(about.latent_size)
        per_scale = 1 / arrays["observations.scale"]
        _scale_inputs(networks["measurement"], 0 * per_scale, per_scale)
        per_scale = np.tile(per_scale, about.num_initial)
        _scale_inputs(networks["recognition"], 0 * per_scale, per_scale)
        for name in networks.keys() & {"policy", "bound"}:
            _scale_inputs(networks[name], arrays["states.centre"], 2 / arrays["states.half_width"])
        _scale_inputs(
            networks["transition"],
            np.concatenate([none, arrays["actions.offset"] - bundle.middle]),
            np.concatenate([factor, 1 / arrays["actions.scale"]]),
        )
    else:
        factor = []
        for axis, half_width in enumerate(arrays["states.half_width"]):
            factor += [1.0, 1.0] if axis in about.angles else [2 / half_width]
        for layers in networks.values():
            _scale_inputs(layers, np.zeros(len(factor)), np.array(factor))
    return {name: _without_sigmoids(layers) for name, layers in networks.items()}


def _scale_inputs(layers: list, offset: np.ndarray, factor: np.ndarray) -> None:
    """Fold (input - offset) * factor into the first layer."""
    weight, bias, activation = layers[0]
    weight = weight * factor
    layers[0] = (weight, bias - weight @ offset, activation)


def _without_sigmoids(layers: list) -> list[Layer]:
    """Replace sigmoids by tanh, and round to single precision."""
    folded, before = [], "identity"
    for weight, bias, activation in layers:
        if before == "sigmoid":
            weight, bias = 0.5 * weight, bias + 0.5 * weight.sum(1)
        before = activation
        if activation == "sigmoid":
            weight, bias, activation = 0.5 * weight, 0.5 * bias, "tanh"
        with np.errstate(over="ignore"):
            single = weight.astype(np.float32), bias.astype(np.float32)
        if not all(np.isfinite(array).all() for array in single):
            raise ValueError(
                "Expected the weights to stay finite in single precision with the scales folded "
                "in; they overflow."
            )
        folded.append(Layer(*single, activation))
    return folded
