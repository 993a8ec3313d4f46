"""A figure of all runs of a sweep: mean, spread, and what can be said over so few seeds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float

from empowerment.sweep.scheduler import Entry

_RESAMPLES = 2000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Row:
    """Runs that differ in their seeds alone, or in their environments too.

    Attributes:
        name: Preset or environment, and settings.
        strata: A figure of the finished runs of each environment, in the order of seeds.
        missing: Number of runs without it, by their state.
    """

    name: str
    strata: tuple[Float[np.ndarray, " seeds"], ...]
    missing: Counter[str]

    @property
    def values(self) -> Float[np.ndarray, " runs"]:
        """The figure of all runs."""
        return np.concatenate([np.zeros(0), *self.strata])

    @property
    def spread(self) -> float | None:
        """Standard deviation over runs, if there are several."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


def rows_of(entries: dict[str, Entry], figure: str) -> list[Row]:
    """Collect a figure of all runs: a row for each environment and settings, then for settings.

    Raises:
        ValueError: If no finished run has it.
    """
    known = sorted({name for entry in entries.values() for name in entry.figures})
    if not known:
        raise ValueError(f"Expected a finished run, to show its {figure}; there is none yet.")
    if figure not in known:
        raise ValueError(f"Expected a figure, one of {', '.join(known)}; got {figure}.")
    found: dict[tuple[str, str], list[float]] = {}
    missing: dict[tuple[str, str], Counter[str]] = {}
    for name, entry in entries.items():
        base, *middle, _ = name.split("/")
        at = base, " ".join(middle)
        values, others = found.setdefault(at, []), missing.setdefault(at, Counter())
        if entry.state == "finished" and figure in entry.figures:
            values.append(entry.figures[figure])
        else:
            others[entry.state if entry.state != "finished" else "without"] += 1
    rows = [
        Row(" ".join(filter(None, at)), (np.array(values),) if values else (), missing[at])
        for at, values in found.items()
    ]
    if len({base for base, _ in found}) > 1:
        for settings in dict.fromkeys(settings for _, settings in found):
            ours = [at for at in found if at[1] == settings]
            strata = tuple(np.array(found[at]) for at in ours if found[at])
            rows.append(
                Row(f"all {settings}".strip(), strata, sum((missing[at] for at in ours), Counter()))
            )
    return rows


def interquartile_mean(values: Float[np.ndarray, "... runs"]) -> Float[np.ndarray, "..."]:
    """Return the mean of the middle half of the runs.

    Agarwal et al. (2021), Deep Reinforcement Learning at the Edge of the Statistical Precipice,
    Sec. 4.3: less sensitive to outliers than the mean, and more efficient than the median.
    """
    count = values.shape[-1]
    cut = count // 4
    return np.asarray(np.sort(values, axis=-1)[..., cut : count - cut].mean(axis=-1))


def bootstrap(
    strata: Sequence[Float[np.ndarray, " runs"]], *, seed: int = 0
) -> tuple[float, float]:
    """Return an interval of 95 % for the interquartile mean of all runs.

    Agarwal et al. (2021), Sec. 4.1: a percentile bootstrap that resamples the runs of each
    environment among themselves.

    Args:
        strata: The values of each environment.
        seed: Random seed of the resampling.
    """
    random = np.random.default_rng(seed)
    resampled = [
        values[random.integers(len(values), size=(_RESAMPLES, len(values)))] for values in strata
    ]
    means = interquartile_mean(np.concatenate(resampled, axis=1))
    low, high = np.quantile(means, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def draw_rows(rows: Sequence[Row], figure: str, path: Path) -> None:
    """Draw interquartile means with their intervals, and all runs, to a picture file.

    Args:
        rows: The rows; those without values are left out.
        figure: Name of the figure.
        path: The file; its suffix determines the format.
    """
    drawn = [row for row in rows if row.strata]
    path.parent.mkdir(parents=True, exist_ok=True)
    size = (6.4, 1.0 + 0.4 * len(drawn))
    canvas, axes = plt.subplots(figsize=size, layout="constrained")
    try:
        for place, row in enumerate(drawn):
            axes.plot(row.values, [place] * len(row.values), "|", color="0.6", markersize=8)
            axes.plot(bootstrap(row.strata), [place, place], color="C0", linewidth=6, alpha=0.4)
            axes.plot(interquartile_mean(row.values), place, "o", color="C0")
        axes.set_yticks(range(len(drawn)), [f"{row.name} ({len(row.values)})" for row in drawn])
        axes.set_ylim(len(drawn) - 0.5, -0.5)
        axes.set_xlabel(f"{figure}: runs, interquartile mean and its {_CONFIDENCE:.0%} interval")
        canvas.savefig(path, dpi=160)
    finally:
        plt.close(canvas)
