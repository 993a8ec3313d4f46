"""`empower fit` and `empower model`."""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from empowerment.cli.console import say, show_progress
from empowerment.data import Trajectories, check
from empowerment.experiments import ModelSettings, fit_model, load_model, with_model_budget
from empowerment.model import ModelEvaluation, evaluate_model
from empowerment.report import check_writable, draw_model_evaluation


@dataclasses.dataclass(frozen=True)
class FitCommand:
    """Learn a world from logged observations and actions, and keep it in a folder.

    The model is a deep variational Bayes filter: a world to imagine in, and the filter that keeps
    track of it. A tenth of the data is held out; training stops when the model no longer gets
    better there. It can be interrupted at any moment, and resumed to the same bits by the same
    command with --resume.

    Try `empower collect Pendulum-v1 --steps 10000 --out pendulum.npz`, then
    `empower fit pendulum.npz --out models/pendulum` and `empower model models/pendulum`.
    """

    data: Annotated[Positional[Path], arg(metavar="DATA")]
    """A file of trajectories, as `empower collect` and `empower data` write them."""

    out: Annotated[Path, arg(metavar="MODEL")]
    """The folder of the model."""

    seed: int = 0
    """Of everything random."""

    budget: Literal["smoke", "full"] = "full"
    """smoke: so small that it only shows that everything runs."""

    resume: bool = False
    """Go on with what is in the folder."""

    debug: bool = False
    """Show where an error comes from."""

    settings: ModelSettings = dataclasses.field(default_factory=ModelSettings)
    """Of the model."""

    def run(self) -> None:
        """Check the data, fit, and say what came out."""
        start = time.monotonic()
        trajectories = Trajectories.load(self.data)
        check(trajectories)
        try:
            with show_progress(self.out.name) as progress:
                fitted = fit_model(
                    trajectories,
                    with_model_budget(self.settings, self.budget),
                    folder=self.out,
                    seed=self.seed,
                    resume=self.resume,
                    progress=progress,
                    say=say,
                )
        except KeyboardInterrupt:
            say(f"Interrupted; all that was done is in {self.out}. Go on with it by --resume.")
            raise SystemExit(130) from None
        made, seen = fitted.about["history"][-1]
        say(
            f"Fitted in {time.monotonic() - start:.0f} s, {made} updates ({fitted.about['stopped']}"
            f"); the evidence of data held out is {seen['held_out']:.3f} nats per row. The model "
            f"is in {self.out}. See how it predicts with: empower model {self.out}"
        )


@dataclasses.dataclass(frozen=True)
class ModelCommand:
    """Judge a model by how well it predicts data that it has not seen.

    The filter runs for a few steps, then the model predicts without looking. Errors are mean
    squares in units of the spread of each channel, beside those of persistence (nothing changes)
    and of a linear model fitted to the same data. Coverage is the share of what came that lies in
    the model's intervals of 90 %.
    """

    folder: Annotated[Positional[Path], arg(metavar="MODEL")]
    """The folder of the model, as `empower fit` made it."""

    data: Annotated[Path | None, arg(metavar="FILE.npz")] = None
    """Judge by these data, rather than by those held out when it was fitted."""

    figure: Annotated[Path | None, arg(metavar="FILE.png")] = None
    """Draw errors and coverage here; prediction.png in the folder if not given."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show where an error comes from."""

    def run(self) -> None:
        """Judge, draw, and say."""
        fitted = load_model(self.folder)
        figure = self.figure or self.folder / "prediction.png"
        check_writable(figure)
        held_out = fitted.held_out if self.data is None else Trajectories.load(self.data)
        if held_out.spaces != fitted.train.spaces:
            raise ValueError(
                f"Expected the data in {self.data} to be of the model's system, with "
                f"{_sizes(fitted.train)}; got {_sizes(held_out)} or other limits."
            )
        check(held_out)
        found = evaluate_model(fitted.model, fitted.train, held_out)
        draw_model_evaluation(found, figure)
        if self.json:
            rows = {
                name: [float(value) for value in values]
                for name, values in vars(found).items()
                if name not in ("horizons", "num_predictions")
            }
            about = {"horizons": list(found.horizons), "num_predictions": found.num_predictions}
            print(json.dumps({**about, **rows}, indent=2))
        else:
            _print(found)
        say(f"The picture is in {figure}.")


def _print(found: ModelEvaluation) -> None:
    """Print a table."""
    table = Table("steps ahead", "model", "persistence", "linear", "in 90 % intervals")
    for index, horizon in enumerate(found.horizons):
        errors = (found.model[index], found.persistence[index], found.linear[index])
        table.add_row(str(horizon), *(f"{e:.2g}" for e in errors), f"{found.coverage[index]:.0%}")
    Console(width=None if sys.stdout.isatty() else 100).print(table)


def _sizes(data: Trajectories) -> str:
    return f"{data.observation_size} observed channels and {data.action_size} actions"
