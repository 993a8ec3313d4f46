"""The report of a run: figures, an animation, and one page that opens from disk."""

import base64
import html
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure

from empowerment.files import write_atomic
from empowerment.report.biped import draw_fall, draw_pushes, draw_survival
from empowerment.report.figures import colour_limits, paint_landscape
from empowerment.report.rooms import draw_arrows, draw_distances, draw_positions
from empowerment.report.tables import Landscape, read_landscape, read_states
from empowerment.report.video import read_film

_NUM_SNAPSHOTS = 10
FILM = "episode.mp4"
"""The film of an episode, in a run folder."""

_TITLES = {
    "landscape": "Empowerment, and the way the policy takes through it",
    "snapshots": "The same episode, from left to right",
    "landscapes": "One step, many steps, and the truth",
    "certificate": "How sure the figures are: empowerment is between the two bounds",
    "positions": "Where balls are",
    "arrows": "Which way the policy pushes, on the mean over all that else may be",
    "distances": "How far balls keep from the walls and from each other",
    "survival": "How long the robot lasts",
    "pushes": "How hard it can be pushed",
    "fall": "Empowerment along an episode in which it is made to fall",
    "training": "Training",
}

_TABLES = {"survival": draw_survival, "pushes": draw_pushes, "fall": draw_fall}
"""What is drawn from a table of the same name."""

_ON = ("critic", "process_noise")
"""Settings that are on unless a flag turns them off; the others are off."""


def write_report(folder: Path) -> Path:
    """Draw a run from the files in its folder, and put everything into one page.

    Args:
        folder: A run folder with its evaluation, its episode and its landscapes.

    Returns:
        The page, `report.html`.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    settings = manifest["settings"]
    figures = {"training": _draw_training(folder)}
    if (folder / FILM).exists():
        figures["snapshots"] = _draw_snapshots(*read_film(folder / FILM))
    if (folder / "landscape.csv").exists():
        own = read_landscape(folder / "landscape.csv")
        path = read_states(folder / "episode.csv", own.names)
        figures["landscape"] = _draw_way(own, path)
        exact = [read_landscape(path) for path in sorted(folder.glob("exact-*.csv"))]
        figures["landscapes"] = _draw_beside([*exact, own])
        if own.lower is not None and own.upper is not None:
            figures["certificate"] = _draw_certificate(own, exact)
    if (folder / "positions.csv").exists():
        figures["positions"] = draw_positions(folder / "positions.csv")
        figures["arrows"] = draw_arrows(folder / "arrows.csv")
    if (folder / "walls.csv").exists():
        figures["distances"] = draw_distances(folder / "walls.csv", folder / "pairs.csv")
    for name, draw in _TABLES.items():
        if (folder / f"{name}.csv").exists():
            figures[name] = draw(folder / f"{name}.csv")
    pictures = folder / "figures"
    pictures.mkdir(exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(pictures / f"{name}.png", dpi=150)
        plt.close(figure)
    evaluation = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    page = _page(folder, settings, manifest["versions"], evaluation, list(figures))
    write_atomic(folder / "report.html", page.encode())
    return folder / "report.html"


def _draw_snapshots(frames: UInt8[np.ndarray, "frames height width 3"], fps: float) -> Figure:
    """Put frames of the first half, where things happen, beside each other."""
    chosen = np.linspace(0, len(frames) // 2, _NUM_SNAPSHOTS).round().astype(int)
    rows = 1 if frames.shape[2] <= frames.shape[1] else 2  # What is wide would be too small.
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


def _draw_way(landscape: Landscape, path: Float[np.ndarray, "times axes"]) -> Figure:
    """Draw the landscape with the episode on it."""
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
    """Give a path as often as it has to be drawn: an angle that leaves comes in again."""
    if landscape.names[0] != "angle":
        return [x]
    whole = np.unwrap(x)
    low, high = (round(end / (2 * np.pi)) for end in (whole.min(), whole.max()))
    return [whole - 2 * np.pi * turn for turn in range(low, high + 1)]


def _draw_beside(landscapes: list[Landscape]) -> Figure:
    """Draw landscapes beside each other; those of as many steps have the same colours."""
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


def _draw_certificate(own: Landscape, exact: list[Landscape]) -> Figure:
    """Draw both bounds over the states, in the order of the estimate, and the truth if known.

    To the left as they are, to the right by how much they differ from the estimate.
    """
    assert own.lower is not None
    assert own.upper is not None
    order = np.argsort(own.empowerment)
    ranks = np.arange(len(order))
    figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axes, zero in zip(all_axes, (np.zeros_like(own.empowerment), own.empowerment), strict=True):

        def shown(value: Float[np.ndarray, " states"], zero: np.ndarray = zero) -> np.ndarray:
            return (value - zero)[order]

        axes.fill_between(
            ranks, shown(own.lower), shown(own.upper), alpha=0.4, linewidth=0, label="certificate"
        )
        axes.plot(ranks, shown(own.empowerment), linewidth=1, label="variational bound")
        for landscape in exact:
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


def _draw_training(folder: Path) -> Figure:
    """Draw how each stage went, a line for each round: of channel and policy the bound."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    titles = {
        "model": "Model: data held out",
        "channel": "Channel: all states",
        "policy": "Policy: the states it goes through",
    }
    titles = {stage: title for stage, title in titles.items() if stage in _stages(lines)}
    figure, all_axes = plt.subplots(
        1, len(titles), figsize=(4.5 * len(titles), 3), layout="constrained"
    )
    for axes, (stage, label) in zip(all_axes, titles.items(), strict=True):
        what = "held_out" if stage == "model" else "bound"
        for number in sorted({line["round"] for line in lines}):
            chosen = [
                line
                for line in lines
                if (line["stage"], line["round"]) == (stage, number) and line["update"] > 0
            ]
            axes.plot(
                [line["update"] for line in chosen],
                [line[what] for line in chosen],
                label=f"round {number}",
            )
        if lines[-1]["round"]:
            axes.legend(fontsize=8)
        axes.set_xlabel("updates")
        axes.set_ylabel("evidence / nats" if stage == "model" else "variational bound / nats")
        axes.locator_params(axis="x", nbins=5)
        axes.set_title(label, fontsize=10)
    return figure


