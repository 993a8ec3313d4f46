"""A page of trainings that are under way, drawn again and again from their metrics."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from empowerment.files import write_atomic
from empowerment.report.charts import NUM_COLOURS, Line, Point, chart, swatch
from empowerment.report.elements import ASSETS, page
from empowerment.report.metrics import Metrics
from empowerment.report.run_figures import Comparisons


@dataclass(frozen=True)
class Training:
    """A run that is watched.

    Attributes:
        name: What it is called on the page.
        state: How far it is, in words.
        done: Share of the updates of its present stage that are made, if it is known.
        metrics: Its metrics so far.
        rounds: What its rounds imagined, and what happened, as far as it has compared them.
        fits: Error of the fit to the bound in nats, by the number of the round, where it is fitted.
        problems: What is wrong with its files, in sentences.
    """

    name: str
    state: str
    done: float | None = None
    metrics: Sequence[Metrics] = ()
    rounds: Comparisons | None = None
    fits: dict[int, float] = field(default_factory=dict)
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class _Panel:
    """A chart of a diagnostic over the updates of a stage."""

    stage: str
    name: str
    title: str
    unit: str
    logarithmic: bool = False


_GRADIENT = "Norm of the gradient, before clipping"
_SECTIONS = {
    "Model": (
        _Panel("model", "validation", "Evidence of validation data", "nats a row"),
        _Panel("model", "gradient_norm", _GRADIENT, "", logarithmic=True),
    ),
    "Channel": (
        _Panel("channel", "bound", "Bound over the whole region", "nats"),
        _Panel("channel", "gradient_norm", _GRADIENT, "", logarithmic=True),
    ),
    "Fit to the bound": (
        _Panel("policy", "visited_error", "Error where the policy goes", "nats", logarithmic=True),
        _Panel("policy", "best_error", "Error at the best tenth of it", "nats", logarithmic=True),
    ),
    "Policy": (
        _Panel("policy", "bound", "Bound at the states of its rollouts", "nats"),
        _Panel("policy", "episode_gain", "Gain of episodes from their start", "nats a step"),
        _Panel("policy", "gradient_norm", _GRADIENT, "", logarithmic=True),
    ),
}
"""The charts; an error that is fitted begins with the one of the fit before it is refined."""

_OUTCOMES = {"empowerment": ("Empowerment", "nats"), "length": ("Steps before the end", "")}


def write_watch(
    trainings: Sequence[Training],
    path: Path,
    *,
    note: str,
    every: float | None,
    before: bytes = b"",
) -> bytes:
    """Write the page, unless it is as before.

    Args:
        trainings: The runs.
        path: The page.
        note: What it shows and when, in a sentence.
        every: Seconds after which the page loads itself again; none if nothing more is to come.
        before: What the file has.

    Returns:
        What the file has now.
    """
    is_of_rounds = any(each.round > 0 for training in trainings for each in training.metrics)
    marks = " At the end of a line: its round (r1 is round 1); earlier rounds are faint."
    lines = [
        f"<p>{html.escape(note)}{marks if is_of_rounds else ''}</p>",
        *_refresh(every),
        "<ul class='runs'>",
        *(_entry(training, style) for style, training in enumerate(trainings)),
        "</ul>",
        *(_section(title, panels, trainings) for title, panels in _SECTIONS.items()),
        _rounds(trainings),
    ]
    text = page(f"Training: {', '.join(each.name for each in trainings)}", lines).encode()
    if text != before:
        write_atomic(path, text)
    return text


def _refresh(every: float | None) -> list[str]:
    """Return what loads the page again, which the reader can stop."""
    if every is None:
        return []
    script = (ASSETS / "watch.js").read_text("utf-8")
    return [
        "<p><label><input type='checkbox' id='refresh' checked "
        f"data-seconds='{every:g}'> Load this page again every {every:g} s</label></p>",
        f"<script>\n{script}</script>",
        "<noscript><p>Load the page again for newer figures.</p></noscript>",
    ]


def _entry(training: Training, style: int) -> str:
    name, state = html.escape(training.name), html.escape(training.state)
    bar = ""
    if training.done is not None:
        bar = f" <progress value='{training.done:.3f}' aria-label='Share of this stage'></progress>"
    wrong = "".join(f"<p class='problem'>{html.escape(each)}</p>" for each in training.problems)
    return f"<li>{swatch(style)} <strong>{name}</strong>: {state}{bar}{wrong}</li>"


def _section(title: str, panels: Iterable[_Panel], trainings: Sequence[Training]) -> str:
    charts = [
        chart(
            panel.title,
            [line for style, each in enumerate(trainings) for line in _lines(each, panel, style)],
            across="updates",
            unit=panel.unit,
            logarithmic=panel.logarithmic,
        )
        for panel in panels
    ]
    return _together(title, charts)


def _lines(training: Training, panel: _Panel, style: int) -> list[Line]:
    """Return a line for each round; all but the last stand back."""
    points: dict[int, list[Point]] = {}
    for each in training.metrics:
        value = each.values.get(panel.name)
        # What is there before the first update is far off, and would flatten the rest.
        if each.stage == panel.stage and each.update > 0 and value is not None:
            points.setdefault(each.round, []).append((each.update, value))
    if panel.name == "visited_error":
        for number, error in training.fits.items():
            points.setdefault(number, []).insert(0, (0.0, error))
    last, several = max(points, default=0), len(points) > 1
    return [
        Line(
            f"{training.name}, round {number}" if several else training.name,
            points[number],
            style,
            mark=f"r{number}" if several else "",
            is_faint=number < last,
        )
        for number in sorted(points)
    ]


def _rounds(trainings: Sequence[Training]) -> str:
    """Draw what rounds imagined and what happened."""
    charts = []
    for name, (title, unit) in _OUTCOMES.items():
        lines = []
        for style, training in enumerate(trainings):
            rounds = [] if training.rounds is None else training.rounds.rounds
            imagined = [(n, getattr(each.imagined, name)) for n, each in enumerate(rounds)]
            real = [(n, getattr(each.real[-1], name)) for n, each in enumerate(rounds)]
            own = f"{training.name}, "
            lines.append(Line(f"{own}imagined", imagined, style + NUM_COLOURS, has_dots=True))
            lines.append(Line(f"{own}real", real, style, has_dots=True))
        charts.append(chart(title, lines, across="round", unit=unit, whole=True))
    return _together("Rounds: what was imagined, dashed, and what happened", charts)


def _together(title: str, charts: Sequence[str]) -> str:
    if not any(charts):
        return ""
    return f"<h2>{html.escape(title)}</h2><div class='charts'>{''.join(charts)}</div>"
