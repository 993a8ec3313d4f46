"""Train policies that swing rods up, over seeds, and measure how high they end."""

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks.tables import Table, write_table
from empowerment.runs import PRESETS, evaluate_agent, train_run

_PRESETS = "cart-pole", "double-pendulum", "triple-pendulum"


def measure(preset: str, seed: int, episodes: int) -> dict[str, object]:
    """Train with a seed and evaluate: one row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run = train_run(PRESETS[preset].experiment, folder=Path(folder) / "run", seed=seed)
        seconds = time.perf_counter() - start
        last = json.loads((Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    figures = evaluate_agent(run, episodes=episodes, seed=seed)
    sampled, uniform = figures["sampled"], figures["uniform"]
    return {
        "preset": preset,
        "seed": seed,
        "height": f"{figures['height_mean']:.4f}",
        "lowest episode": f"{figures['height_lowest']:.4f}",
        "sampled actions": f"{sampled['height_mean']:.4f}",
        "random": f"{uniform['height_mean']:.3f}",
        "empowerment": f"{figures['empowerment_mean']:.2f}",
        "random: empowerment": f"{uniform['empowerment_mean']:.2f}",
        "error of the fit where it goes": f"{last['visited_error']:.3f}",
        "gradient norm": f"{last['gradient_norm']:.3f}",
        "training": f"{seconds:.0f} s",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presets", nargs="*", default=_PRESETS)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--episodes", type=int, default=20, help="episodes of each evaluation")
    options = parser.parse_args()
    rows: Table = []
    for preset in options.presets:
        for seed in options.seeds:
            rows.append(measure(preset, seed, options.episodes))
            print(rows[-1], flush=True)
            write_table("rods", rows, by=("preset", "seed"))


if __name__ == "__main__":
    main()
