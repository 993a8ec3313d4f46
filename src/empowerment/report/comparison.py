"""Several runs side by side on one page."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from empowerment.files import write_atomic
from empowerment.report.elements import columns, figure_element, folded, page, paragraphs
from empowerment.report.figures import colour_limits, paint_landscape
from empowerment.report.landscape import read_landscape
from empowerment.report.metrics import METRICS
from empowerment.report.page import read_evaluation
from empowerment.report.run_figures import Curves, draw_curves, read_curves

_FIRST = ("environment", "episodes", "empowerment_mean", "survived_fraction", "episode_length_mean")
"""Figures that come first in the table."""

_LANDSCAPE = "landscape.csv"


@dataclass(frozen=True)
class Compared:
    """A run of a comparison.

    Attributes:
        name: What it is called on the page.
        folder: Its folder, with its evaluation.
        settings: Its settings, flat.
        noise: Scales of the assumed noise, if they are stated.
        command: Command line that made it, if known.
    """

    name: str
    folder: Path
    settings: Mapping[str, Any]
    noise: Sequence[float] | None = None
    command: str | None = None


def write_comparison(runs: Sequence[Compared], path: Path) -> Path:
    """Write a page that compares runs: their figures, settings, landscapes and training.

    Args:
        runs: Runs that were evaluated, with different names.
        path: The page.

    Returns:
        The page.
    """
    names = [run.name for run in runs]
    found = {run.name: read_evaluation(run.folder) for run in runs}
    figures = {
        name: [_shown(each.get(name)) for each in found.values()]
        for name in dict.fromkeys([*_FIRST, *itertools.chain(*found.values())])
        if not any(isinstance(each.get(name), dict) for each in found.values())
    }
    random = {
        f"{name} (random)": [_shown(each["uniform"].get(name)) for each in found.values()]
        for name in found[names[0]]["uniform"]
    }
    settings = {
        name: [run.settings.get(name) for run in runs]
        for name in dict.fromkeys(itertools.chain(*(run.settings for run in runs)))
    }
    different = {
        name: values for name, values in settings.items() if len(set(map(str, values))) > 1
    }
    unlike = _incomparable(runs)
    made = {run.name: (run.command,) for run in runs if run.command}
    lines = [
        *paragraphs([_headline(found, is_fair=not unlike)], "headline"),
        *paragraphs(["Each run is of one seed: a difference can be chance.", *unlike]),
        "<h2>Figures of the evaluations</h2>",
        "<p>Means over the episodes of each run; the unit of empowerment is the nat.</p>",
        columns({**figures, **random}, names),
        "<h2>Settings in which they differ</h2>",
        columns(different, names) if different else "<p>None.</p>",
        _landscapes(runs),
        _training(runs),
        folded("How they were made", columns(made)) if made else "",
    ]
    write_atomic(path, page(f"Comparison of {', '.join(names)}", lines).encode())
    return path


def _shown(value: Any) -> Any:
    return "not known" if value is None else value


def _headline(found: Mapping[str, Mapping[str, Any]], *, is_fair: bool) -> str:
    """Name the run whose policy is in the most empowered states, if that can be compared."""
    values = {name: f"{figures['empowerment_mean']:.3f}" for name, figures in found.items()}
    each = "; ".join(f"{name}: {value} nats" for name, value in values.items())
    if not is_fair or len(set(values.values())) == 1:
        return f"Mean empowerment of the states that each policy visits: {each}."
    best = max(found, key=lambda name: found[name]["empowerment_mean"])
    return f"The policy of {best} is in the most empowered states on average ({each})."


def _incomparable(runs: Sequence[Compared]) -> list[str]:
    """State why the empowerment of runs cannot be compared, if so."""
    sentences = []
    if len({str(run.settings.get("agent.steps")) for run in runs}) > 1:
        sentences.append("Their plans are of different lengths: their nats cannot be compared.")
    if len({str(run.noise) for run in runs}) > 1:
        sentences.append("They assume different noise: their nats cannot be compared.")
    return sentences


def _landscapes(runs: Sequence[Compared]) -> str:
    """Draw the landscapes that there are; those of as many steps share a colour scale."""
    drawn = [
        (run.name, landscape)
        for run in runs
        if (run.folder / _LANDSCAPE).exists()
        and len((landscape := read_landscape(run.folder / _LANDSCAPE)).names) <= 2
    ]
    if not drawn:
        return ""
    count = len(drawn)
    figure, all_axes = plt.subplots(
        1, count, figsize=(4.4 * count, 3.6), layout="constrained", squeeze=False
    )
    limits: dict[tuple[str, int], tuple[float, float]] = {}
    for _, each in drawn:
        kind, (low, high) = (str(each.names), each.about["steps"]), colour_limits(each)
        before = limits.get(kind, (low, high))
        limits[kind] = min(low, before[0]), max(high, before[1])
    for axes, (name, each) in zip(all_axes[0], drawn, strict=True):
        steps = each.about["steps"]
        paint_landscape(figure, axes, each, limits=limits[str(each.names), steps])
        axes.set_title(_plain(f"{name}: {steps} step{'s' * (steps > 1)}"), fontsize=10)
    caption = "Empowerment in nats. Pictures of plans of the same length have the same colours."
    return figure_element(figure, "Landscapes", caption)


def _training(runs: Sequence[Compared]) -> str:
    """Draw the training of all runs, stage by stage: of each the last round."""
    curves: Curves = {}
    for run in runs:
        if not (run.folder / METRICS).exists():
            continue
        for stage, lines in read_curves(run.folder).items():
            if lines:
                curves.setdefault(stage, {})[f"run {_plain(run.name)}"] = list(lines.values())[-1]
    figure: Figure | None = draw_curves(curves)
    if figure is None:
        return ""
    return figure_element(figure, "Training", "Each stage by the number of its updates.")


def _plain(name: str) -> str:
    """Return a name that matplotlib does not take for a formula."""
    return name.replace("$", r"\$")
