"""`empower train`."""

import contextlib
import dataclasses
import io
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tyro.conf import Positional, arg

from empowerment.cli import parse
from empowerment.cli.console import log, show_progress
from empowerment.processes import ALONE, JOIN_SECONDS, Team, joined
from empowerment.runs import PRESETS, Experiment, TrainedRun, train_run
from empowerment.runs.experiment import to_json

_PRESETS = "; ".join(f"{name}: {preset.about}" for name, preset in PRESETS.items())

_DEFAULTS = Experiment()


@dataclasses.dataclass(frozen=True)
class TrainCommand:
    """Train a policy that seeks empowered states, and store everything in a run folder.

    A run can be interrupted at any moment, and resumed to the same bits by the same command
    with --resume. Every setting is a flag.

    Try `empower train pendulum --out runs/pendulum`, then `empower evaluate runs/pendulum` and
    `empower report runs/pendulum`. Any environment will do, its world is learnt:
    `empower train --env Pendulum-v1 --out runs/mine`.
    """

    out: Annotated[Path, arg(metavar="RUN")]
    """The run folder."""

    experiment: Annotated[
        Positional[str | None],
        arg(metavar="PRESET", help=f"{_PRESETS}. None with --env or --data: learn a world."),
    ] = None

    seed: int = 0
    """Random seed."""

    budget: Literal["smoke", "full"] = "full"
    """smoke: tiny, to test that everything runs."""

    resume: bool = False
    """Resume the run in the folder."""

    workers: int = 0
    """Number of processes that act in the environment, where that is slow; 0: the command itself.
    The bits of results do not depend on it."""

    backend: Literal["local", "ray"] = "local"
    """Where these workers are: processes of this machine, or cores of a Ray cluster."""

    address: Annotated[str, arg(metavar="auto|local|HOST:PORT")] = "auto"
    """Ray cluster: the running one, a new one on this machine, or one by its address."""

    coordinator: Annotated[str | None, arg(metavar="HOST:PORT")] = None
    """Train by several processes, on one machine or several, each started by the same command:
    where process 0 listens. Batches are spread over the --devices of all."""

    num_processes: int | None = None
    """Number of these processes; under SLURM it knows."""

    process_id: int | None = None
    """Which of them this is, from 0; under SLURM it knows. Process 0 writes the run folder."""

    tensorboard: bool = False
    """Write the metrics to TensorBoard event files as well, in RUN/tensorboard."""

    debug: bool = False
    """Show the traceback of an error."""

    settings: Annotated[Experiment, arg(name="")] = _DEFAULTS
    """The settings; the defaults are those of the preset."""

    command_line: ClassVar[str | None] = None

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        return f"Interrupted; everything so far is in {self.out}. Resume it with --resume."

    def run(self) -> None:
        """Train, and say where the run is."""
        start = time.monotonic()
        if self.workers < (self.backend == "ray"):
            raise ValueError(f"Expected workers of --backend {self.backend}; got {self.workers}.")
        is_complete = self.settings.is_learnt or self.settings.world is not None
        if self.experiment not in PRESETS and (self.experiment or not is_complete):
            raise ValueError(
                f"Expected the preset to be one of {', '.join(PRESETS)}, or an environment by "
                f"--env ID; got {self.experiment}."
            )
        with self._team() as team:
            run = self._train(team)
        if not team.is_first:
            return
        log(f"Trained in {time.monotonic() - start:.0f} s; the run is in {self.out}.")
        if run.experiment.has_environment:
            env = run.experiment.env or ""
            named = f" --env {env}" if ":" in env else ""  # Its module is imported only then.
            log(f"Evaluate it with: empower evaluate {self.out}{named}")
        else:
            log(f"Draw it with: empower report {self.out}")

    @contextlib.contextmanager
    def _team(self) -> Iterator[Team]:
        """Join the other processes, if there are any."""
        if self.coordinator is None:
            if self.num_processes is not None or self.process_id is not None:
                raise ValueError(
                    "Expected --coordinator HOST:PORT with --num-processes and --process-id; got "
                    "none."
                )
            yield ALONE
            return
        count = _of_slurm("--num-processes", self.num_processes, "SLURM_NTASKS")
        number = _of_slurm("--process-id", self.process_id, "SLURM_PROCID")
        if self.settings.devices % count:
            raise ValueError(
                f"Expected --devices that {count} processes can share evenly; got "
                f"{self.settings.devices}."
            )
        settings = {
            **to_json(self.settings.with_budget(self.budget), self.seed),
            **{name: version(name) for name in ("empowerment", "jax")},
        }
        with joined(
            self.coordinator, number=number, count=count, settings=settings, seconds=JOIN_SECONDS
        ) as team:
            yield team

    def _train(self, team: Team) -> TrainedRun:
        """Train; processes other than the first do it silently."""
        shown = show_progress(self.out.name) if team.is_first else contextlib.nullcontext(_silent)
        with shown as progress:
            return train_run(
                self.settings.with_budget(self.budget),
                folder=self.out,
                seed=self.seed,
                resume=self.resume,
                command=self.command_line,
                workers=self.workers,
                cluster=self.address if self.backend == "ray" else None,
                team=team,
                tensorboard=self.tensorboard,
                progress=progress,
                log=log if team.is_first else _silent,
            )


def _silent(*words: object) -> None:
    """Ignore a message, or progress."""


def _of_slurm(flag: str, given: int | None, variable: str) -> int:
    """Return what was given, or else what SLURM says in a variable of the environment."""
    if given is not None:
        return given
    told = os.environ.get(variable, "")
    if not told.isdigit():
        raise ValueError(f"Expected {flag} with --coordinator, where SLURM does not say; got none.")
    return int(told)


def for_arguments(arguments: Sequence[str]) -> type[TrainCommand]:
    """Return the command with the defaults of the preset that the arguments name, if any.

    The arguments are parsed once to find the preset: it is the positional one, not any word
    that looks like it.
    """
    words = [word for word in arguments if word not in ("-h", "--help")]
    name = None
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        name = parse(TrainCommand, "train", words).experiment
    if name is None and len(words) < len(arguments):  # As in `empower train pendulum --help`.
        name = next((word for word in words[:1] if word in PRESETS), None)
    defaults = PRESETS[name].experiment if name in PRESETS else _DEFAULTS

    @dataclasses.dataclass(frozen=True)
    class Named(TrainCommand):
        settings: Annotated[Experiment, arg(name="")] = defaults

    Named.__doc__ = TrainCommand.__doc__
    Named.command_line = shlex.join(["empower", "train", *arguments])
    return Named
