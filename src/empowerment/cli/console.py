"""Terminal output: progress, messages, and how a command ends."""

import contextlib
import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

_LINE_INTERVAL = 5.0
"""Seconds between two lines of progress where there is no terminal."""


def fail(sentence: str) -> None:
    """End with one line on standard error and exit code 2."""
    print(f"empower: {' '.join(sentence.split())}", file=sys.stderr)
    raise SystemExit(2)


def log(sentence: str) -> None:
    """Write a message to standard error; standard output is for results."""
    print(sentence, file=sys.stderr, flush=True)


def table_console(width: int) -> Console:
    """Return a console for tables: as wide as the terminal, or of a given width elsewhere."""
    return Console(width=None if sys.stdout.isatty() else width)


@contextlib.contextmanager
def show_progress(title: str) -> Iterator:
    """Show progress: a bar on a terminal; elsewhere a line every few seconds, if it is another."""
    console = Console(stderr=True)
    if console.is_terminal:
        text = TextColumn("{task.description}")
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(title, total=None)

            def show(doing: str, done: int, total: int) -> None:
                bar.update(task, description=f"{title}: {doing}", completed=done, total=total)

            yield show
        return
    last, said = time.monotonic(), ""

    def report(doing: str, done: int, total: int) -> None:
        nonlocal last, said
        line = f"{title}: {doing}, {done} of {total}"
        if done < total and time.monotonic() - last >= _LINE_INTERVAL and line != said:
            last, said = time.monotonic(), line
            log(line)

    yield report
