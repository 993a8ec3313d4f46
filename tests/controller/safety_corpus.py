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


def expected_faults(spell: Spell) -> list[str | None]:
    """Return the fault after each cycle."""
    return [fault for count, fault in spell.faults for _ in range(count)]
