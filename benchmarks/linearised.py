"""Compare the linearised channel, an approximation, with trained bounds, state by state."""

import argparse
from typing import Any

import jax
import numpy as np

from benchmarks.tables import Table, write_table
from empowerment.channel import make_channel, precise_empowerment_at, train_channel
from empowerment.worlds import WORLDS, Bounded

_WORLDS = "pendulum", "cart-pole", "double-pendulum", "triple-pendulum"
_NUM_STATES = 64


def measure(name: str, steps: int, family: str, updates: int) -> dict[str, object]:
    """Train a channel and evaluate it beside the linearised one: one row of the table."""
    inner: Any = WORLDS[name]()
    world = Bounded(inner)
    make_key, train_key, state_key, key = jax.random.split(jax.random.key(0), 4)
    state_keys = jax.random.split(state_key, _NUM_STATES)
    states = jax.vmap(lambda key: world.state_distribution().sample(key=key))(state_keys)
    channel = make_channel(world, family=family, steps=steps, key=make_key)
    trained = train_channel(channel, world, num_updates=updates, key=train_key)
    closed = make_channel(world, family="linearised", steps=steps, key=make_key)
    keys = jax.random.split(key, _NUM_STATES)
    bounds, _ = precise_empowerment_at(trained.model, world, states, keys)
    values, _ = precise_empowerment_at(closed, world, states, keys)
    ranks = np.array([np.argsort(np.argsort(each)) for each in (bounds, values)])
    return {
        "world": name,
        "n": steps,
        "family": family,
        "its bound": f"{bounds.mean():.2f}",
        "linearised": f"{values.mean():.2f}",
        "spread of the bound": f"{bounds.std():.2f}",
        "spread, linearised": f"{values.std():.2f}",
        "rank correlation": f"{np.asarray(np.corrcoef(ranks))[0, 1]:.3f}",
        "linearised - bound": f"{(values - bounds).min():.2f} .. {(values - bounds).max():.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=_WORLDS)
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--families", nargs="+", default=["intent", "auto"])
    parser.add_argument("--updates", type=int, default=4000, help="updates of the channel")
    options = parser.parse_args()
    rows: Table = []
    for name in options.worlds:
        for steps in options.steps:
            for family in options.families:
                rows.append(measure(name, steps, family, options.updates))
                print(rows[-1], flush=True)
                write_table("linearised", rows, by=("world", "n", "family"))


if __name__ == "__main__":
    main()
