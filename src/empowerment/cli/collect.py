"""`empower collect`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from empowerment.cli.console import log, show_progress
from empowerment.data import Actor, RandomActor, Spaces, collect, refuse, summarise
from empowerment.files import check_writable


@dataclasses.dataclass(frozen=True)
class CollectCommand:
    """Act in a Gymnasium environment and store observations and actions.

    Observations are vectors of numbers, discrete, or dictionaries and tuples of these; actions are
    vectors of numbers within limits, or discrete. The data are the same for any number of workers
    on any backend. A worker that dies or hangs is restarted; an episode that hangs, or in which a
    worker dies twice, is dropped.

    Try `empower collect Pendulum-v1 --steps 10000 --out pendulum.npz`, or an environment of your
    own: `empower collect my_module:Mine-v0 --steps 10000 --out mine.npz`.
    """

    environment: Annotated[Positional[str], arg(metavar="ENV")]
    """Its Gymnasium id; `module:ID` imports the module first, also from the current folder."""

    out: Annotated[Path, arg(metavar="FILE.npz")]
    """The file of the data."""

    steps: int
    """Number of transitions."""

    policy: Annotated[str, arg(metavar="uniform|RUN")] = "uniform"
    """The actor: uniform samples actions evenly within their limits; a run folder samples from its
    policy, through its filter."""

    workers: int = 1
    """Number of processes."""

    backend: Literal["local", "ray"] = "local"
    """Where the workers are: processes of this machine, or cores of a Ray cluster."""

    address: Annotated[str, arg(metavar="auto|local|HOST:PORT")] = "auto"
    """Ray cluster: the running one, a new one on this machine, or one by its address."""

    seed: int = 0
    """Random seed."""

    hang_timeout: Annotated[float, arg(metavar="SECONDS")] = 60.0
    """Timeout for one step, after which a worker counts as hung."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Check everything, collect, write, and print a summary."""
        if self.workers < 1:
            raise ValueError(f"Expected --workers to be at least 1; got {self.workers}.")
        check_out(self.out)
        policy = _policy(self.policy)
        with show_progress(self.environment) as progress:
            data, report = collect(
                self.environment,
                steps=self.steps,
                seed=self.seed,
                policy=policy,
                workers=self.workers,
                cluster=self.address if self.backend == "ray" else None,
                timeout=self.hang_timeout,
                progress=progress,
            )
        data.save(self.out)
        log(report.summary())
        log(f"The data are in {self.out}: look at them with empower data {self.out}")
        refuse(summarise(data))


def _policy(name: str) -> Callable[[Spaces], Actor]:
    """Return what makes the actor: random actions, or the policy of a run."""
    if name == "uniform":
        return RandomActor
    from empowerment.runs import RunActor, read_manifest  # Acting by a policy needs JAX.

    read_manifest(Path(name))  # Refuse a mistake before workers are started.
    return RunActor(Path(name))


def check_out(path: Path) -> None:
    """Refuse a file now that could not be written later, or not be read again."""
    if path.suffix != ".npz":
        raise ValueError(f"Expected --out to end in .npz; got {path}.")
    check_writable(path)
