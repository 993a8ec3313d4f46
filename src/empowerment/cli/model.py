"""`empower model`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.table import Table
from tyro.conf import Positional, arg

from empowerment.cli.console import log, table_console
from empowerment.data import Trajectories, check
from empowerment.files import check_writable
from empowerment.model import ModelEvaluation, evaluate_model
from empowerment.report import draw_model_evaluation
from empowerment.runs import load_model


@dataclasses.dataclass(frozen=True)
class ModelCommand:
    """Evaluate a model by its predictions of data that it has not seen.

    These are the test data of the fit, by which nothing was chosen, or those of --data. The
    filter runs for a few steps, then the model predicts what was recorded after them, without
    measurements and not past the end of an episode. Errors are mean squares in units of the
    variance of each column, beside those of persistence (nothing changes) and of a linear model
    fitted to the training data. Coverage is the fraction of observations within the model's 90 %
    intervals.
    """

    folder: Annotated[Positional[Path], arg(metavar="MODEL")]
    """The folder of the model, as `empower fit` made it."""

    data: Annotated[Path | None, arg(metavar="FILE.npz")] = None
    """Evaluate on these data, rather than on the test data of the fit."""

    figure: Annotated[Path | None, arg(metavar="FILE.png")] = None
    """Draw errors and coverage to this file; by default prediction.png in the folder."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Evaluate, draw, and print."""
        fitted = load_model(self.folder)
        figure = self.figure or self.folder / "prediction.png"
        check_writable(figure)
        test = fitted.test if self.data is None else Trajectories.load(self.data)
        if test is None:
            raise ValueError(
                f"Expected the data of {self.folder} to have test episodes; training and "
                "validation took all of them. Evaluate on other data: --data FILE."
            )
        if test.spaces != fitted.train.spaces:
            raise ValueError(
                f"Expected the data in {self.data} to be of the model's system, with "
                f"{_sizes(fitted.train)}; got {_sizes(test)} or other limits."
            )
        check(test)
        found = evaluate_model(fitted.model, fitted.train, test)
        draw_model_evaluation(found, figure)
        if self.json:
            rows = {name: np.asarray(values).tolist() for name, values in vars(found).items()}
            print(json.dumps(rows, indent=2))
        else:
            _print(found)
        log(f"The picture is in {figure}.")


def _print(found: ModelEvaluation) -> None:
    """Print a table."""
    table = Table(
        "steps ahead", "model", "persistence", "linear", "in 90 % intervals", "predictions"
    )
    for index, horizon in enumerate(found.horizons):
        errors = (found.model[index], found.persistence[index], found.linear[index])
        table.add_row(
            str(horizon),
            *(f"{error:.2g}" for error in errors),
            f"{found.coverage[index]:.0%}",
            str(found.num_predictions[index]),
        )
    table_console(100).print(table)


def _sizes(data: Trajectories) -> str:
    return f"{data.observation_size} observed columns and {data.action_size} actions"
