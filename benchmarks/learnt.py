"""Train agents in learnt models of the pendulum over seeds; compare with exact empowerment."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from benchmarks.seeds import finished, parser, sweeper
from benchmarks.tables import Table
from empowerment.capacity import exact_landscape
from empowerment.landscapes import grid_states
from empowerment.runs import PRESETS, evaluate_agent, learnt_landscape, load_run
from empowerment.worlds import Pendulum

_GRID = "21x17"
_PRESET = PRESETS["pendulum-learnt"].experiment


def exact(states: np.ndarray) -> np.ndarray:
    """Compute the exact empowerment of the pendulum, perceived with the same resolution."""
    assert _PRESET.resolution is not None
    world, steps = Pendulum(resolution=_PRESET.resolution), _PRESET.agent.num_steps
    capacities = exact_landscape(
        world, jnp.asarray(states, float), steps=steps, key=jax.random.key(0)
    )
    return np.array([capacity.value for capacity in capacities])


def main() -> None:
    seeds = sweeper(parser(__doc__, out="learnt", seeds="0-2", episodes=100).parse_args())
    states = grid_states(Pendulum(), _GRID)
    truth = exact(states)
    rows: Table = []
    for each in finished(seeds.train({"pendulum-learnt": _PRESET}, evaluate=False)):
        run = load_run(each.folder)
        bound = learnt_landscape(run, states)
        figures = evaluate_agent(run, episodes=seeds.episodes)
        upright = figures["time_to_upright_median_s"]
        row: dict[str, object] = {
            "seed": run.seed,
            "Spearman with exact": f"{spearmanr(bound, truth)[0]:.3f}",
            "mean of bound - exact": f"{np.mean(bound - truth):.3f}",
            "held_fraction": f"{figures['held_fraction']:.2f}",
            "time to upright / s": "never" if upright is None else f"{upright:.2f}",
            "uniform held": f"{figures['uniform']['held_fraction']:.2f}",
            "seconds": each.seconds,
        }
        rows.append(row)
        print(row, flush=True)
    seeds.write("learnt-pendulum", rows, by=("seed",))


if __name__ == "__main__":
    main()
