"""The command line, `empower`: each command is imported only when it is used."""

import contextlib
import importlib
import io
import sys
from collections.abc import Sequence
from typing import Any

import tyro

from empowerment.cache import use_cache
from empowerment.cli.console import fail, log
from empowerment.errors import EXTRAS, EmpowermentError

COMMANDS = {
    "demo": ("DemoCommand", "play a controller that comes with the package"),
    "train": ("TrainCommand", "train a policy that seeks empowered states"),
    "evaluate": ("EvaluateCommand", "run a trained policy in its environment"),
    "report": ("ReportCommand", "draw a run as one page, report.html"),
    "control": ("ControlCommand", "run a trained policy in real time"),
    "export": ("ExportCommand", "write a trained policy as C, ONNX or npz"),
    "sweep": ("SweepCommand", "train over many seeds, settings and environments"),
    "collect": ("CollectCommand", "collect data in a Gymnasium environment"),
    "data": ("DataCommand", "describe, check, repair and import data"),
    "fit": ("FitCommand", "learn a world from data"),
    "model": ("ModelCommand", "evaluate the predictions of a learnt world"),
    "landscape": ("LandscapeCommand", "compute the empowerment of many states of a world"),
    "worlds": ("WorldsCommand", "list the named worlds"),
}
"""The class of each command in the module of its name, and one line about it."""


_NO_CACHE = "--no-cache"
"""Option of all commands: keep no compiled programs."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; mistakes of the user end in one sentence and exit code 2.

    Args:
        arguments: The words after `empower`; those of the process by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["-h"], ["--help"]):
        print(_help())
        raise SystemExit(0)
    if not words or words[0] not in COMMANDS:
        given = words[0] if words else "none"
        fail(f"Expected a command, one of {', '.join(COMMANDS)}; got {given}. See empower --help.")
    if _NO_CACHE in words:
        words.remove(_NO_CACHE)
    else:
        use_cache(log)
    try:
        command = _parse(words[0], words[1:])
        _run(command)
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in EXTRAS:
            raise
        fail(
            f"Expected {package} to be installed for empower {words[0]}; it is not. Install "
            f"empowerment[{EXTRAS[package]}]."
        )


def _run(command: Any) -> None:
    try:
        command.run()
    except (ValueError, OSError, EmpowermentError) as error:
        if command.debug:
            raise
        fail(str(error))
    except KeyboardInterrupt:
        log(getattr(command, "interrupted", "Interrupted; no result was written."))
        raise SystemExit(130) from None


def _help() -> str:
    """Return the top-level help, without importing any command."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: empower COMMAND [OPTIONS]",
            "",
            "Empowerment: how much a system can do about its own future, in nats.",
            "",
            "commands:",
            *lines,
            "",
            "Compiled programs are kept in the user's cache; --no-cache does without it.",
            "See empower COMMAND --help for the options of a command. Start with",
            "  empower demo",
            "  empower train pendulum --out runs/pendulum",
        ]
    )


def _parse(name: str, arguments: Sequence[str]) -> Any:
    """Import and parse a command; a mistake in it becomes one sentence."""
    module = importlib.import_module(f"empowerment.cli.{name}")
    kind = getattr(module, COMMANDS[name][0])
    if hasattr(module, "for_arguments"):
        kind = module.for_arguments(arguments)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return parse(kind, name, arguments)
    except SystemExit as stop:
        if stop.code != 2:
            raise
    # The text of the parser's box before the first rule is the complaint.
    wrong = []
    for line in (line.strip("│ \n") for line in complaint.getvalue().split("\n")[1:]):
        if line.startswith(("───", "╰")):
            break
        wrong.append(line)
    fail(f"{' '.join(wrong).rstrip('.')}. See empower {name} --help.")
    raise AssertionError


def parse(kind: type, name: str, arguments: Sequence[str]) -> Any:
    """Parse the words of a command."""
    return tyro.cli(
        kind,
        prog=f"empower {name}",
        args=list(arguments),
        config=(tyro.conf.FlagCreatePairsOff,),
    )