def _stages(lines: list[dict[str, Any]]) -> set[str]:
    return {line["stage"] for line in lines}


def _page(
    folder: Path,
    settings: dict[str, Any],
    versions: dict[str, str],
    evaluation: dict[str, Any],
    figures: list[str],
) -> str:
    """Write the page: everything is inside, nothing comes from the network."""

    def inside(name: str, kind: str) -> str:
        data = base64.b64encode((folder / name).read_bytes()).decode()
        return f"data:{kind};base64,{data}"

    def table(rows: dict[str, Any]) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(_text(value))}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table>{cells}</table>"

    labels = {"sampled": "actions drawn", "uniform": "random", "zero": "no action"}
    beside = {label: evaluation[who] for who, label in labels.items() if who in evaluation}
    numbers = {}
    for name, value in evaluation.items():
        others = [f"{who}: {_text(rest[name])}" for who, rest in beside.items() if name in rest]
        if name not in labels:
            numbers[name] = f"{_text(value)} ({', '.join(others)})" if others else value
    parts = [
        f"<h2>{_TITLES[name]}</h2><img src='{inside(f'figures/{name}.png', 'image/png')}' "
        f"alt='{_TITLES[name]}'>"
        for name in _TITLES
        if name in figures
    ]
    name = settings["env"] or settings["data"] or settings["world"]
    title = f"{name}: {settings['steps']}-step empowerment"
    command = f"empower train pendulum {_flags(settings)} --out {folder.name}"
    film = ""
    if (folder / FILM).exists():
        film = f"<video src='{inside(FILM, 'video/mp4')}' controls autoplay loop muted></video>"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>
body {{ font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
img, video {{ max-width: 100%; }} th {{ text-align: left; padding-right: 2rem; font-weight: 400; }}
code {{ background: #eee; padding: .1rem .3rem; }}
</style></head><body>
<h1>{html.escape(title)}</h1>
<p>The policy seeks states from which it can do most, and has no other goal. Made by
<code>{html.escape(command)}</code>.</p>
{film}
<h2>What it does</h2>{table(numbers)}
{"".join(parts)}
<h2>Settings</h2>{table(_flat(settings))}
<h2>Versions</h2>{table(versions)}
</body></html>
"""


def _flags(settings: dict[str, Any]) -> str:
    """Give the flags that make the preset `pendulum` this run."""
    words = []
    for name, value in _flat(settings).items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words += [] if value == (name in _ON) else [f"--{'' if value else 'no-'}{flag}"]
        elif value is not None and name != "noise":
            words.append(f"--{flag} {value}")
    return " ".join(words)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Put the settings of the model beside the others."""
    rest = {name: value for name, value in settings.items() if name != "model"}
    return {**rest, **(settings["model"] if settings["env"] or settings["data"] else {})}


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
