"""The command line, `empower`."""

import contextlib
import io
import sys
from collections.abc import Sequence

import tyro

from empowerment.capacity import NotConvergedError
from empowerment.channel import DivergedError
from empowerment.cli.agent import EvaluateCommand, ReportCommand, TrainCommand, train_command
from empowerment.cli.console import fail, say
from empowerment.cli.controller import ControlCommand, ExportCommand
from empowerment.cli.data import CollectCommand, DataCommand
from empowerment.cli.landscape import LandscapeCommand, WorldsCommand
from empowerment.cli.model import FitCommand, ModelCommand

_COMMANDS = {
    "collect": CollectCommand,
    "data": DataCommand,
    "fit": FitCommand,
    "model": ModelCommand,
    "evaluate": EvaluateCommand,
    "report": ReportCommand,
    "control": ControlCommand,
    "export": ExportCommand,
    "landscape": LandscapeCommand,
    "worlds": WorldsCommand,
}

Command = (
    TrainCommand
    | CollectCommand
    | DataCommand
    | FitCommand
    | ModelCommand
    | EvaluateCommand
    | ReportCommand
    | ControlCommand
    | ExportCommand
    | LandscapeCommand
    | WorldsCommand
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what the user got wrong ends in one sentence and exit code 2.

    Args:
        arguments: The words after `empower`; those of the process if none.
    """
    command = _parse(sys.argv[1:] if arguments is None else arguments)
    try:
        command.run()
    except (ValueError, OSError, FloatingPointError, NotConvergedError, DivergedError) as error:
        if command.debug:
            raise
        fail(str(error))
    except KeyboardInterrupt:
        say("Interrupted; nothing was written.")
        raise SystemExit(130) from None


def _parse(arguments: Sequence[str]) -> Command:
    """Parse the command line; a mistake in it becomes one sentence."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.extras.subcommand_cli_from_dict(
                {"train": train_command(arguments), **_COMMANDS},
                prog="empower",
                description="Empowerment: how much a system can do about its own future.",
                args=arguments,
                config=(
                    tyro.conf.FlagCreatePairsOff,
                    tyro.conf.OmitArgPrefixes,
                ),
            )
    except SystemExit as stop:
        if stop.code != 2:
            raise
    # Of the parser's box, the text before the first rule is what is wrong.
    lines = [line.strip("│ \n") for line in complaint.getvalue().split("\n")[1:]]
    wrong = []
    for line in lines:
        if line.startswith(("───", "╰")):
            break
        wrong.append(line)
    fail(f"{' '.join(wrong).rstrip('.')}. See empower --help.")
    raise AssertionError
