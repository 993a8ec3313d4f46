"""The scheduler loses no run, whatever happens to workers and driver."""

import copy
import heapq
from pathlib import Path

import msgspec
import numpy as np
import pytest

from empowerment.sweep.driver import Options, drive
from empowerment.sweep.executors import Result
from empowerment.sweep.folder import Sweep
from empowerment.sweep.grid import Grid
from empowerment.sweep.jobs import Failure, Job, Outcome
from empowerment.sweep.metrics import MedianRule
from empowerment.sweep.scheduler import Entry, Scheduler, released

NONE = Grid("pendulum", (), {}, (0,), "smoke", 0, 1)
OPTIONS = Options(2, False, lambda sentence: None, lambda doing, done, total: None)  # noqa: FBT003


class KilledError(Exception):
    """The driver was killed."""


class Simulated:
    """Executor in simulated time: drawn durations, failures by name, and a driver that is killed.

    The stage durations are those measured for a smoke run; a tenth of the attempts die.
    """

    def __init__(self, slots: int, seed: int, lives: list[int]):
        self.slots = slots
        self.clock, self.work = 0.0, 0.0
        self.attempts: dict[str, int] = {}
        self._random = np.random.default_rng(seed)
        self._running: list[tuple[float, str, bool]] = []
        self._lives = lives

    def submit(self, job: Job) -> None:
        assert job.name not in [name for _, name, _ in self._running]
        assert len(self._running) < self.slots
        duration = float(self._random.lognormal(np.log(27.0), 0.5))
        fails = job.name.endswith("7") or bool(self._random.random() < 0.1)
        duration *= self._random.random() if fails else 1.0
        self.work += duration
        self.attempts[job.name] = self.attempts.get(job.name, 0) + 1
        heapq.heappush(self._running, (self.clock + duration, job.name, fails))

    def wait(self, seconds: float) -> list[Result]:
        if self._lives and sum(self.attempts.values()) >= self._lives[0]:
            self._lives.pop(0)
            raise KilledError
        self.clock, name, fails = heapq.heappop(self._running)
        return [(name, Failure("died") if fails else Outcome({"score": 1.0}, name))]

    def cancel(self, name: str) -> None:
        raise AssertionError("nothing is pruned here")

    def close(self) -> None:
        self._running.clear()


def sweep_of(count: int, folder: Path) -> tuple[Sweep, dict[str, Job]]:
    names = [f"world/seed-{number}" for number in range(count)]
    entries = {name: Entry({"seed": number}) for number, name in enumerate(names)}
    return Sweep(folder, NONE, entries), {name: Job(name, folder / name, {}, 0) for name in names}


def test_ten_thousand_runs_are_scheduled_without_gaps(tmp_path: Path):
    sweep, jobs = sweep_of(10_000, tmp_path)
    simulated = Simulated(slots=64, seed=0, lives=[])
    drive(sweep, jobs, simulated, OPTIONS)
    for name, entry in sweep.entries.items():
        assert entry.attempts == simulated.attempts[name] <= 3
        assert entry.state == ("finished" if entry.hash else "failed")
        assert entry.state == "finished" or entry.attempts == 3
        assert name.endswith("7") <= (entry.state == "failed")
    # By chance alone 0.1 ** 3 of the others fail three times.
    by_chance = sum(
        each.state == "failed" for name, each in sweep.entries.items() if not name.endswith("7")
    )
    assert by_chance < 9 + 5 * 3
    # No executor could be done before work / slots; no list schedule is later than one run more.
    least = simulated.work / simulated.slots
    assert least <= simulated.clock <= least + 27.0 * np.exp(0.5 * 5)


