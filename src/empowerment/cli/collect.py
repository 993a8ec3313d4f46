"""`empower collect`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from empowerment.cli.console import log, show_progress
from empowerment.cli.devices import record
from empowerment.controller.devices import DeviceSpec
from empowerment.data import Actor, RandomActor, Spaces, collect, refuse, summarise
from empowerment.files import check_writable


@dataclasses.dataclass(frozen=True)
class CollectCommand:
    """Act in a Gymnasium environment or on a device, and store observations and actions.

    Observations are vectors of numbers, discrete, or dictionaries and tuples of these; actions are
    vectors of numbers within limits, or discrete. The data are the same for any number of workers
    on any backend. A worker that dies or hangs is restarted; an episode that hangs, or in which a
    worker dies twice, is dropped.

    On a device the policy of a run acts through its controller, with all safety functions. Finished
    episodes are in the file at any moment.

    Try `empower collect Pendulum-v1 --steps 10000 --out pendulum.npz`, an environment of your own:
    `empower collect my_module:Mine-v0 --steps 10000 --out mine.npz`, or a robot:
    `empower collect --device socket:127.0.0.1:5005 --policy runs/mine --steps 10000 --out a.npz`.
    """

    out: Annotated[Path, arg(metavar="FILE.npz")]
    """The file of the data."""

    steps: int
    """Number of transitions; of a device about as many, since missing observations cut episodes."""

    environment: Annotated[Positional[str | None], arg(metavar="ENV")] = None
    """Its Gymnasium id; `module:ID` imports the module first, also from the current folder."""

    device: Annotated[str | None, arg(metavar="SPEC")] = None
    """Record from a device instead: socket:HOST:PORT or dds[:DOMAIN]. It needs --policy RUN, and a
    new file."""

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

    max_change: Annotated[float | None, arg(metavar="FLOAT")] = None
    """On a device: maximal change of an action from one cycle to the next."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Check everything, collect, write, and print a summary."""
        if self.workers < 1:
            raise ValueError(f"Expected --workers to be at least 1; got {self.workers}.")
        check_out(self.out)
        if (self.environment is None) == (self.device is None):
            raise ValueError("Expected an environment or --device; got both or none.")
        if self.device is not None:
            self._record(self.device)
            return
        if self.max_change is not None:
            raise ValueError(f"Expected --max-change with --device only; got {self.max_change}.")
        policy = _policy(self.policy)
        with show_progress(str(self.environment)) as progress:
            data, report = collect(
                str(self.environment),
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

    def _record(self, device: str) -> None:
        """Record from a device."""
        spec = DeviceSpec.parse(device)
        if spec.kind == "env":
            raise ValueError(
                f"Expected --device to be socket:HOST:PORT or dds; got {spec}. Without --device, "
                f"collect in it by empower collect {spec.name}."
            )
        if self.policy == "uniform" or self.workers > 1 or self.steps < 1:
            raise ValueError(
                "Expected --policy RUN, one worker and a step or more with --device; got "
                f"{self.policy}, {self.workers} and {self.steps}. Log a controller of your own "
                "first, and import the log by empower data."
            )
        if self.out.exists():
            raise FileExistsError(
                "Expected --out to be a new file, since a device is not recorded twice; "
                f"{self.out} exists."
            )
        with show_progress(str(spec)) as progress:
            record(
                spec,
                Path(self.policy),
                self.out,
                steps=self.steps,
                max_change=self.max_change,
                seed=self.seed,
                progress=progress,
            )
        log(f"The data are in {self.out}: look at them with empower data {self.out}")


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
