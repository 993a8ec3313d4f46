"""From what a reader found to episodes at one rate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from empowerment.data.clocks import Stream, resample
from empowerment.data.delays import estimate_delay
from empowerment.data.imports import from_arrays, last_rows
from empowerment.data.readers.base import LogOptions, Rows, Signals
from empowerment.data.spaces import free_spaces
from empowerment.data.trajectories import Episode, Trajectories

_Pair = tuple[Sequence[Stream], Sequence[Stream], bool]
"""Signals of an episode: observations, actions, and whether it ends in a terminal state."""


def from_rows(rows: Rows, options: LogOptions, source: str) -> Trajectories:
    """Cut rows into episodes, and resample them if that is wanted."""
    about = {"environment": None, "interval": rows.interval} | rows.about
    if options.rate is None and options.delay is None:
        spaces = free_spaces(rows.observation_names, rows.action_names)
        data = from_arrays(
            rows.observations,
            rows.actions,
            terminated=rows.terminated,
            truncated=rows.truncated,
            episode=rows.episode,
            times=rows.times,
            rewards=rows.rewards,
            spaces=spaces,
            about=about,
        )
    else:
        if rows.rewards is not None:  # They are of the time between two rows.
            about["ignored"] = [*about.get("ignored", []), "the reward, as the log is resampled,"]
        names = (rows.observation_names, rows.action_names)
        data = _resampled(_episodes(rows, source), names, about, options, source)
    return with_limits(data, rows.limits)


def from_signals(signals: Signals, options: LogOptions, source: str) -> Trajectories:
    """Resample signals to one clock; by default that of the first observation."""
    about = {"environment": None} | signals.about
    names = (signals.observation_names, signals.action_names)
    pair = (signals.observations, signals.actions, False)
    return _resampled([pair], names, about, options, source)


def with_limits(data: Trajectories, limits: tuple[np.ndarray, np.ndarray] | None) -> Trajectories:
    """Return data whose actions have these limits, if there are any."""
    if limits is None:
        return data
    if data.spaces.action_choices:
        raise ValueError("Expected --limits for continuous actions only; got discrete ones.")
    return replace(data, spaces=replace(data.spaces, action_low=limits[0], action_high=limits[1]))


def _episodes(rows: Rows, source: str) -> list[_Pair]:
    """Cut rows into episodes, as signals with a clock."""
    count = len(rows.observations)
    times = rows.times
    if times is None and rows.interval is None:
        raise ValueError(
            f"Expected {source} to have times, to resample it or to find a delay; got none. Name "
            "their column by --time, or the interval between rows by --interval."
        )
    ends = None if rows.terminated is None else np.asarray(rows.terminated, bool)
    is_last = last_rows(
        count, terminated=ends, truncated=rows.truncated, episode=rows.episode, times=times
    )
    if times is None:
        times = np.arange(count) * float(rows.interval or 0)
    pairs, first = [], 0
    for last in np.flatnonzero(is_last).tolist():
        part = slice(first, last + 1)
        pairs.append(
            (
                [Stream(f"observations of {source}", times[part], rows.observations[part])],
                [Stream(f"actions of {source}", times[part], rows.actions[part])],
                ends is not None and bool(ends[last]),
            )
        )
        first = last + 1
    return pairs


def _resampled(
    pairs: Sequence[_Pair],
    names: tuple[Sequence[str], Sequence[str]],
    about: dict[str, Any],
    options: LogOptions,
    source: str,
) -> Trajectories:
    """Resample episodes, with the delay of actions taken out."""
    widths = [np.diff(pair[0][0].times) for pair in pairs]
    width = np.concatenate(widths)
    if not len(width):
        raise ValueError(f"Expected {source} to have two rows or more; got fewer.")
    rate = options.rate or float(1 / np.median(width))
    delay = options.delay_seconds()
    usable = [pair for pair in pairs if len(pair[0][0].times) > 1]
    if delay == "auto":
        found = estimate_delay([pair[:2] for pair in usable], gap=options.gap)
        delay = found.seconds
        about["delay_resolution"] = found.resolution
    episodes, gaps = [], 0
    for observations, actions, ends in usable:
        pieces, holes = resample(
            observations,
            actions,
            rate=rate,
            delay=delay or 0.0,
            fill=options.fill,
            gap=options.gap,
            ends=ends,
        )
        gaps += holes
        for piece in pieces:
            is_end = ends and piece.reaches_end
            episodes.append(
                Episode(piece.observations, piece.actions, terminated=is_end, truncated=not is_end)
            )
    if not episodes:
        raise ValueError(
            f"Expected {source} to have observations and actions for at least {1 / rate:.3g} s on "
            "end, one row; it has not."
        )
    about |= {"interval": 1 / rate, "gaps": gaps}
    if delay is not None:
        about["delay"] = delay
    return Trajectories(tuple(episodes), free_spaces(*names), about)
