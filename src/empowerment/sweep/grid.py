"""The grid of a sweep: environments, settings and seeds, and the run at each of its points."""

import difflib
import itertools
import re
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_type_hints

import msgspec

from empowerment.agent import AgentSettings
from empowerment.model import ModelSettings
from empowerment.runs import PRESETS, Experiment
from empowerment.runs.experiment import to_json

MAX_RUNS = 100_000
"""Maximal number of runs of a sweep; all of them are in one file."""

_FIXED = ("world", "env", "agent", "model", "log")
"""Fields of an experiment that are no settings: what it is of, and its parts."""


@dataclass(frozen=True)
class Grid:
    """What a sweep goes over.

    Attributes:
        preset: Name of a preset, if no environments are given.
        envs: Ids of environments.
        settings: Settings of `empower train`, and the values that each takes.
        seeds: Random seeds.
        budget: smoke or full, before the settings are applied.
        episodes: Number of episodes that each run is evaluated by.
        cpus_per_run: Number of cores of a run; the bits of its result depend on it.
    """

    preset: str | None
    envs: tuple[str, ...]
    settings: dict[str, tuple[Any, ...]]
    seeds: tuple[int, ...]
    budget: str
    episodes: int
    cpus_per_run: int

    @property
    def bases(self) -> dict[str, Experiment]:
        """The experiments that the settings are applied to, by preset or environment."""
        if self.preset is not None:
            found = {self.preset: PRESETS[self.preset].experiment}
        else:
            found = {env: Experiment(env=env) for env in self.envs}
        return {name: each.with_budget(self.budget) for name, each in found.items()}


@dataclass(frozen=True)
class Point:
    """A point of the grid.

    Attributes:
        base: Its preset or environment.
        changes: Its settings, where the base has others.
        seed: Its random seed.
        experiment: All its settings.
        cell: Words for all but its seed: runs of a cell differ in their seeds alone.
    """

    base: str
    changes: dict[str, Any]
    seed: int
    experiment: Experiment
    cell: str

    @property
    def name(self) -> str:
        """Its folder below that of the runs: a level each for base, settings and seed."""
        return f"{self.cell.replace(' ', '/')}/seed-{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings and seed, as in the manifest of its run."""
        return to_json(self.experiment, self.seed)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read seeds such as 0-9 or 0,2,5-7."""
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", part.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if first > last or last - first >= MAX_RUNS:
            raise ValueError(
                f"Expected --seeds to be numbers and ranges such as 0-9 or 0,3,5-7; got {text!r}."
            )
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"Expected every seed once; got {text!r}.")
    return tuple(seeds)


def parse_settings(words: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    """Read settings such as horizon=8,16,32.

    Raises:
        ValueError: If there is no such setting, or a value is not one of its.
    """
    kinds, found = _kinds(), {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not equals or not text.strip():
            raise ValueError(f"Expected --set to be NAME=VALUE,VALUE,...; got {word!r}.")
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, n=1)
            hint = f" Did you mean {near[0]}?" if near else " See empower train --help."
            raise ValueError(
                f"Expected --set to name a setting of empower train; got {name}.{hint}"
            )
        if name in found:
            raise ValueError(f"Expected --set to name {name} once; got it twice.")
        values = tuple(_value(name, each.strip(), kinds[name]) for each in text.split(","))
        if len(set(values)) < len(values):
            raise ValueError(f"Expected every value of {name} once; got {text!r}.")
        found[name] = values
    return found


def _kinds() -> dict[str, Any]:
    """Return the types of all settings by the names that `empower train` has for them."""
    own = {name: kind for name, kind in get_type_hints(Experiment).items() if name not in _FIXED}
    model = get_type_hints(ModelSettings)
    return own | get_type_hints(AgentSettings) | {f"model.{k}": kind for k, kind in model.items()}


def _value(name: str, text: str, kind: Any) -> Any:
    """Convert the text of a value to the type of its setting."""
    if text.lower() == "none" and type(None) in get_args(kind):
        return None
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        shown = getattr(kind, "__name__", None) or str(kind).replace("typing.", "")
        raise ValueError(f"Expected values of {name} to be {shown}; got {text!r}.") from None


def _changed(experiment: Experiment, changes: dict[str, Any]) -> Experiment:
    """Apply settings to an experiment."""
    agent_names = {field.name for field in fields(AgentSettings)}
    model = {name.removeprefix("model."): v for name, v in changes.items() if "." in name}
    agent = {name: value for name, value in changes.items() if name in agent_names}
    own = {name: v for name, v in changes.items() if "." not in name and name not in agent_names}
    agent, model = replace(experiment.agent, **agent), replace(experiment.model, **model)
    return replace(experiment, **own, agent=agent, model=model)


def points(grid: Grid) -> list[Point]:
    """Return the points of a grid: all seeds of a cell, one cell after the other.

    Raises:
        ValueError: If there are too many, one cannot be trained, or two had the same folder.
    """
    count = len(grid.bases) * len(grid.seeds)
    for values in grid.settings.values():
        count *= len(values)
    if not 1 <= count <= MAX_RUNS:
        raise ValueError(f"Expected a sweep of 1 to {MAX_RUNS} runs; got {count}.")
    found = []
    for base, experiment in grid.bases.items():
        for combination in itertools.product(*grid.settings.values()):
            changes = dict(zip(grid.settings, combination, strict=True))
            changed, cell = _changed(experiment, changes), _cell(grid, base, changes)
            changed.check()
            found += [Point(base, changes, seed, changed, cell) for seed in grid.seeds]
    names = [point.name for point in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Expected every run to have its own folder; got {twice} twice.")
    return found


def _cell(grid: Grid, base: str, changes: dict[str, Any]) -> str:
    """Describe base and settings by words that can name folders."""
    varied = [f"{k}={v}" for k, v in changes.items() if len(grid.settings[k]) > 1]
    return " ".join(re.sub(r"[^\w.=,+-]", "-", each) for each in (base, ",".join(varied)) if each)
