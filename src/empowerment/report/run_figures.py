"""Figures of any run, drawn from the files in its folder."""

from pathlib import Path
from typing import Annotated

import matplotlib.pyplot as plt
import msgspec
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from empowerment.files import decode, read_bytes, read_columns, read_json
from empowerment.report.figures import colour_limits, paint_landscape
from empowerment.report.landscape import Landscape, read_landscape
from empowerment.report.metrics import METRICS, MOST_METRICS
from empowerment.report.video import VIDEO, read_video

_NUM_SNAPSHOTS = 10


def draw_snapshots(folder: Path) -> Figure:
    """Draw frames of the first half of the video, where most happens, side by side."""
    frames, fps = read_video(folder / VIDEO)
    chosen = np.linspace(0, len(frames) // 2, _NUM_SNAPSHOTS).round().astype(int)
    rows = 1 if frames.shape[2] <= frames.shape[1] else 2  # Wide frames would be too small.
    columns, shape = _NUM_SNAPSHOTS // rows, frames.shape[1] / frames.shape[2]
    figure, all_axes = plt.subplots(
        rows,
        columns,
        figsize=(12, rows * (12 / columns * shape + 0.25)),
        layout="constrained",
        squeeze=False,
    )
    for axes, index in zip(all_axes.ravel(), chosen, strict=True):
        axes.imshow(frames[index])
        axes.set_axis_off()
        axes.set_title(f"{index / fps:.2f} s", fontsize=9, y=-0.22)
    return figure


class _Support(msgspec.Struct):
    share: float
    by_time: list[float]


def draw_support(folder: Path) -> Figure:
    """Draw how much of what is imagined the log has seen, by the time since the beginning."""
    found = read_json(folder / "support.json", _Support, what="the support of a run by its log")
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    axes.plot(np.arange(len(found.by_time)), found.by_time, label="imagined by the policy")
    axes.axhline(0.99, color="0.6", linewidth=1, label="the log itself")
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("steps imagined")
    axes.set_ylabel("share where the log has been")
    axes.legend(fontsize=8)
    return figure


def draw_trajectory(folder: Path) -> Figure:
    """Draw the landscape with the episode on it."""
    landscape = read_landscape(folder / "landscape.csv")
    path = read_columns(folder / "episode.csv", landscape.names)
    figure, axes = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    paint_landscape(figure, axes, landscape)
    if path.shape[1] == 2:
        x, y = path.T
        for style in ({"color": "white", "linewidth": 3}, {"color": "crimson", "linewidth": 1.5}):
            for turn in _turns(landscape, x):
                axes.plot(turn, y, **style)
        axes.set_xlim(landscape.states[:, 0].min(), landscape.states[:, 0].max())
        mark = {"linestyle": "none", "clip_on": False, "zorder": 5}
        axes.plot(
            *path[0], "o", color="white", markeredgecolor="crimson", ms=9, label="start", **mark
        )
        axes.plot(
            *path[-1], "*", color="crimson", markeredgecolor="white", ms=14, label="end", **mark
        )
        axes.legend(loc="upper right", fontsize=8)
    return figure


def _turns(
    landscape: Landscape, x: Float[np.ndarray, " times"]
) -> list[Float[np.ndarray, " times"]]:
    """Return copies of a path shifted by full turns: an angle that leaves comes in again."""
    if landscape.names[0] not in landscape.about.get("angles", ()):
        return [x]
    whole = np.unwrap(x)
    low, high = (round(end / (2 * np.pi)) for end in (whole.min(), whole.max()))
    return [whole - 2 * np.pi * turn for turn in range(low, high + 1)]


def draw_landscapes(folder: Path) -> Figure:
    """Draw landscapes side by side; those of as many steps share a colour scale."""
    landscapes = [*_exact(folder), read_landscape(folder / "landscape.csv")]
    count = len(landscapes)
    figure, all_axes = plt.subplots(
        1, count, figsize=(4.4 * count, 3.4), layout="constrained", squeeze=False, sharey=True
    )
    of_steps = {each.about["steps"]: colour_limits(each) for each in reversed(landscapes)}
    for axes, landscape in zip(all_axes[0], landscapes, strict=True):
        steps, estimator = landscape.about["steps"], landscape.about["estimator"]
        paint_landscape(figure, axes, landscape, limits=of_steps[steps])
        axes.label_outer()
        axes.set_title(f"{steps} step{'s' * (steps > 1)}, {estimator}", fontsize=10)
    return figure


def draw_certificate(folder: Path) -> Figure | None:
    """Draw both bounds over the states, ordered by the estimate, and the truth if known.

    On the left as they are, on the right as differences from the estimate.
    """
    own = read_landscape(folder / "landscape.csv")
    if own.lower is None or own.upper is None:
        return None
    lower, upper = own.lower, own.upper
    order = np.argsort(own.empowerment)
    ranks = np.arange(len(order))
    figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axes, zero in zip(all_axes, (np.zeros_like(own.empowerment), own.empowerment), strict=True):

        def shown(value: Float[np.ndarray, " states"], zero: np.ndarray = zero) -> np.ndarray:
            return (value - zero)[order]

        axes.fill_between(
            ranks, shown(lower), shown(upper), alpha=0.4, linewidth=0, label="certificate"
        )
        axes.plot(ranks, shown(own.empowerment), linewidth=1, label="variational bound")
        for landscape in _exact(folder):
            if landscape.about["steps"] == own.about["steps"]:
                axes.plot(
                    ranks, shown(landscape.empowerment), ".", ms=2, color="black", label="exact"
                )
        axes.set_xlabel("states, ordered by the variational bound")
        axes.margins(x=0.01)
    all_axes[0].set_ylabel("empowerment / nats")
    all_axes[1].set_ylabel("difference from the bound / nats")
    all_axes[0].legend(fontsize=8)
    return figure


def _exact(folder: Path) -> list[Landscape]:
    return [read_landscape(path) for path in sorted(folder.glob("exact-*.csv"))]


_STAGES = {
    "model": ("Model: validation data", "validation", "evidence / nats"),
    "channel": ("Channel: the whole region", "bound", "variational bound / nats"),
    "policy": ("Policy: states of its rollouts", "bound", "variational bound / nats"),
}


class _Metrics(msgspec.Struct):
    """A line of the metrics, as far as it is drawn."""

    stage: str
    round: int
    update: int
    bound: float | None = None
    validation: float | None = None


Curves = dict[str, dict[str, list[tuple[int, float]]]]
"""Updates and diagnostics by stage, then by the label of a line."""


def read_curves(folder: Path) -> Curves:
    """Read the diagnostics of each stage, a line for each round."""
    path = folder / METRICS
    # Runs of earlier versions have another name for the evidence of validation data.
    text = read_bytes(path, most=MOST_METRICS).replace(b'"held_out"', b'"validation"')
    curves: Curves = {}
    for row in text.splitlines():
        line: _Metrics = decode(row, _Metrics, what="the metrics of a run", source=path)
        if line.stage in _STAGES:
            lines = curves.setdefault(line.stage, {})
            value = getattr(line, _STAGES[line.stage][1])
            if line.update > 0:
                lines.setdefault(f"round {line.round}", []).append((line.update, value))
    return curves


def draw_training(folder: Path) -> Figure | None:
    """Draw the diagnostics of each stage, a line for each round."""
    return draw_curves(read_curves(folder))


def draw_curves(curves: Curves) -> Figure | None:
    """Draw diagnostics, stages side by side; none if there are none."""
    stages = [stage for stage in _STAGES if stage in curves]
    if not stages:
        return None
    figure, all_axes = plt.subplots(
        1, len(stages), figsize=(4.5 * len(stages), 3), layout="constrained", squeeze=False
    )
    names = {name for lines in curves.values() for name in lines}
    for axes, stage in zip(all_axes[0], stages, strict=True):
        title, _, label = _STAGES[stage]
        for name, line in curves[stage].items():
            marker = "" if len(line) > 1 else "o"  # A line of one point is not seen.
            axes.plot(*zip(*line, strict=True), marker=marker, label=name)
        if len(names) > 1:
            axes.legend(fontsize=8)
        axes.set_xlabel("updates")
        axes.set_ylabel(label)
        axes.locator_params(axis="x", nbins=5)
        axes.set_title(title, fontsize=10)
    return figure


ROUNDS = "rounds.json"
"""File in a run folder that says what its rounds imagined, and what happened."""


class _Outcome(msgspec.Struct):
    empowerment: float
    length: float


class _Comparison(msgspec.Struct):
    imagined: _Outcome
    real: Annotated[list[_Outcome], msgspec.Meta(min_length=1)]


class Comparisons(msgspec.Struct):
    """What the rounds of a run imagined, what happened, and which one is kept."""

    kept: int
    rounds: list[_Comparison]


def read_rounds(folder: Path) -> Comparisons:
    """Read what the rounds of a run imagined, and what happened."""
    return read_json(folder / ROUNDS, Comparisons, what="the rounds of a run")


def draw_rounds(folder: Path) -> Figure | None:
    """Draw what each round imagined, what happened, and which round is kept."""
    found = read_rounds(folder)
    if not found.rounds or not 0 <= found.kept < len(found.rounds):
        return None
    figure, all_axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    labels = {"empowerment": "empowerment / nats", "length": "steps before the end"}
    for axes, (name, label) in zip(all_axes, labels.items(), strict=True):
        numbers = range(len(found.rounds))
        imagined = [getattr(each.imagined, name) for each in found.rounds]
        real = [getattr(each.real[-1], name) for each in found.rounds]
        axes.plot(numbers, imagined, "o--", label="imagined")
        axes.plot(numbers, real, "s-", label="real")
        axes.axvline(found.kept, color="0.8", zorder=0, label="kept")
        axes.set_xlabel("round")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    all_axes[0].legend(fontsize=8)
    return figure
