"""Calibration of the monitor of a controller on recorded episodes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from empowerment.controller.bundle import Bundle
from empowerment.controller.description import MonitorLimits
from empowerment.controller.monitor import Innovations, Smoothed
from empowerment.controller.numpy_engine import NumpyEngine

FALSE_ALARMS_PER_STEP = 1e-4
"""Default of the rate of false alarms."""

_WEIGHT, _RUNNING, _SETTLING = 0.1, 3, 10
_MOST = 25.0
"""Square that counts at most, of five times the spread: of rare contacts, ends and glitches."""

_LEAST_STEPS = 200
"""Recorded steps below which there is no monitor."""

_BLOCK = 50
"""Steps of a block: long against what the statistic remembers, so that blocks are exchangeable."""

_LEAST_SPREAD = 1e-3
"""Lower bound of the spread of innovations, in units of the scaled observation."""

_LARGEST_SPREAD = 1e6
"""Spread, in the same units, of a model that has not learnt what is observed."""

_LEAST_THRESHOLD, _LARGEST_THRESHOLD = 4.0, 20.0
"""Above the first a single observation of any size is no alarm, beyond usual ones; above the second
what is usual is not to be told from what is not."""

_QUANTILE, _NORMAL_QUANTILE = 0.9, 1.6449
"""The spread is from this quantile of the sizes of innovations, as of normal ones: it does not
depend on how large the rare large ones are."""

Rows = Float[np.ndarray, "rows _"]


def with_monitor(
    bundle: Bundle,
    layers: tuple[str, ...],
    decoder: Mapping[str, np.ndarray],
    episodes: Iterable[tuple[np.ndarray, np.ndarray]],
    *,
    rate: float = FALSE_ALARMS_PER_STEP,
) -> Bundle:
    r"""Add a monitor to a bundle, calibrated on episodes that the model was not trained on.

    The controller's own filter follows the episodes. Blocks of steps of new data like these are
    exchangeable with those of the episodes, so that the statistic exceeds the $k$-th largest of
    their $N$ maxima in a share of $k / (N + 1)$ of new blocks, whatever its distribution. The
    threshold is that of the largest $k$ that the rate allows. Where there are too few steps even
    for $k = 1$, the stated rate is that of $k = 1$, and the threshold is raised by the square root
    of its ratio to the rate that is wanted, as for a tail that falls as the inverse square, but at
    most to 20: the raise is for safety, and no rate is claimed for it.

    Args:
        bundle: A controller bundle with a filter.
        layers: Activations of the decoder.
        decoder: Arrays of the decoder by name.
        episodes: Observations of each, and its actions, one fewer.
        rate: False alarms per step that are allowed.

    Returns:
        The bundle with a monitor; without one if there are fewer than 200 recorded steps to judge,
        or what is usual is as far from the model as what a monitor is to find.
    """
    size = bundle.description.observation_size

    def build(limits: MonitorLimits, spread: np.ndarray) -> Bundle:
        about = replace(
            bundle.description,
            networks={**bundle.description.networks, "decoder": layers},
            monitor=limits,
        )
        scale = {"innovations.scale": spread.astype(np.float32)}
        return Bundle(about, {**bundle.arrays, **decoder, **scale})

    limits = MonitorLimits(1.0, 1.0, 1, _MOST, _WEIGHT, _RUNNING, _SETTLING)
    unscaled = build(limits, np.ones(size))
    runs = [_innovations(unscaled, *episode) for episode in episodes]
    num_steps = sum(map(len, runs))
    if num_steps < _LEAST_STEPS:
        return bundle
    sizes = np.abs(np.concatenate(runs))
    spread = np.quantile(sizes, _QUANTILE, axis=0) / _NORMAL_QUANTILE
    spread = np.maximum(spread, _LEAST_SPREAD)
    if not (spread <= _LARGEST_SPREAD).all():
        return bundle
    peaks = np.sort(np.concatenate([_peaks(run / spread, limits) for run in runs]))[::-1]
    order = max(int(rate * (num_steps + _BLOCK)), 1)
    stated = order / (num_steps + _BLOCK)
    proven = max(float(peaks[order - 1]), _LEAST_THRESHOLD)
    if proven > _LARGEST_THRESHOLD:
        return bundle
    threshold = min(proven * max(stated / rate, 1.0) ** 0.5, _LARGEST_THRESHOLD)
    limits = replace(limits, threshold=threshold, false_alarms_per_step=stated, num_steps=num_steps)
    return build(limits, spread)


def _innovations(bundle: Bundle, observations: np.ndarray, actions: np.ndarray) -> Rows:
    """Follow an episode as the controller does; return the innovations that would be judged."""
    engine, limits = NumpyEngine(bundle), bundle.description.monitor
    assert limits is not None
    innovations, judged = Innovations(bundle, engine), []
    waiting = Smoothed(limits, observations.shape[1])
    for time, observation in enumerate(observations.astype(np.float32)):
        if time:
            engine.set_action(np.clip(actions[time - 1], *bundle.limits).astype(np.float32))
        engine.observation = observation
        with np.errstate(all="ignore"):
            is_used = engine.run(seen=bool(np.isfinite(observation).all()))
        if not is_used:
            waiting.miss()
        elif not waiting.is_settling():
            judged.append(innovations(observation))
    return np.array(judged, float).reshape(len(judged), observations.shape[1])


def _peaks(innovations: Rows, limits: MonitorLimits) -> Float[np.ndarray, " blocks"]:
    """Return the largest threshold at which there would be an alarm, in each block of steps."""
    smoothed = Smoothed(limits, innovations.shape[1])
    levels = np.array([smoothed.take(each) for each in innovations])
    if len(levels) < limits.running:
        return np.zeros(0)
    lasting = np.lib.stride_tricks.sliding_window_view(levels, limits.running).min(axis=1)
    return np.maximum.reduceat(lasting, np.arange(0, len(lasting), _BLOCK))
