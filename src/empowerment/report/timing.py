"""Histograms of the timing of a real-time loop."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from empowerment.controller.loop import Timing
from empowerment.report.figures import check_drawable

_BINS = 60
_LEAST = 1e-2
"""Microseconds: the left end of the histograms."""


def draw_timing(timing: Timing, path: Path) -> None:
    """Draw histograms of computing time and of jitter."""
    check_drawable((), path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained", sharey=True)
    try:
        _histogram(axes[0], timing.computing, "step / µs")
        _histogram(axes[1], timing.jitter, "jitter / µs")
        axes[0].set_ylabel("cycles")
        figure.suptitle(
            f"{timing.rate:g} Hz, {len(timing.begun)} cycles, {timing.num_missed} missed",
            fontsize=10,
        )
        figure.savefig(path, dpi=160)
    finally:
        plt.close(figure)


def _histogram(axes: Axes, values: Float[np.ndarray, " values"], label: str) -> None:
    """Draw a histogram over a logarithmic axis, with a line at the 99th percentile."""
    axes.set_xlabel(label)
    if not values.size:
        return
    shown = np.maximum(1e6 * values, _LEAST)
    first, last = np.floor(np.log10(shown.min())), np.floor(np.log10(shown.max())) + 1
    edges = np.logspace(first, last, _BINS)
    axes.hist(shown, bins=edges.tolist(), color="tab:blue")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    percentile = float(np.percentile(shown, 99))
    axes.axvline(percentile, color="tab:red", linewidth=1, label=f"p99 {percentile:.3g}")
    axes.legend(fontsize=8)
