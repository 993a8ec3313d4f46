"""Reference implementation of a step, against which all engines and exports are validated."""

import math

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle, Vector
from empowerment.controller.choices import choose, encode

_ACTIVATIONS = {
    "identity": lambda value: value,
    "relu": lambda value: np.maximum(value, 0.0),
    "sigmoid": lambda value: 0.5 + 0.5 * np.tanh(0.5 * value),
    "tanh": np.tanh,
}


def reference_step(
    bundle: Bundle,
    observation: Float[np.ndarray, " observation"],
    memory: Float[np.ndarray, " memory"],
    noise: Vector | None = None,
) -> tuple[Vector, Vector]:
    """Compute action and memory from an observation, in double precision.

    The filter predicts from the last action and multiplies the prediction by the measurement; the
    action is the squashed mean of the policy at the resulting state, or the index of the largest
    logit in each column if it is discrete. An observation that is not finite counts as missing: the
    filter only predicts, and without a filter the last action is repeated.

    Args:
        bundle: The controller bundle.
        observation: In the units of the environment.
        memory: Memory after the previous step; zeros at the start.
        noise: Standard normal noise for each axis, or standard Gumbel noise for each choice, to
            sample from the policy; by default its mean, or its most probable choice.

    Returns:
        The action, and the memory for the next step.
    """
    about = bundle.description
    seen = bool(np.isfinite(observation).all())
    started, latent, before = np.split(
        np.asarray(memory, float), (1, 1 + about.latent_size), axis=0
    )
    middle = bundle.middle.astype(float)
    if not seen and not started[0]:
        return bundle.idle.astype(float), np.zeros(about.memory_size)
    if about.latent_size:
        state = latent = _track(bundle, observation, latent, before + middle, started[0], seen)
    elif seen:
        state = observation
    else:
        return choose(before + middle, about.choices), np.asarray(memory, float)
    output = run_network(bundle, "policy", features(bundle, state))
    if about.choices:
        # The largest sum of logit and Gumbel noise is a sample of the softmax.
        action = choose(output if noise is None else output + noise, about.choices)
        return action, np.concatenate([[1.0], latent, encode(action, about.choices)])
    low, high = (limit.astype(float) for limit in bundle.limits)
    choice, spread = np.split(output, 2)
    if noise is not None:
        choice = choice + _policy_scale(bundle, spread) * noise
    relative = 0.5 * (high - low) * np.tanh(choice)
    return np.clip(middle + relative, low, high), np.concatenate([[1.0], latent, relative])


def reference_bound(
    bundle: Bundle,
    observation: Float[np.ndarray, " observation"],
    after: Float[np.ndarray, " memory"],
) -> float:
    """Compute the bound on empowerment at the state that a step acted in, in double precision.

    Outside the region of the fit it is that of the nearest state in it.

    Args:
        bundle: The controller bundle.
        observation: The observation of the step.
        after: The memory after the step.

    Returns:
        Empowerment in nats; NaN where the state is not known: before the first observation, and
        without a filter if the observation is missing.
    """
    size = bundle.description.latent_size
    state = after[1 : 1 + size] if size else observation
    if not after[0] or not np.isfinite(state).all():
        return math.nan
    low, high = (limit.astype(float) for limit in bundle.region)
    is_angle = np.isin(np.arange(len(state)), bundle.description.angles)
    nearest = np.where(is_angle, state, np.clip(state, low, high))
    return float(run_network(bundle, "bound", features(bundle, nearest))[0])


def reference_expected(bundle: Bundle, memory: Float[np.ndarray, " memory"]) -> Vector:
    """Compute the observation that a monitor expects next, in double precision.

    Args:
        bundle: A controller bundle with a monitor.
        memory: The memory after a step.
    """
    latent, action = np.split(np.asarray(memory[1:], float), [bundle.description.latent_size])
    predicted, _ = _predict(bundle, latent, action + bundle.middle.astype(float))
    scaled = run_network(bundle, "decoder", predicted)
    return bundle.arrays["observations.offset"] + bundle.arrays["observations.scale"] * scaled


def features(bundle: Bundle, state: Vector) -> Vector:
    """Compute the policy's input: the scaled state, with angles as cosine and sine."""
    arrays = bundle.arrays
    scaled = 2 * (state - arrays["states.centre"].astype(float)) / arrays["states.half_width"]
    parts = []
    for axis, value in enumerate(scaled):
        if axis in bundle.description.angles:
            parts += [np.cos(state[axis]), np.sin(state[axis])]
        else:
            parts.append(value)
    return np.array(parts)


def run_network(bundle: Bundle, network: str, value: Vector) -> Vector:
    """Compute the output of a network."""
    for weight, bias, activation in bundle.layers(network):
        value = _ACTIVATIONS[activation](weight.astype(float) @ value + bias)
    return value


def _track(
    bundle: Bundle,
    observation: Vector,
    latent: Vector,
    action: Vector,
    started: float,
    seen: bool,  # noqa: FBT001
) -> Vector:
    """Compute the filter's state after an action and the observation that followed."""
    about, arrays = bundle.description, bundle.arrays
    offset, scale = (arrays[f"observations.{part}"].astype(float) for part in ("offset", "scale"))
    scaled = (np.where(np.isfinite(observation), observation, offset) - offset) / scale
    if not started:
        first = np.tile(scaled, about.num_initial)
        return run_network(bundle, "start", run_network(bundle, "recognition", first))
    predicted, raw_inference = _predict(bundle, latent, action)
    if not seen:
        return predicted
    measured, raw_measured = np.split(run_network(bundle, "measurement", scaled), 2)
    inference, measurement = _variance(bundle, raw_inference), _variance(bundle, raw_measured)
    return predicted + inference / (inference + measurement) * (measured - predicted)


def _predict(bundle: Bundle, latent: Vector, action: Vector) -> tuple[Vector, Vector]:
    """Predict the filter's state after an action; return its mean and raw scale."""
    arrays = bundle.arrays
    applied = (action - arrays["actions.offset"]) / arrays["actions.scale"].astype(float)
    output = run_network(bundle, "transition", np.concatenate([latent, applied]))
    change, raw = np.split(output, 2)
    return latent + change if bundle.description.residual else change, raw


def _policy_scale(bundle: Bundle, spread: Vector) -> Vector:
    """Compute the policy's scale, whose logarithm is bounded and zero for an output of zero."""
    low, high = bundle.description.log_scales
    share = _ACTIVATIONS["sigmoid"](spread + math.log(-low) - math.log(high))
    return np.exp(low + (high - low) * share)


def _variance(bundle: Bundle, raw: Vector) -> Vector:
    """Convert the raw output of a network to a squared scale."""
    about = bundle.description
    if about.scales == "square":
        return raw**2 + about.least_scale**2
    return (np.logaddexp(raw, 0.0) + about.least_scale) ** 2
