"""`empower evaluate`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from empowerment.cli.console import log, show_progress
from empowerment.runs import evaluate_run, refresh_manifest, summarise


@dataclasses.dataclass(frozen=True)
class EvaluateCommand:
    """Run a trained policy in its environment, beside random actions.

    The figures are of the mean action; under `sampled` are those of sampled actions, under
    `uniform` those of random ones, and under `zero` those of no action where that is worth
    comparing with. Systems that we know have figures of their own, such as the fraction of
    episodes in which a pendulum is held upright throughout the last 5 s.
    """

    folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """The run folder."""

    env: Annotated[str | None, arg(metavar="ENV")] = None
    """The environment of the run again, to allow the import of its module, if it is module:ID."""

    episodes: int = 100
    """Number of episodes."""

    seed: int = 0
    """Random seed."""

    json: bool = False
    """Print the figures as JSON to standard output."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Evaluate, store the figures in the run folder, and print them."""
        with show_progress(self.folder.name) as progress:
            figures = evaluate_run(
                self.folder,
                episodes=self.episodes,
                seed=self.seed,
                env=self.env,
                progress=progress,
            )
        refresh_manifest(self.folder)
        if self.json:
            print(json.dumps(figures, indent=2))
            return
        for sentence in summarise(figures):
            log(sentence)

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        return f"Interrupted; episodes that were complete may be in {self.folder}, no figures."
