"""Stand-ins for training that workers can import; none of them needs JAX."""

import json
import os
import signal
import time

from empowerment.sweep.jobs import Job, Outcome


def quick(job: Job) -> Outcome:
    """Note that it was called, and return figures that the settings determine."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with (job.folder / "calls").open("a") as file:
        file.write("x")
    seed, horizon = job.settings["seed"], job.settings["agent"]["horizon"]
    figures = {"score": 100.0 * horizon + seed, "threads": float(os.environ["OMP_NUM_THREADS"])}
    said = ("a warning",) if seed == 1 else ()
    return Outcome(figures, f"hash of {job.name}", seconds=0.1, core_seconds=0.05, said=said)


def calls(job: Job) -> int:
    """How often a run was begun."""
    path = job.folder / "calls"
    return len(path.read_text()) if path.exists() else 0


def doomed(job: Job) -> Outcome:
    """Fail for ever with seed 0, die twice with seed 1."""
    outcome = quick(job)
    if job.settings["seed"] == 0:
        raise RuntimeError("no luck")
    if job.settings["seed"] == 1 and calls(job) < 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome


def endless(job: Job) -> Outcome:
    """Stream metrics for ever if the seed is 9, and a few good ones otherwise."""
    outcome = quick(job)
    seed = job.settings["seed"]
    with (job.folder / "metrics.jsonl").open("w") as file:
        for count in range(10):
            value = 0.1 * count - (5.0 if seed == 9 else 0.0)
            line = {"stage": "policy", "round": 0, "update": 100 * count, "bound": value}
            file.write(json.dumps(line) + "\n")
    while seed == 9:
        time.sleep(0.05)
    return outcome


def patient(job: Job) -> Outcome:
    """Note the process, and wait until a file says to go on."""
    job.folder.mkdir(parents=True, exist_ok=True)
    (job.folder / "process").write_text(str(os.getpid()))
    while not (job.folder.parent / "go").exists():
        time.sleep(0.02)
    return quick(job)


def somewhere(job: Job) -> Outcome:
    """Note the node of a Ray cluster that it is on; the first attempt with seed 1 is killed."""
    import ray

    outcome = quick(job)
    (job.folder / "node").write_text(ray.get_runtime_context().get_node_id())
    time.sleep(1.0)
    if job.settings["seed"] == 1 and calls(job) < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome
