"""`empower demo`; its list needs no JAX."""

import dataclasses
import importlib.util
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from empowerment.cli.console import log, table_console
from empowerment.files import check_writable
from empowerment.gallery import EXHIBITS, find_exhibit

_FILMS = (".mp4", ".gif")


@dataclasses.dataclass(frozen=True)
class DemoCommand:
    """Play a controller that comes with the package, without training: one episode, and its film.

    Without a name, list what there is. The figures are those of one episode by the mean action,
    beside random actions from the same start.

    Try `empower demo pendulum`.
    """

    name: Annotated[Positional[str | None], arg(metavar="NAME")] = None
    """What to play; none for a list."""

    out: Annotated[Path | None, arg(metavar="FILE.mp4|FILE.gif")] = None
    """File for the film; by default NAME.mp4 here."""

    seed: int = 0
    """Random seed of the start and of the random actions."""

    debug: bool = False
    """Show the traceback of an error."""

    def run(self) -> None:
        """Print the list, or play."""
        if self.name is None:
            if self.out is not None:
                raise ValueError("Expected a name with --out; got none. See empower demo.")
            self._list()
            return
        exhibit = find_exhibit(self.name)
        path = self.out or Path(f"{self.name}.mp4")
        if path.suffix not in _FILMS:
            raise ValueError(f"Expected the film to end in {' or '.join(_FILMS)}; got {path}.")
        film = bool(importlib.util.find_spec("imageio"))
        if film:
            check_writable(path)
        from empowerment.gallery.playing import play_exhibit  # Environments are an extra.

        played = play_exhibit(exhibit, seed=self.seed, film=film)
        log(f"{exhibit.title}: one episode in {exhibit.environment}, seed {self.seed}.")
        for sentence in played.sentences:
            log(sentence)
        log(f"Over seeds: {exhibit.result}")
        if played.frames is None:
            log("No film: imageio is not installed. Install empowerment[train].")
            return
        from empowerment.report import write_video

        path.parent.mkdir(parents=True, exist_ok=True)
        write_video(played.frames, path, fps=played.fps)
        log(f"The film is in {path}. Trained by {exhibit.command}.")

    def _list(self) -> None:
        """Print a table."""
        table = Table("name", "what it does", "trained by")
        for name in EXHIBITS:
            exhibit = find_exhibit(name)
            table.add_row(name, exhibit.title, exhibit.command)
        table_console(100).print(table)
