"""Import of a log in every format: seconds and peak memory, at two lengths."""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.log_writers import WRITERS
from empowerment.data import Episode, LogOptions, Trajectories, read_log
from empowerment.data.spaces import numbered_spaces

EPISODE = 1000
"""Transitions in an episode."""

OBSERVED, ACTED = 4, 1
"""Columns of an observation and of an action."""


def make_log(rows: int) -> Trajectories:
    """Return random episodes with so many transitions."""
    random = np.random.default_rng(0)
    episodes = tuple(
        Episode(
            random.normal(size=(EPISODE + 1, OBSERVED)),
            random.normal(size=(EPISODE, ACTED)),
            terminated=False,
            truncated=True,
        )
        for _ in range(rows // EPISODE)
    )
    return Trajectories(episodes, numbered_spaces(OBSERVED, ACTED), {"interval": 0.02})


def _write(pipe: Connection, name: str, rows: int, folder: str) -> None:
    pipe.send(WRITERS[name](make_log(rows), Path(folder)))


def _read(pipe: Connection, source: str, options: LogOptions, folder: str) -> None:
    os.environ["MINARI_DATASETS_PATH"] = f"{folder}/minari"
    before = _peak()
    start = time.process_time()
    data = read_log(source, options)
    seconds = time.process_time() - start
    pipe.send((data.num_transitions, seconds, _peak() - before))


def _peak() -> float:
    """Return the largest memory so far in megabytes; `getrusage` would count that of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def _in_process(function: Callable[..., None], *arguments: Any) -> Any:
    """Call a function in a fresh process, whose memory is its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=function, args=(there, *arguments))
    process.start()
    there.close()
    result = here.recv()
    process.join()
    return result


def measure(name: str, rows: int) -> tuple[float, float]:
    """Return the processor seconds and the megabytes that reading a log takes."""
    with tempfile.TemporaryDirectory() as folder:
        source, options = _in_process(_write, name, rows, folder)
        read, seconds, megabytes = _in_process(_read, source, options, folder)
    if read != rows:
        raise RuntimeError(f"Expected {rows} transitions from {name}; got {read}.")
    return seconds, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--formats", nargs="*", default=list(WRITERS))
    given = parser.parse_args()
    quarter = given.rows // 4
    print(f"{'format':18} {quarter:>9} rows {given.rows:>14} rows   ratio   peak memory")
    for name in given.formats:
        (less, few), (more, many) = (measure(name, rows) for rows in (quarter, given.rows))
        print(
            f"{name:18} {less:>12.2f} s {more:>17.2f} s {more / less:>7.1f}   "
            f"{few:.0f} and {many:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
