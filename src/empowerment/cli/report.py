"""`empower report`."""

import dataclasses
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from empowerment.cli.console import log, show_progress
from empowerment.report import read_evaluation
from empowerment.runs import (
    UNFINISHED,
    compare_runs,
    read_manifest,
    refresh_manifest,
    report_run,
    summarise,
    watch_runs,
)
from empowerment.runs.experiment import from_json


@dataclasses.dataclass(frozen=True)
class ReportCommand:
    """Draw a run as one page, report.html, that opens from disk; compare several, or watch them.

    What the page needs and the folder does not have yet is computed first: the landscapes, the
    evaluation, and one episode. A run from a log alone has none of these, since there is no
    environment: its page says where the log supports what the policy imagines. Of a run that is not
    finished, what there is is drawn. Several runs get a page each, and one with all of them side by
    side.

    With --watch, one page shows the progress of runs while they are trained, without computing
    anything: `empower report --watch runs/mine`, beside `empower train`. It is drawn again every
    few seconds until the runs are finished, or Ctrl-C. A folder of runs, such as that of a sweep,
    stands for all that are in it, also those that begin later.
    """

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN [RUN ...]")]
    """The run folder, or those of the runs to compare."""

    env: Annotated[str | None, arg(metavar="ENV")] = None
    """The environment of the run again, to allow the import of its module, if it is module:ID."""

    grid: Annotated[str, arg(metavar="NxM")] = "21x21"
    """Number of states along each axis of the landscapes."""

    out: Annotated[Path | None, arg(metavar="PAGE")] = None
    """The page that compares several runs, or watches runs; by default comparison.html or
    watch.html here."""

    watch: bool = False
    """Watch runs while they are trained."""

    every: float = 5.0
    """Seconds between two looks, with --watch."""

    debug: bool = False
    """Show the traceback of an error."""

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        where = ", ".join(map(str, self.folders))
        return f"Interrupted; what was complete is in {where}. Run it again for the rest."

    def run(self) -> None:
        """Compute what is missing, then draw from files only."""
        if not self.folders:
            raise ValueError("Expected at least one run folder; got none.")
        if len({folder.resolve() for folder in self.folders}) < len(self.folders):
            raise ValueError("Expected different runs; got one of them twice.")
        if self.watch:
            watch_runs(self.folders, self.out or Path("watch.html"), every=self.every, log=log)
            return
        if self.out is not None and len(self.folders) == 1:
            raise ValueError(
                f"Expected several runs, or --watch, with --out; got one run. Its page is "
                f"{self.folders[0] / 'report.html'}."
            )
        unfinished = [folder for folder in self.folders if not self._report(folder)]
        if len(self.folders) > 1:
            if unfinished:
                raise ValueError(f"Expected finished runs to compare; {unfinished[0]} is not.")
            page = compare_runs(self.folders, self.out or Path("comparison.html"))
            log(f"The comparison is in {page}: open it in a browser.")

    def _report(self, folder: Path) -> bool:
        """Draw one run; return whether it is finished."""
        with show_progress(folder.name) as progress:
            page = report_run(folder, grid=self.grid, env=self.env, progress=progress)
        if not read_manifest(folder)["finished"]:
            log(f"{UNFINISHED} It is {page}.")
            return False
        experiment, _ = from_json(read_manifest(folder)["settings"])
        if experiment.has_environment:  # A run from a log alone is not evaluated.
            for sentence in summarise(read_evaluation(folder)):
                log(sentence)
        refresh_manifest(folder)
        log(f"The report is in {page}: open it in a browser.")
        return True
