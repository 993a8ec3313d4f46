"""Spells of trouble that every implementation of a controller has to answer in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Cycle = tuple[float, np.ndarray | None]
"""Cycles since the last step, and the observation."""


@dataclass(frozen=True)
class Spell:
    """What happens to a controller.

    Attributes:
        safety: Its fault limits.
        cycles: What is observed and when, for so many numbers in an observation.
        faults: The fault after each cycle, by its kind, run-length encoded.
        resets: The cycles before which it is reset.
    """

    safety: dict[str, Any]
    cycles: Callable[[int], Iterator[Cycle]]
    faults: list[tuple[int, str | None]]
    resets: tuple[int, ...] = field(default=())


def _good(size: int, seed: int = 0) -> Iterator[np.ndarray]:
    random = np.random.default_rng(seed)
    while True:
        yield random.normal(size=size).astype(np.float32)


def _spoilt(values: np.ndarray, number: float) -> np.ndarray:
    spoilt = values.copy()
    spoilt[len(spoilt) // 2] = number
    return spoilt


def pattern(text: str) -> Callable[[int], Iterator[Cycle]]:
    """Read a spell: g good, - none, n NaN, i and j infinities; 2 to 9 good, but so late."""

    def cycles(size: int) -> Iterator[Cycle]:
        for letter, values in zip(text, _good(size), strict=False):
            if letter == "g":
                yield 1.0, values
            elif letter.isdecimal():
                yield float(letter), values
            elif letter == "-":
                yield 1.0, None
            else:
                yield 1.0, _spoilt(values, {"n": np.nan, "i": np.inf, "j": -np.inf}[letter])

    return cycles


CORPUS: dict[str, Spell] = {
    "ordinary": Spell({}, pattern("g" * 30), [(30, None)]),
    "nothing at first": Spell({"max_missing": 5}, pattern("--ni" + "g" * 10), [(14, None)]),
    "nothing ever": Spell({"max_missing": 4}, pattern("-" * 8), [(3, None), (5, "missing")]),
    "holes": Spell({"max_missing": 3}, pattern("g-ng" * 8 + "gij" * 4), [(44, None)]),
    "all kinds of holes": Spell(
        {"max_missing": 4}, pattern("ggnij-gg"), [(5, None), (3, "missing")]
    ),
    "the latch holds": Spell(
        {"max_missing": 2}, pattern("g--" + "g" * 10), [(2, None), (11, "missing")]
    ),
    "a reset": Spell(
        {"max_missing": 2},
        pattern("g--gg" + "ggg--"),
        [(2, None), (3, "missing"), (4, None), (1, "missing")],
        resets=(5,),
    ),
    "a change is limited": Spell({"max_change": 0.05}, pattern("gg-gnggggg" * 4), [(40, None)]),
    "a change is limited after holes at first": Spell(
        {"max_change": 0.3}, pattern("--ggg-ggg"), [(9, None)]
    ),
    "in time": Spell({"interval": 0.01}, pattern("g" * 80), [(80, None)]),
    "one stall of two cycles": Spell({"interval": 0.05}, pattern("gg3ggg"), [(6, None)]),
    "one stall of three cycles": Spell(
        {"interval": 0.05}, pattern("gg4ggg"), [(2, None), (4, "late")]
    ),
    "three late running": Spell({"interval": 0.01}, pattern("g222gg"), [(3, None), (3, "late")]),
    "a step in time breaks the run": Spell({"interval": 0.01}, pattern("g22g22gg"), [(8, None)]),
    "a share of the window": Spell(
        {"interval": 0.01}, pattern("g2g2g2g2g2g2gg"), [(11, None), (3, "late_share")]
    ),
    "long ago": Spell({"interval": 0.01}, pattern(("2g" * 5 + "g" * 50) * 3), [(180, None)]),
    "a reset forgives": Spell(
        {"interval": 0.01},
        pattern("g9gg" + "9g3g"),
        [(1, None), (3, "late"), (4, None)],
        resets=(4,),
    ),
    "late and missing": Spell(
        {"interval": 0.001, "max_missing": 3, "max_late": 9, "window": 7, "late_share": 0.8},
        pattern("g3g-n8gg-ij"),
        [(5, None), (6, "late_share")],
    ),
}
"""Spells by name; the expected faults are by hand."""


def familiar(text: str) -> Callable[[int], Iterator[Cycle]]:
    """Read a spell for `watched_bundle`: g as expected, s shifted by ten spreads, - none, n NaN."""

    def cycles(size: int) -> Iterator[Cycle]:
        for index, letter in enumerate(text):
            values = np.full(size, (-1) ** index * 0.5 * SPREAD, np.float32)
            if letter == "s":
                values[-1] += 10 * SPREAD
            elif letter == "n":
                values[0] = np.nan
            yield 1.0, None if letter == "-" else values

    return cycles


SPREAD = 0.1
"""Of the innovations of `watched_bundle`, whose filter hardly follows its observations."""

# Levels of shifted observations are 25 (1 - 0.9^k). Those above 4 count: of three running the
# second shift is the first. Not judged are the first ten, and two after each missing one.
WATCHED: dict[str, Spell] = {
    "as expected": Spell({}, familiar("g" * 60), [(60, None)]),
    "a shift": Spell({}, familiar("g" * 20 + "s" * 10), [(23, None), (7, "unfamiliar")]),
    "a shift that is over": Spell(
        {}, familiar("g" * 20 + "ssgggggggg"), [(23, None), (7, "unfamiliar")]
    ),
    "one observation alone": Spell({}, familiar(("g" * 20 + "s") * 3), [(63, None)]),
    "a shift at first": Spell({}, familiar("s" * 16), [(13, None), (3, "unfamiliar")]),
    "a shift after holes": Spell(
        {}, familiar("g" * 20 + "-n" + "s" * 10), [(29, None), (3, "unfamiliar")]
    ),
    "holes while it is shifted": Spell(
        {}, familiar("g" * 20 + "ss-ssss"), [(26, None), (1, "unfamiliar")]
    ),
    "as many holes as may be": Spell(
        {}, familiar("g" * 20 + "-" * 9 + "s" * 14), [(42, None), (1, "unfamiliar")]
    ),
    "a hole too many": Spell(
        {"max_missing": 3}, familiar("g" * 15 + "---" + "s" * 5), [(17, None), (6, "missing")]
    ),
    "a reset, and settling again": Spell(
        {},
        familiar("g" * 12 + "s" * 5 + "s" * 14),
        [(15, None), (2, "unfamiliar"), (13, None), (1, "unfamiliar")],
        resets=(17,),
    ),
    "without the monitor": Spell({"monitor": False}, familiar("g" * 20 + "s" * 30), [(50, None)]),
}
"""Spells for a controller with a monitor; the expected faults are by hand."""


def expected_faults(spell: Spell) -> list[str | None]:
    """Return the fault after each cycle."""
    return [fault for count, fault in spell.faults for _ in range(count)]
