"""Train policies that swing rods up, over seeds, and measure how high they end."""

import json

from benchmarks.seeds import Trained, finished, parser, sweeper
from empowerment.runs import PRESETS

_PRESETS = "cart-pole", "double-pendulum", "triple-pendulum"


def row(run: Trained) -> dict[str, object]:
    """Return a row of the table."""
    figures = run.figures
    sampled, uniform = figures["sampled"], figures["uniform"]
    last = json.loads((run.folder / "metrics.jsonl").read_text("utf-8").splitlines()[-1])
    return {
        "preset": run.case,
        "seed": run.seed,
        "height": f"{figures['height_mean']:.4f}",
        "lowest episode": f"{figures['height_lowest']:.4f}",
        "sampled actions": f"{sampled['height_mean']:.4f}",
        "random": f"{uniform['height_mean']:.3f}",
        "empowerment": f"{figures['empowerment_mean']:.2f}",
        "random: empowerment": f"{uniform['empowerment_mean']:.2f}",
        "error of the fit where it goes": f"{last['visited_error']:.3f}",
        "gradient norm": f"{last['gradient_norm']:.3f}",
        "training": f"{run.seconds} s",
    }


def main() -> None:
    options = parser(__doc__, out="rods", seeds="0-9", episodes=20)
    options.add_argument("presets", nargs="*", default=_PRESETS)
    given = options.parse_args()
    seeds = sweeper(given)
    runs = seeds.train({name: PRESETS[name].experiment for name in given.presets})
    seeds.write("rods", [row(run) for run in finished(runs)], by=("preset", "seed"))


if __name__ == "__main__":
    main()
