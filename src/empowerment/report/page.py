"""The report of a run: one self-contained page that opens from disk."""

import base64
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import msgspec
from matplotlib.figure import Figure

from empowerment.files import convert, read_json, write_atomic
from empowerment.report.run_figures import (
    draw_certificate,
    draw_landscapes,
    draw_rounds,
    draw_snapshots,
    draw_support,
    draw_training,
    draw_trajectory,
)
from empowerment.report.video import VIDEO


@dataclass(frozen=True)
class Section:
    """A figure of the report.

    Attributes:
        name: File name of the figure, without its suffix.
        title: Heading.
        needs: Files of the run folder without which there is no figure.
        draw: Draws the figure from the files of a run folder.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    draw: Callable[[Path], Figure | None]


_LANDSCAPE = ("landscape.csv", "episode.csv")
_FIRST = (
    Section("landscape", "Empowerment, and an episode of the policy", _LANDSCAPE, draw_trajectory),
    Section("snapshots", "The same episode, from left to right", (VIDEO,), draw_snapshots),
    Section(
        "landscapes", "Empowerment by plan length and estimator", _LANDSCAPE[:1], draw_landscapes
    ),
    Section(
        "certificate",
        "Certificate: a lower bound, and an upper one with a confidence of 99 %",
        _LANDSCAPE[:1],
        draw_certificate,
    ),
)
_LAST = (
    Section("rounds", "What was imagined, and what happened", ("rounds.json",), draw_rounds),
    Section("support", "What is imagined where the log has been", ("support.json",), draw_support),
    Section("training", "Training", ("metrics.jsonl",), draw_training),
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
) -> Path:
    """Draw a run from the files in its folder, and put everything into one page.

    Args:
        folder: A run folder with its evaluation, its episode and its landscapes; a run from a log
            alone has none of them.
        title: Title of the page.
        settings: Settings of the run, flat.
        versions: Versions of the packages that it was made with.
        command: Command line that made it, if known.
        sections: Further figures, of the particular system.

    Returns:
        The page, `report.html`.
    """
    evaluation = ""
    if (folder / "evaluation.json").exists():
        evaluation = f"<h2>Evaluation</h2>{_table(_beside(read_evaluation(folder)))}"
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    parts = []
    for section in (*_FIRST, *sections, *_LAST):
        if not all((folder / name).exists() for name in section.needs):
            continue
        figure = section.draw(folder)
        if figure is None:
            continue
        path = figures / f"{section.name}.png"
        figure.savefig(path, dpi=150)
        plt.close(figure)
        heading = html.escape(section.title)
        parts.append(f"<h2>{heading}</h2><img src='{_inline(path, 'image/png')}' alt='{heading}'>")
    video = ""
    if (folder / VIDEO).exists():
        source = _inline(folder / VIDEO, "video/mp4")
        video = f"<video src='{source}' controls autoplay loop muted></video>"
    made = f" Made by <code>{html.escape(command)}</code>." if command else ""
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>
body {{ font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
img, video {{ max-width: 100%; }} th {{ text-align: left; padding-right: 2rem; font-weight: 400; }}
code {{ background: #eee; padding: .1rem .3rem; }}
</style></head><body>
<h1>{html.escape(title)}</h1>
<p>The policy seeks states from which it can do most, and has no other goal.{made}</p>
{video}
{evaluation}
{"".join(parts)}
<h2>Settings</h2>{_table(settings)}
<h2>Versions</h2>{_table(versions)}
</body></html>
"""
    write_atomic(folder / "report.html", page.encode())
    return folder / "report.html"


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
    path, what = folder / "evaluation.json", "the figures of an evaluation"
    figures = read_json(path, dict[str, int | float | str | _Figures | None], what=what)
    convert(figures, _Evaluation, what=what, source=path)
    return figures


def _beside(evaluation: dict[str, Any]) -> dict[str, Any]:
    """Put the figures of other actors in parentheses behind those of the policy."""
    others = {label: evaluation[who] for who, label in _ACTORS.items() if who in evaluation}
    rows = {}
    for name, value in evaluation.items():
        if name in _ACTORS:
            continue
        same = [f"{who}: {_text(other[name])}" for who, other in others.items() if name in other]
        rows[name] = f"{_text(value)} ({', '.join(same)})" if same else value
    return rows


def _inline(path: Path, kind: str) -> str:
    """Return a file as a data URL: nothing comes from the network."""
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _table(rows: dict[str, Any]) -> str:
    cells = "".join(
        f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(_text(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
