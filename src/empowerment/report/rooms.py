"""Figures of balls in a box, drawn from tables."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from empowerment.report.tables import read_states

_WHO = {
    "uniform": "uniformly random",
    "sampled": "policy, actions drawn",
    "policy": "policy, mean action",
}


def draw_positions(path: Path) -> Figure:
    """Draw how often balls are where, for each who acted."""
    table = read_states(path, ["x", "y", *_WHO])
    count = round(len(table) ** 0.5)
    side = table[:, :2].min() + table[:, :2].max()
    figure, all_axes = plt.subplots(1, len(_WHO), figsize=(11, 4.1), layout="constrained")
    for axes, label, share in zip(all_axes, _WHO.values(), table[:, 2:].T, strict=True):
        axes.imshow(
            share.reshape(count, count).T,
            extent=(0, side, 0, side),
            origin="lower",
            cmap="Blues",
            vmin=0,
        )
        axes.set_title(label, fontsize=10)
    return figure


def draw_arrows(path: Path) -> Figure:
    """Draw which way the policy pushes."""
    x, y, push_x, push_y = read_states(path, ["x", "y", "push_x", "push_y"]).T
    figure, axes = plt.subplots(figsize=(4.8, 4.8), layout="constrained")
    axes.quiver(x, y, push_x, push_y, np.hypot(push_x, push_y), cmap="viridis", pivot="mid")
    side = x.min() + x.max()
    axes.set(xlim=(0, side), ylim=(0, side), aspect="equal", xlabel="x", ylabel="y")
    return figure


def draw_distances(walls: Path, pairs: Path) -> Figure:
    """Draw how far balls keep from the walls and from each other."""
    figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    labels = "distance to the closest wall", "distance between two balls"
    for axes, path, label in zip(all_axes, (walls, pairs), labels, strict=True):
        distance, *shares = read_states(path, ["distance", *_WHO]).T
        for who, share in zip(_WHO.values(), shares, strict=True):
            axes.plot(distance, share, drawstyle="steps-mid", label=who)
        axes.set(xlabel=label, ylabel="density", ylim=(0, None))
    all_axes[0].legend(fontsize=8)
    return figure
