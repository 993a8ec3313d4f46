"""A run that several processes train: process 0 has its folder, the others a copy of their own."""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from empowerment.files import encode, write_atomic
from empowerment.packing import pack_folder, unpack_folder
from empowerment.processes import Team
from empowerment.runs.experiment import Experiment, from_json, to_json
from empowerment.runs.folder import Run, open_run


def decided(team: Team, decide: Callable[[], Experiment]) -> Experiment:
    """Decide in process 0 what settings leave open, and return the experiment in all."""
    if team.is_first:
        experiment = decide()
        team.share(lambda: encode(to_json(experiment, 0)))
        return experiment
    settings: dict[str, Any] = json.loads(team.share(bytes))
    return from_json(settings, "the settings of process 0")[0]


@contextlib.contextmanager
def open_shared(
    team: Team,
    folder: Path,
    settings: dict[str, Any],
    *,
    resume: bool,
    prepare: Callable[[], None],
    **options: Any,
) -> Iterator[Run]:
    """Open a run folder, see `open_run`; in all processes but the first a temporary copy of it.

    Args:
        team: The processes that train the run.
        folder: The run folder.
        settings: Its settings.
        resume: Whether to resume the run in it.
        prepare: Writes what process 0 alone knows, before the folder is copied.
        **options: As given to `open_run`.
    """
    if team.is_first:
        with open_run(folder, settings, resume=resume, **options) as run:
            prepare()
            run.team = team
            if team.count > 1:
                team.share(lambda: pack_folder(folder))
            yield run
        return
    with tempfile.TemporaryDirectory() as here:
        copy = Path(here) / "run"
        unpack_folder(team.share(bytes), copy)
        with open_run(copy, settings, resume=True, **options) as run:
            run.team = team
            yield run


def write_shared(run: Run, path: Path, write: Callable[[], None]) -> None:
    """Let process 0 write a file of a run, and copy it to all."""

    def written() -> bytes:
        write()
        return path.read_bytes()

    data = run.team.share(written)
    if not run.team.is_first:
        write_atomic(path, data)
