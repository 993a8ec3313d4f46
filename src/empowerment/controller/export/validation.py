"""Validation of exports against the reference implementation."""

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.controller import Controller
from empowerment.controller.export.c_compiled import CompiledC
from empowerment.controller.reference import (
    features,
    reference_bound,
    reference_expected,
    reference_step,
    run_network,
)
from empowerment.controller.safety import Safety

Step = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
"""Maps an observation and the memory to the action and the next memory, in single precision; if
there is a bound, then also to empowerment, as a vector of one number."""

NUM_STEPS = 1000
TOLERANCE = 1e-4
"""Largest error accepted as rounding, for numbers of order one."""

MARGIN = 1e-4
"""Difference of two logits below which rounding may decide, relative where they exceed one."""

_EPISODE = 50
_MISSING = 0.05

_STRENGTHS = (0.3, 1.0, 10.0)
"""Of innovations, in units of those that are unfamiliar."""

_NEAR = 0.01
"""Relative distance of a level from the threshold within which rounding may decide."""


@dataclass(frozen=True)
class Validation:
    """Comparison of an export with the original.

    Attributes:
        num_steps: Number of random steps.
        num_undecided: Number of steps at which the two largest logits of a discrete action are so
            close (`MARGIN`) that rounding may decide; there the action is not compared.
        largest_error: Largest error of actions, memories and empowerment, relative where they
            exceed one.
        p50: Median duration of a step, in seconds.
        p99: 99th percentile of the duration, in seconds.
    """

    num_steps: int
    num_undecided: int
    largest_error: float
    p50: float
    p99: float


def validate(bundle: Bundle, step: Step) -> Validation:
    """Compare an export with the original on random steps, some with missing observations.

    Args:
        bundle: The original.
        step: The export.

    Returns:
        The comparison.

    Raises:
        ValueError: If the error exceeds `TOLERANCE`.
    """
    about = bundle.description
    random = np.random.default_rng(0)
    if about.latent_size:
        names = "observations.offset", "observations.scale"
    else:
        names = "states.centre", "states.half_width"
    middle, spread = (bundle.arrays[name] for name in names)
    memory = np.zeros(about.memory_size, np.float32)
    errors, times, num_undecided = [], [], 0
    for index in range(NUM_STEPS):
        if index % _EPISODE == 0:
            memory = np.zeros_like(memory)
        observation = (middle + spread * random.normal(size=middle.shape)).astype(np.float32)
        if random.random() < _MISSING:
            observation[random.integers(observation.size)] = np.nan
        expected: tuple[np.ndarray, ...] = reference_step(bundle, observation, memory)
        if about.has_bound:
            expected += (np.array([reference_bound(bundle, observation, expected[1])]),)
        begun = time.perf_counter()
        result = step(observation, memory)
        times.append(time.perf_counter() - begun)
        pairs = list(zip(expected, result, strict=True))
        if _is_undecided(bundle, observation, expected[1]):
            num_undecided += 1
            kept = tuple(after[: 1 + about.latent_size] for after in pairs[1])
            pairs = [kept, *pairs[2:]]
        errors += [_error(ours, theirs) for ours, theirs in pairs]
        memory = expected[1].astype(np.float32)
    largest = max(errors)
    if largest > TOLERANCE:
        raise ValueError(
            f"Expected the export to be within {TOLERANCE:g} of the original on {NUM_STEPS} "
            f"random steps; it is off by {largest:.3g}. Nothing was written."
        )
    if isinstance(step, CompiledC):  # Calling C from Python takes longer than the step.
        times = step.times(middle, NUM_STEPS)
    p50, p99 = np.percentile(times, (50, 99)).tolist()
    return Validation(NUM_STEPS, num_undecided, largest, p50, p99)


