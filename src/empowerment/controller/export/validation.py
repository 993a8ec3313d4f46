"""An export is judged by the step as it is written plainly, before it is handed out."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.export.c_code import CompiledC
from empowerment.controller.reference import reference_step

Step = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Gives action and memory upon an observation and the memory before, in single precision."""

NUM_STEPS = 1000
TOLERANCE = 1e-4
"""An error above this, of numbers of order one, is more than rounding: the export is refused."""

_EPISODE = 50
_MISSING = 0.05


@dataclass(frozen=True)
class Validation:
    """How an export compares with the original.

    Attributes:
        num_steps: How many random steps were made.
        largest_error: Of any action or memory, relative to it where it is above one.
        p50: The median of the time of a step, in seconds.
        p99: Its 99th percentile.
    """

    num_steps: int
    largest_error: float
    p50: float
    p99: float


def validate(bundle: Bundle, step: Step) -> Validation:
    """Compare an export with the original on random steps; some observations are missing.

    Args:
        bundle: The original.
        step: The export.

    Returns:
        How it compares.

    Raises:
        ValueError: If it is not the same.
    """
    about = bundle.description
    random = np.random.default_rng(0)
    if about.latent_size:
        middle, spread = (
            bundle.arrays["observations.offset"],
            bundle.arrays["observations.scale"],
        )
    else:
        middle, spread = bundle.arrays["states.centre"], bundle.arrays["states.half_width"]
    memory = np.zeros(about.memory_size, np.float32)
    errors, times = [], []
    for index in range(NUM_STEPS):
        if index % _EPISODE == 0:
            memory = np.zeros_like(memory)
        observation = (middle + spread * random.normal(size=middle.shape)).astype(np.float32)
        if random.random() < _MISSING:
            observation[random.integers(observation.size)] = np.nan
        expected = reference_step(bundle, observation, memory)
        begun = time.perf_counter()
        found = step(observation, memory)
        times.append(time.perf_counter() - begun)
        for ours, theirs in zip(expected, found, strict=True):
            error = np.abs(ours - theirs) / np.maximum(np.abs(ours), 1.0)
            errors.append(float(error.max()) if np.isfinite(theirs).all() else np.inf)
        memory = expected[1].astype(np.float32)
    largest = max(errors)
    if largest > TOLERANCE:
        raise ValueError(
            f"Expected the export to be the same as the original to {TOLERANCE:g} on {NUM_STEPS} "
            f"random steps; it is off by {largest:.3g}. Nothing was written."
        )
    if isinstance(step, CompiledC):  # Calling C from Python takes longer than what is called.
        times = step.times(middle, NUM_STEPS)
    p50, p99 = np.percentile(times, (50, 99)).tolist()
    return Validation(NUM_STEPS, largest, p50, p99)
