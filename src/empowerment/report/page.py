"""The report of a run: one self-contained page that opens from disk."""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from matplotlib.figure import Figure

from empowerment.files import convert, read_json, write_atomic
from empowerment.report.elements import (
    figure_element,
    folded,
    inline,
    page,
    paragraphs,
    table,
    text,
)
from empowerment.report.live import LIVE, Live, live_section
from empowerment.report.metrics import METRICS
from empowerment.report.replay import REPLAY, replay_section
from empowerment.report.run_figures import (
    ROUNDS,
    draw_certificate,
    draw_landscapes,
    draw_rounds,
    draw_snapshots,
    draw_support,
    draw_training,
    draw_trajectory,
)
from empowerment.report.video import VIDEO

PAGE = "report.html"
"""File of the page in a run folder."""

_EVALUATION = "evaluation.json"


@dataclass(frozen=True)
class Section:
    """A figure of the report.

    Attributes:
        name: File name of the figure, without its suffix.
        title: Heading.
        needs: Files of the run folder without which there is no figure.
        draw: Draws the figure from the files of a run folder.
        caption: What is to be seen in it.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    draw: Callable[[Path], Figure | None]
    caption: str = ""


_LANDSCAPE = ("landscape.csv", "episode.csv")
_FIRST = (
    Section(
        "landscape",
        "Empowerment, and an episode of the policy",
        _LANDSCAPE,
        draw_trajectory,
        "Colour: the empowerment of each state in nats, as the agent estimates it. Line: one "
        "episode of the policy, from the circle to the star.",
    ),
    Section(
        "snapshots",
        "The same episode, from left to right",
        (VIDEO,),
        draw_snapshots,
        "Frames of the first half of the video, with their times in seconds.",
    ),
    Section(
        "landscapes",
        "Empowerment by plan length and estimator",
        _LANDSCAPE[:1],
        draw_landscapes,
        "Each picture is over the same states. Exact values are searched without the agent; "
        "pictures of plans of the same length have the same colours.",
    ),
    Section(
        "certificate",
        "Certificate: a lower bound, and an upper one with a confidence of 99 %",
        _LANDSCAPE[:1],
        draw_certificate,
        "Every state of the landscape from the least to the most empowered. With that confidence "
        "the truth lies within the band; dots are exact values. On the left in nats, on the right "
        "as the difference from the estimate.",
    ),
)
_LAST = (
    Section(
        "rounds",
        "What was imagined, and what happened",
        (ROUNDS,),
        draw_rounds,
        "In each round of learning: the mean empowerment in nats, and the number of steps before "
        "an episode ends, in the learnt world and in the environment.",
    ),
    Section(
        "support",
        "What is imagined where the log has been",
        ("support.json",),
        draw_support,
        "The share of what the policy imagines, observation and action, that is as near to "
        "the log as 99 % of it is to itself, by the number of steps imagined.",
    ),
    Section(
        "training",
        "Training",
        (METRICS,),
        draw_training,
        "Progress of each stage by the number of its updates. The bound of the channel is over all "
        "states, that of the policy over the states that it visits.",
    ),
)

_ACTORS = {"sampled": "sampled actions", "uniform": "random", "zero": "no action"}


def write_report(
    folder: Path,
    *,
    title: str,
    settings: dict[str, Any],
    versions: dict[str, str],
    command: str | None = None,
    sections: Sequence[Section] = (),
    live: Live | None = None,
    headline: Sequence[str] = (),
    caveats: Sequence[str] = (),
) -> Path:
    """Draw a run from the files in its folder, and put everything into one page.

    What is missing is left out. Of what is damaged the page says so, and has the rest.

    Args:
        folder: A run folder, with its evaluation, its episode and its landscapes if it is finished
            and has an environment.
        title: Title of the page.
        settings: Settings of the run, flat.
        versions: Versions of the packages that it was made with.
        command: Command line that made it, if known.
        sections: Further figures, of the particular system.
        live: How the system runs in the page, if it can.
        headline: The result in sentences, the most important one first.
        caveats: What the result depends on, in sentences.

    Returns:
        The page, `report.html`.

    Raises:
        ValueError: If a file is damaged, after the page with all others was written.
    """
    (folder / "figures").mkdir(exist_ok=True)
    parts: list[Callable[[], str]] = []
    if (folder / _EVALUATION).exists():
        parts.append(lambda: _results(folder))
    if live is not None and (folder / LIVE).exists():
        parts.append(lambda: live_section(folder, live))
    is_recorded = (folder / REPLAY).exists()
    parts.append(lambda: replay_section(folder) if is_recorded else _video(folder))
    parts += [
        lambda section=section: _figure(folder, section)
        for section in (*_FIRST, *sections, *_LAST)
        if all((folder / name).exists() for name in section.needs)
    ]
    body, problems = [], []
    for part in parts:
        try:
            body.append(part())
        except (ValueError, OSError) as error:
            problems.append(str(error))
            body.append(f"<p class='problem'>{html.escape(str(error))}</p>")
    body += [folded("Settings", table(settings)), folded("Versions", table(versions))]
    made = f"<h2>How it was made</h2><pre>{html.escape(command)}</pre>" if command else ""
    lines = [
        "<p>The policy seeks states from which it can do most, and has no other goal.</p>",
        *paragraphs(headline[:1], "headline"),
        *paragraphs(headline[1:]),
        *paragraphs(caveats),
        *body[:-2],
        made,
        *body[-2:],
    ]
    path = folder / PAGE
    write_atomic(path, page(title, lines).encode())
    if problems:
        raise ValueError(f"{problems[0]} The rest is in {path}.")
    return path


def _figure(folder: Path, section: Section) -> str:
    figure = section.draw(folder)
    if figure is None:
        return ""
    path = folder / "figures" / f"{section.name}.png"
    return figure_element(figure, section.title, section.caption, path)


def _video(folder: Path) -> str:
    if not (folder / VIDEO).exists():
        return ""
    source = inline((folder / VIDEO).read_bytes(), "video/mp4")
    return (
        f"<h2>An episode of the policy</h2><figure><video src='{source}' controls loop muted>"
        "</video><figcaption>Recorded in its environment, at its own speed.</figcaption></figure>"
    )


_Figures = dict[str, int | float | str | None]


class _Actor(msgspec.Struct):
    """The figures of an actor that every evaluation has."""

    empowerment_mean: float
    survived_fraction: float
    episode_length_mean: float


class _Evaluation(_Actor):
    uniform: _Actor
    episodes: int
    environment: str


def read_evaluation(folder: Path) -> dict[str, Any]:
    """Read the figures of an evaluation.

    Raises:
        ValueError: If the file is damaged.
    """
    path, what = folder / _EVALUATION, "the figures of an evaluation"
    figures = read_json(path, dict[str, int | float | str | _Figures | None], what=what)
    convert(figures, _Evaluation, what=what, source=path)
    return figures


def _results(folder: Path) -> str:
    return folded("Evaluation: all figures", table(beside(read_evaluation(folder))))


def beside(evaluation: dict[str, Any]) -> dict[str, Any]:
    """Put the figures of other actors in parentheses behind those of the policy."""
    others = {label: evaluation[who] for who, label in _ACTORS.items() if who in evaluation}
    rows = {}
    for name, value in evaluation.items():
        if name in _ACTORS:
            continue
        same = [f"{who}: {text(other[name])}" for who, other in others.items() if name in other]
        rows[name] = f"{text(value)} ({', '.join(same)})" if same else value
    return rows