def validate_safety(bundle: Bundle, compiled: CompiledC, safety: Safety) -> None:
    """Compare what watches over a controller in C with that of the original, cycle by cycle.

    Observations are missing, late or unfamiliar at random, in spells long enough for every fault.

    Args:
        bundle: The original.
        compiled: The export.
        safety: Its fault limits.

    Raises:
        ValueError: If actions, faults or counters differ.
    """
    random, now, forgiven = np.random.default_rng(1), 0, 0
    original = Controller(
        bundle, safety=replace(safety, record=None), engine="numpy", clock=lambda: now
    )
    interval = round(1e9 * (safety.interval or 1.0))
    troubles = list(itertools.product(_STRENGTHS, (0.0, 0.1, 1.0), (0.0, 0.1, 1.0)))
    for index in range(NUM_STEPS):
        strength, missing, late = troubles[index // _EPISODE % len(troubles)]
        if index % _EPISODE == 0:
            original.reset()
            compiled.reset()
        observation = _observation(original, strength, random)
        if random.random() < missing:
            observation[random.integers(observation.size)] = random.choice(
                [np.nan, np.inf, -np.inf]
            )
        given = None if random.random() < 0.5 * missing else observation
        now += interval * (1 if random.random() >= late else int(random.integers(2, 5)))
        expected = original.step(given)
        action, fault = compiled.control(given, now)
        if _is_near_threshold(original):  # Rounding may decide: both begin again.
            forgiven = original.num_faults - compiled.counts[3]
            original.reset()
            compiled.reset()
            continue
        counts = [original.num_steps, original.num_missing, original.num_late, original.num_faults]
        counts[3] -= forgiven
        after = original.memory
        same = fault == kind_of(original.fault) and compiled.counts == counts
        undecided = fault is None and _is_undecided(bundle, observation, after)
        error = np.abs(expected - action) / np.maximum(np.abs(expected), 1.0)
        if not same or not (undecided or error.max() <= TOLERANCE):
            raise ValueError(
                "Expected the safety functions of the export to be those of the original; after "
                f"{index} steps they are not ({kind_of(original.fault)} and {fault}). Nothing was "
                "written."
            )
        compiled.load(after)


_ENDINGS = {
    "observations running were missing": "missing",
    "cycles running were missed": "late",
    "cycles were missed": "late_share",
    "is not what the model expects": "unfamiliar",
}


def kind_of(fault: str | None) -> str | None:
    """Return the kind of a fault that a controller describes, as in `FAULTS`."""
    if fault is None:
        return None
    return next(kind for ending, kind in _ENDINGS.items() if fault.endswith(ending))


def _observation(original: Controller, strength: float, random: np.random.Generator) -> np.ndarray:
    """Draw an observation, so far from what a monitor expects; any if there is none."""
    bundle, size = original.bundle, original.description.observation_size
    noise = random.normal(size=size)
    if original.levels is None:
        return noise.astype(np.float32)
    limits, arrays = bundle.description.monitor, bundle.arrays
    assert limits is not None
    # Levels are about the square of the strength.
    noise *= strength * limits.threshold**0.5
    spread = arrays["observations.scale"] * arrays["innovations.scale"]
    return (reference_expected(bundle, original.memory) + spread * noise).astype(np.float32)


def _is_near_threshold(original: Controller) -> bool:
    """Return whether rounding may decide if an observation is unfamiliar."""
    limits, levels = original.description.monitor, original.levels
    if limits is None or levels is None:
        return False
    return bool(abs(levels.max() - limits.threshold) <= _NEAR * limits.threshold)


def _error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest error, relative where numbers exceed one; NaN has to be NaN."""
    if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return math.inf
    error = np.abs(ours - theirs) / np.maximum(np.abs(ours), 1.0)
    return float(np.nan_to_num(error).max())


def _is_undecided(bundle: Bundle, observation: np.ndarray, after: np.ndarray) -> bool:
    """Return whether two choices are equally good up to rounding in a column of the action.

    Args:
        bundle: The original.
        observation: The observation.
        after: Memory of the reference after the step.
    """
    about = bundle.description
    state = after[1 : 1 + about.latent_size] if about.latent_size else observation
    if not about.choices or not after[0] or not np.isfinite(state).all():
        return False  # The action is not a new choice.
    logits = run_network(bundle, "policy", features(bundle, state))
    for column in np.split(logits, np.cumsum(about.choices)[:-1]):
        second, first = np.sort(column)[-2:]
        if first - second < MARGIN * max(abs(first), 1.0):
            return True
    return False
