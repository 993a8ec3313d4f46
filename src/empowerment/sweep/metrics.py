"""Streamed metrics of runs, and the rule by which clearly worse ones are stopped."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empowerment.files import decode, read_bytes

_METRICS, _STAGE, _FIGURE = "metrics.jsonl", "policy", "bound"
_MAX_BYTES = 1 << 24

_MIN_FINISHED = 3
"""Finished runs before any other is stopped: fewer have no median worth the name."""

_GRACE = 0.25
"""Fraction of the reports of the shortest finished run before which none is stopped."""

Curve = Sequence[tuple[tuple[int, int], float]]
"""Bound along the training of a policy, after each (round, update)."""


def bounds(folder: Path) -> Curve:
    """Read the bound along the training of the policy of a run, as far as it was streamed."""
    path, curve = folder / _METRICS, []
    if not path.exists():
        return curve
    for line in read_bytes(path, most=_MAX_BYTES).splitlines():
        try:
            entry = decode(line, dict[str, Any], what="metrics", source=path)
            if entry["stage"] == _STAGE:
                curve.append(((int(entry["round"]), int(entry["update"])), float(entry[_FIGURE])))
        except (ValueError, TypeError, KeyError):  # The last line may be half written.
            continue
    return curve


@dataclass
class MedianRule:
    """Stops a run whose best bound so far is below the median of what finished runs had by then.

    Median stopping rule of Golovin et al. (2017), Google Vizier, Sec. 3.2.2: what finished runs
    had is the mean of their bounds up to the same update. Runs are compared within a group, that
    is one environment or preset.
    """

    _finished: dict[str, list[Curve]] = field(default_factory=lambda: defaultdict(list))

    def add(self, group: str, curve: Curve) -> None:
        """Add a finished run."""
        if curve:
            self._finished[group].append(curve)

    def complaint(self, group: str, curve: Curve) -> str | None:
        """Return why a run is clearly worse than finished ones, if it is."""
        finished = self._finished[group]
        if len(finished) < _MIN_FINISHED or len(curve) < _GRACE * min(map(len, finished)):
            return None
        at, best = curve[-1][0], max(value for _, value in curve)
        before = [[value for point, value in each if point <= at] for each in finished]
        means = [statistics.fmean(values) for values in before if values]
        if len(means) < _MIN_FINISHED or best >= statistics.median(means):
            return None
        return f"best bound {best:.3f}, below the median {statistics.median(means):.3f} of others"