def test_a_driver_that_is_killed_again_and_again_loses_nothing(tmp_path: Path):
    sweep, jobs = sweep_of(10_000, tmp_path)
    simulated = Simulated(slots=64, seed=1, lives=[1000, 2500, 2600, 7000, 9999])
    ends = 0
    while True:
        before = msgspec.json.encode(sweep.entries)
        try:
            drive(sweep, jobs, simulated, OPTIONS)
            break
        except KilledError:
            ends += 1
        if ends == 3:  # Killed without a word: what it had done since is forgotten.
            sweep.entries = msgspec.json.decode(before, type=dict[str, Entry])
        released(sweep.entries.values(), keep_pruned=True)
    assert ends == 5
    assert {each.state for each in sweep.entries.values()} == {"finished", "failed"}
    assert all(
        (each.state == "failed") >= name.endswith("7") for name, each in sweep.entries.items()
    )
    # Each end of a driver costs the runs of all slots, and the third what it had done.
    total = sum(simulated.attempts.values())
    assert total < 10_000 * (1.0 + 0.11 + 2 * 0.1) + 5 * 3 * 64 + 5000


@pytest.fixture
def one() -> dict[str, Entry]:
    return {"run": Entry({"seed": 0}), "other": Entry({"seed": 1})}


def test_a_failed_run_is_tried_again_after_all_others_and_then_reported(one: dict[str, Entry]):
    scheduler = Scheduler(one, retries=1)
    assert scheduler.start() == "run"
    assert scheduler.end("run", Failure("first")) == "waiting"
    assert scheduler.start() == "other"
    assert scheduler.start() == "run"
    assert scheduler.start() is None
    assert not scheduler.is_complete
    assert scheduler.end("run", Failure("second")) == "failed"
    assert scheduler.end("other", Outcome({}, "bits")) == "finished"
    assert scheduler.is_complete
    assert (one["run"].attempts, one["run"].why) == (2, "second")


def test_results_may_come_late_or_twice(one: dict[str, Entry]):
    scheduler = Scheduler(one, retries=0)
    scheduler.start()
    assert scheduler.end("run", Failure("lost")) == "failed"
    assert scheduler.end("run", Outcome({"a": 1.0}, "bits")) == "finished"
    assert scheduler.end("run", Failure("lost again")) == "finished"
    assert one["run"].hash == "bits"
    assert scheduler.count("finished") == 1
    assert scheduler.count("failed") == 0
    # A run that ends while it waits to be tried again is not started again.
    scheduler = Scheduler(waiting := copy.deepcopy(one) | {"run": Entry({})}, retries=1)
    assert scheduler.start() == "run"
    scheduler.end("run", Failure("lost"))
    scheduler.end("run", Outcome({}, "bits"))
    assert scheduler.start() == "other"
    assert scheduler.start() is None
    assert waiting["run"].attempts == 1


def test_a_new_driver_tries_again_what_had_failed():
    states = ["waiting", "running", "finished", "failed", "pruned"]
    entries = [Entry({}, state=state, attempts=3) for state in states]  # pyright: ignore
    released(entries, keep_pruned=True)
    assert [each.state for each in entries] == ["waiting"] * 2 + ["finished", "waiting", "pruned"]
    assert [each.attempts for each in entries] == [3, 0, 3, 0, 3]
    released(entries, keep_pruned=False)
    assert entries[-1].state == "waiting"


def curve(*values: float) -> list[tuple[tuple[int, int], float]]:
    return [((0, 100 * count), float(value)) for count, value in enumerate(values)]


def test_the_median_rule_is_its_formula():
    rule = MedianRule()
    rule.add("a", curve(1, 3, 5, 7))
    rule.add("a", curve(2, 2, 2, 2))
    bad = curve(0.1, 1.9)
    assert rule.complaint("a", bad) is None  # Two have no median worth the name.
    rule.add("a", curve(0, 1, 2, 3))
    # Up to the second report, others had 2, 2 and 0.5 on average: a median of 2.
    assert "below the median 2.000" in str(rule.complaint("a", bad))
    assert rule.complaint("a", curve(0.1, 2.0)) is None
    assert rule.complaint("a", curve(3.0, 0.0)) is None  # What counts is its best.
    assert rule.complaint("b", bad) is None  # Other environments do not compare.
    assert rule.complaint("a", []) is None


def test_one_run_of_each_kind_comes_first():
    names = [f"world/{kind}/seed-{seed}" for kind in ("b", "a") for seed in range(3)]
    entries = {name: Entry({}) for name in names}
    entries[names[0]].state = "finished"
    scheduler = Scheduler(entries, retries=0)
    order = [scheduler.start() for _ in range(5)]
    assert order == [names[1], names[3], names[2], names[4], names[5]]
