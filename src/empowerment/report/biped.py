"""Figures of a robot with two legs, drawn from tables."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from empowerment.report.tables import read_states

_WHO = {
    "policy": "policy, mean action",
    "sampled": "policy, actions drawn",
    "uniform": "uniformly random",
    "zero": "no action",
}


def draw_survival(path: Path) -> Figure:
    """Draw how many robots have not fallen after so many steps, for each who acted."""
    step, *shares = read_states(path, ["step", *_WHO]).T
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for label, share in zip(_WHO.values(), shares, strict=True):
        axes.plot(step, share, label=label)
    axes.set(xlabel="steps", ylabel="share not fallen", ylim=(-0.03, 1.03))
    axes.legend(fontsize=8)
    return figure


def draw_pushes(path: Path) -> Figure:
    """Draw how many robots withstand a push, by its strength and which way it goes."""
    strength, forwards, backwards = read_states(path, ["strength", "forwards", "backwards"]).T
    figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
    axes.plot(strength, forwards, "o-", ms=4, label="forwards")
    axes.plot(strength, backwards, "s--", ms=4, label="backwards")
    axes.legend(fontsize=8)
    axes.set(xlabel="impulse on the hull / N s", ylabel="share not fallen", ylim=(-0.03, 1.03))
    return figure


def draw_fall(path: Path) -> Figure:
    """Draw the empowerment, and the height of the hull, along an episode that ends in a fall."""
    step, empowerment, height, over = read_states(path, ["step", "empowerment", "height", "over"]).T
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(6, 4.2), layout="constrained", sharex=True)
    upper.plot(step, empowerment)
    upper.set(ylabel="empowerment / nats")
    lower.plot(step, height, color="tab:green")
    lower.set(ylabel="height of the hull", xlabel="steps")
    if np.any(over > 0):
        for axes in (upper, lower):
            axes.axvline(step[np.argmax(over > 0)], color="crimson", linestyle=":")
    return figure
