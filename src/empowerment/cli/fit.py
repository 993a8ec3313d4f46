"""`empower fit`."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from empowerment.cli.console import log, show_progress
from empowerment.data import Trajectories, check
from empowerment.model import ModelSettings
from empowerment.runs import fit_model, smoke_model


@dataclasses.dataclass(frozen=True)
class FitCommand:
    """Learn a world from logged observations and actions, and store it in a folder.

    The model is a deep variational Bayes filter: a world to imagine in, and the filter that
    tracks its state. A tenth of the data is not learnt from: half of its episodes are for
    validation (early stopping, calibration), the others are test data for `empower model`.
    Training can be interrupted at any moment, and resumed to the same bits by the same command
    with --resume.

    Try `empower collect Pendulum-v1 --steps 10000 --out pendulum.npz`, then
    `empower fit pendulum.npz --out models/pendulum` and `empower model models/pendulum`.
    """

    data: Annotated[Positional[Path], arg(metavar="DATA")]
    """A file of trajectories, as `empower collect` and `empower data` write them."""

    out: Annotated[Path, arg(metavar="MODEL")]
    """The folder of the model."""

    seed: int = 0
    """Random seed."""

    budget: Literal["smoke", "full"] = "full"
    """smoke: tiny, to test that everything runs."""

    resume: bool = False
    """Resume the training in the folder."""

    debug: bool = False
    """Show the traceback of an error."""

    settings: Annotated[ModelSettings, arg(name="")] = dataclasses.field(
        default_factory=ModelSettings
    )
    """Hyperparameters."""

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        return f"Interrupted; everything so far is in {self.out}. Resume it with --resume."

    def run(self) -> None:
        """Check the data, fit, and print the result."""
        start = time.monotonic()
        trajectories = Trajectories.load(self.data)
        check(trajectories)
        settings = smoke_model(self.settings) if self.budget == "smoke" else self.settings
        with show_progress(self.out.name) as progress:
            fitted = fit_model(
                trajectories,
                settings,
                folder=self.out,
                seed=self.seed,
                resume=self.resume,
                progress=progress,
                log=log,
            )
        count, scores = fitted.about["history"][-1]
        data = " --data FILE" if fitted.test is None else ""
        log(
            f"Fitted in {time.monotonic() - start:.0f} s, {count} updates "
            f"({fitted.about['stopped']}); the evidence of validation data is "
            f"{scores['validation']:.3f} nats per row. The model is in {self.out}. Evaluate it "
            f"with: empower model {self.out}{data}"
        )
