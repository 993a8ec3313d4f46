"""`empower report`."""

import dataclasses
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from empowerment.cli.console import log, show_progress
from empowerment.report import read_evaluation
from empowerment.runs import refresh_manifest, report_run, summarise


@dataclasses.dataclass(frozen=True)
class ReportCommand:
    """Draw a run as one page, report.html, that opens from disk.

    What the page needs and the folder does not have yet is computed first: the landscapes, the
    evaluation, and one episode. A run from a log alone has none of these, since there is no
    environment: its page says where the log supports what the policy imagines.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    env: Annotated[str | None, arg(metavar="ENV")] = None
    """The environment of the run again, to allow the import of its module, if it is module:ID."""

    grid: Annotated[str, arg(metavar="NxM")] = "21x21"
    """Number of states along each axis of the landscapes."""

    debug: bool = False
    """Show the traceback of an error."""

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        return f"Interrupted; what was complete is in {self.folder}. Run it again for the rest."

    def run(self) -> None:
        """Compute what is missing, then draw from files only."""
        with show_progress(self.folder.name) as progress:
            page = report_run(self.folder, grid=self.grid, env=self.env, progress=progress)
        if (self.folder / "evaluation.json").exists():  # A run from a log alone has none.
            for sentence in summarise(read_evaluation(self.folder)):
                log(sentence)
        refresh_manifest(self.folder)
        log(f"The report is in {page}: open it in a browser.")
