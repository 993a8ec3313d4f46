"""Processor time of each stage of a run with the defaults, as a worker of a sweep spends it.

Start it with NPROC=1 OMP_NUM_THREADS=1, so that a run has one core.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from empowerment.runs import Experiment, evaluate_run, train_run


class Clock:
    """Adds up the processor time of this process by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._stage, self._since = "start", time.process_time()

    def __call__(self, doing: str, done: int, total: int) -> None:
        """Receive progress: whatever was spent since the last was of the stage before."""
        now = time.process_time()
        self.seconds[self._stage] += now - self._since
        self._stage, self._since = doing.partition(",")[0], now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", nargs="?", default="Pendulum-v1")
    parser.add_argument("--budget", default="full", choices=("smoke", "full"))
    options = parser.parse_args()
    experiment = Experiment(env=options.environment, rounds=0).with_budget(options.budget)
    clock = Clock()
    with tempfile.TemporaryDirectory() as here:
        folder = Path(here) / "run"
        train_run(experiment, folder=folder, seed=0, progress=clock)
        clock("evaluation", 0, 1)
        evaluate_run(folder, episodes=100, seed=0)
        clock("end", 0, 1)
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
    for stage, seconds in clock.seconds.items():
        print(f"{stage}: {seconds:.0f} core seconds")
    print(f"all: {sum(clock.seconds.values()):.0f} core seconds")
    print(f"{len(files)} files, {size} bytes")


if __name__ == "__main__":
    main()
