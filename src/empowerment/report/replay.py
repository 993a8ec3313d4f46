"""The replay section of a report: recorded episodes with a scrubber, for any environment."""

import html
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from empowerment.files import encode, read_json, write_atomic
from empowerment.report.charts import NUM_COLOURS, Line, chart
from empowerment.report.elements import ASSETS, folded, inline, to_script

REPLAY = "replay.json"
"""File in a run folder that describes recorded episodes; the films are beside it."""

ACTORS = {"policy": "Policy", "random": "Random actions"}
"""Who acts in the recorded episodes, and what they are called; each has a colour of its own."""

MOST_COLUMNS = 60
"""Number of observed columns that are stored; of more, the first ones."""

_NUM_OPEN = 6
"""Number of observed columns that are shown before the reader asks for more."""

_STYLES = {"policy": 1, "random": NUM_COLOURS}


class StoredEpisode(msgspec.Struct):
    """A recorded episode, or its beginning.

    Attributes:
        columns: The observed numbers over time, column by column.
        empowerment: Empowerment at the same times, in nats; none if there is nothing that says it.
        ended: Whether the episode ended where the record does, and did not just go on.
        num_frames: Number of frames of its film; 0 without one.
    """

    columns: list[list[float | None]]
    empowerment: list[float] | None
    ended: bool
    num_frames: Annotated[int, Meta(ge=0)]


class StoredReplay(msgspec.Struct):
    """Recorded episodes of the same environment.

    Attributes:
        interval: Seconds from one action to the next; none if they are not known.
        stride: Number of actions from one frame of a film to the next.
        fps: Frames of a film per second of its file.
        names: Names of the observed columns.
        num_columns: Number of observed columns in all.
        unfilmed: Why there is no film; empty if there is one.
        policy: Episode of the policy.
        random: Episode of random actions from the same start.
    """

    interval: Annotated[float, Meta(gt=0)] | None
    stride: Annotated[int, Meta(ge=1)]
    fps: Annotated[float, Meta(gt=0)]
    names: list[str]
    num_columns: int
    unfilmed: str
    policy: StoredEpisode
    random: StoredEpisode


def film_of(folder: Path, actor: str) -> Path:
    """Return the file of the film of an actor."""
    return folder / f"replay-{actor}.mp4"


def write_stored_replay(stored: StoredReplay, folder: Path) -> None:
    """Write the description of recorded episodes to a run folder."""
    write_atomic(folder / REPLAY, encode(msgspec.to_builtins(stored)))


def rounded(values: np.ndarray) -> list[float | None]:
    """Return numbers with five digits, and none for those that are not finite."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values.tolist()]


def replay_section(folder: Path) -> str:
    """Return the section of the page with recorded episodes, films and a scrubber."""
    what = "the description of recorded episodes"
    stored: StoredReplay = read_json(folder / REPLAY, StoredReplay, what=what)
    episodes = {name: getattr(stored, name) for name in ACTORS}
    for each in episodes.values():
        _check(each, stored, folder / REPLAY)
    films = "".join(_film(folder, name, each) for name, each in episodes.items())
    charts = [_column(index, stored) for index in range(len(stored.names))]
    unseen = stored.num_columns - len(stored.names)
    more = f"<p>The other {unseen} observed columns are not stored.</p>" if unseen > 0 else ""
    rest = ""
    if charts[_NUM_OPEN:]:
        inside = f"<div class='charts'>{''.join(charts[_NUM_OPEN:])}</div>{more}"
        rest = folded(f"{len(charts) - _NUM_OPEN} more observed columns", inside)
    section = string.Template((ASSETS / "replay.html").read_text("utf-8")).substitute(
        FILMS=films,
        UNFILMED=f"<p>{html.escape(stored.unfilmed)}</p>" if stored.unfilmed else "",
        EMPOWERMENT=_empowerment(stored),
        COLUMNS="".join(charts[:_NUM_OPEN]),
        MORE=rest,
        LAST=max(_length(each) for each in episodes.values()) - 1,
    )
    data = {
        "interval": stored.interval,
        "stride": stored.stride,
        "fps": stored.fps,
        "episodes": {
            name: {
                "length": _length(each),
                "ended": each.ended,
                "frames": each.num_frames,
                "empowerment": each.empowerment,
            }
            for name, each in episodes.items()
        },
    }
    script = (ASSETS / "replay.js").read_text("utf-8")
    return (
        f"{section}<script type='application/json' id='replay-data'>{to_script(data)}</script>"
        f"<script>\n{script}</script>"
    )


def _length(episode: StoredEpisode) -> int:
    """Return the number of times at which an episode was observed."""
    return len(episode.columns[0])


def _check(episode: StoredEpisode, stored: StoredReplay, source: Path) -> None:
    """Refuse columns of different lengths, and others than are named."""
    lengths = {len(column) for column in episode.columns}
    if episode.empowerment is not None:
        lengths.add(len(episode.empowerment))
    if len(lengths) != 1 or 0 in lengths or len(episode.columns) != len(stored.names):
        raise ValueError(
            f"Expected {source} to have columns of one length, as many as names; got "
            f"{len(episode.columns)} columns of lengths {sorted(lengths)}."
        )


def _film(folder: Path, actor: str, episode: StoredEpisode) -> str:
    """Return the film of an actor, or the place for its numbers alone."""
    film = ""
    if episode.num_frames:
        source = inline(film_of(folder, actor).read_bytes(), "video/mp4")
        film = (
            f"<video data-replay='{actor}-film' src='{source}' muted playsinline preload='auto' "
            f"aria-label='Film of an episode: {ACTORS[actor]}'></video>"
        )
    return (
        f"<figure>{film}<figcaption><span class='dot {actor}'></span> {ACTORS[actor]}: empowerment "
        f"<output data-replay='{actor}-value'>&ndash;</output> "
        f"<span data-replay='{actor}-end'></span></figcaption></figure>"
    )


def _empowerment(stored: StoredReplay) -> str:
    lines = {name: getattr(stored, name).empowerment for name in ACTORS}
    if any(values is None for values in lines.values()):
        return "<p>How much empowerment there is was not stored with this run.</p>"
    return _chart("Empowerment, as the controller estimates it", lines, stored, "nats", 190)


def _column(index: int, stored: StoredReplay) -> str:
    lines = {name: getattr(stored, name).columns[index] for name in ACTORS}
    return _chart(stored.names[index], lines, stored, "", 110)


def _chart(
    title: str,
    values: dict[str, Sequence[float | None]],
    stored: StoredReplay,
    unit: str,
    height: int,
) -> str:
    """Draw what was recorded over time, with a cursor."""
    step = stored.interval or 1
    lines = [
        Line(
            ACTORS[name],
            [(step * at, value) for at, value in enumerate(each) if value is not None],
            style=_STYLES[name],
        )
        for name, each in values.items()
    ]
    across = "time / s" if stored.interval else "actions"
    return chart(title, lines[::-1], across=across, unit=unit, height=height, cursor=True)
