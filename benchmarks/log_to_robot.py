"""From the log of a cart-pole to the controller in C that balances it, measured.

    python -m benchmarks.log_to_robot --out results/log-to-robot

Everything goes through the command line and sockets, as a user's would. The device is
`examples/cartpole_device.py` in a process of its own: in lock-step for the log and most runs, by
the clock for the last. Steps whose results are in the folder are not made again.
"""

import argparse
import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
COLUMNS = "--observations position,velocity,angle,turning --actions force --episode episode"
LOG = f"{COLUMNS} --terminated fell --time t --rate 50 --limits=-10:10"
SECONDS = 60.0
BAD = ("--drop", "0.1", "--jitter", "0.02")
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror")


def run(*words: str | Path, timeout: float = 7200.0, **options: Any) -> str:
    """Run a command, and return what it printed; raise if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout,
        check=True,
        **options,
    )
    return done.stdout


def empower(*words: str | Path) -> str:
    """Run the command line."""
    return run(sys.executable, "-m", "empowerment.cli", *words)


@contextlib.contextmanager
def device(*words: str, before: Sequence[str] = ()) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Start the device; yield its port and its process."""
    script = [*before, sys.executable, str(EXAMPLES / "cartpole_device.py"), "--port", "0", *words]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2]), process
        finally:
            process.kill()


def episodes(process: subprocess.Popen[str]) -> list[tuple[float, str]]:
    """End a device, and return the length and the end of each of its episodes."""
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=30.0)
    return [(float(s), how) for s, how in re.findall(r"episode \d+: ([\d.]+) s, (\w+)", text)]


def log(path: Path, *, minutes: float, seed: int) -> None:
    """Let the controller written by hand log the device."""
    with device("--lockstep", "--seconds", "20", "--seed", str(seed)) as (port, _):
        words = ("--port", str(port), "--minutes", str(minutes), "--seed", str(seed))
        run(sys.executable, EXAMPLES / "cartpole_log.py", *words, "--out", path)


def build(folder: Path) -> Path:
    """Export a run to C and compile it; return the program."""
    header = folder / "cartpole.h"
    empower("export", folder / "run", "--format", "c", "--out", header)
    program, source = folder / "cartpole", EXAMPLES / "cartpole_controller.c"
    run("cc", *FLAGS, f"-I{folder}", "-o", program, source, "-lm")
    return program


def balance(
    program: Path, *words: str, count: int, seed: int, before: Sequence[str] = ()
) -> dict[str, Any]:
    """Let the program balance the device so many times, in processes of their own."""
    found = []
    for index in range(count):
        given = (*words, "--seconds", str(SECONDS), "--seed", str(seed + index))
        with device(*given, before=before) as (port, peer):
            # A moment longer than the episode, so that its end is seen.
            said = run(*before, program, str(port), str(SECONDS + 0.1), timeout=300.0).strip()
            ended = episodes(peer)
        seconds, how = ended[0] if ended else (0.0, "none")
        found.append({"seconds": seconds, "balanced": how == "cut", "controller": said})
        print(f"{' '.join(words)}: {seconds:.2f} s, {how}; {said}", flush=True)
    return {"balanced": sum(each["balanced"] for each in found), "of": count, "runs": found}


def die(program: Path, *, seed: int, before: Sequence[str] = ()) -> dict[str, Any]:
    """Kill the device in mid-run; measure how long the controller takes to say so."""
    with device("--seed", str(seed), before=before) as (port, peer):
        words = [*before, str(program), str(port), "30"]
        controller = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        time.sleep(2.0)
        peer.kill()
        start = time.monotonic()
        said, _ = controller.communicate(timeout=30.0)
    found = {"seconds": time.monotonic() - start, "controller": said.strip()}
    print(f"killed: {said.strip()} after {1e3 * found['seconds']:.1f} ms", flush=True)
    return found


def measure(
    folder: Path, *, minutes: float, seed: int, train: Sequence[str], before: Sequence[str] = ()
) -> dict[str, Any]:
    """Go the whole way; return the figures. By the clock, programs are started by `before`."""
    folder.mkdir(parents=True, exist_ok=True)
    table, data, trained = folder / "log.csv", folder / "log.npz", folder / "run"
    if not table.exists():
        log(table, minutes=minutes, seed=seed)
    if not data.exists():
        empower("data", table, *LOG.split(), "--out", data)
    start = time.monotonic()
    if not (trained / "controller.json").exists():
        empower("train", "--data", data, "--out", trained, "--seed", str(seed), *train)
    found: dict[str, Any] = {
        "minutes": minutes,
        "seed": seed,
        "train_seconds": time.monotonic() - start,
        "data": json.loads(empower("data", data, "--json")),
    }
    program = build(folder)
    found["lockstep"] = balance(program, "--lockstep", count=10, seed=1000 + seed)
    found["lockstep_bad"] = balance(program, "--lockstep", *BAD, count=10, seed=2000 + seed)
    found["before"] = list(before)
    found["death"] = die(program, seed=3000 + seed, before=before)
    found["clock"] = balance(program, count=1, seed=4000 + seed, before=before)
    found["clock_bad"] = balance(program, *BAD, count=1, seed=5000 + seed, before=before)
    return found


def main() -> None:
    """Measure, and write the figures to `results.json` in the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/log-to-robot"))
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--realtime", action="store_true", help="by the clock, with priority")
    given, rest = parser.parse_known_args()
    before = ("chrt", "-f", "50") if given.realtime else ()
    found = measure(given.out, minutes=given.minutes, seed=given.seed, train=rest, before=before)
    (given.out / "results.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
