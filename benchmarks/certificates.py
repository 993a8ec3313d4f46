"""Count how often certified intervals hold the truth, over worlds, states and keys."""

import argparse
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from tests.odd_worlds import Foggy, Jump, Scalar, Shaky, Steady, truth

from benchmarks.tables import Table, write_table
from empowerment.capacity import exact_empowerment
from empowerment.channel import certify_at, lattice_shape, make_channel, train_channel
from empowerment.worlds import AbstractWorld, Ball, Bounded, Pendulum

Truth = Callable[[AbstractWorld, list[float], int], tuple[float, float]]


def by_brute_force(world: AbstractWorld, state: list[float], steps: int) -> tuple[float, float]:
    """Bound the capacity by a dense table of all plans."""
    return truth(world, state[0], steps=steps, cells=4000)


def by_judge(world: AbstractWorld, state: list[float], steps: int) -> tuple[float, float]:
    """Bound the capacity over the reachable set."""
    found = exact_empowerment(world, jnp.array(state), steps=steps, key=jax.random.key(0))
    return found.lower, found.upper


CASES: list[tuple[str, AbstractWorld, int, list[list[float]], Truth]] = [
    ("equal noise", Scalar(), 1, [[0.0]], by_brute_force),
    ("noise by successor", Foggy(), 1, [[-0.6], [0.8]], by_brute_force),
    ("noise by action", Shaky(), 1, [[0.0]], by_brute_force),
    ("least noise at the limits", Steady(), 1, [[0.0]], by_brute_force),
    ("jump", Jump(), 1, [[0.0]], by_brute_force),
    ("ball", Ball(resolution=0.2), 1, [[5.0, 5.0], [0.0, 3.0]], by_judge),
    ("pendulum", Pendulum(), 2, [[0.0, 0.0], [0.9, 6.5]], by_judge),
    ("pendulum", Pendulum(), 5, [[0.0, 0.0], [3.0, 1.0]], by_judge),
    ("pendulum", Pendulum(), 10, [[0.0, 0.0], [3.0, 1.0]], by_judge),
]


def measure(num_keys: int, num_updates: int) -> Table:
    """Certify each state of each world by many keys."""
    rows: Table = []
    for name, world, steps, states, judge in CASES:
        given = Bounded(world)
        channel = make_channel(given, family="codebook", steps=steps, key=jax.random.key(0))
        trained = train_channel(channel, given, num_updates=num_updates, key=jax.random.key(1))
        for state in states:
            low, high = judge(world, state, steps)
            many = jnp.tile(jnp.array(state), (num_keys, 1))
            keys = jax.random.split(jax.random.key(2), num_keys)
            shape = lattice_shape(trained.model, given, many, keys)
            found = certify_at(trained.model, given, many, keys, shape=shape)
            lower, upper = np.asarray(found.lower, float), np.asarray(found.upper, float)
            row: dict[str, object] = {
                "world": name,
                "n": steps,
                "state": ", ".join(f"{value:g}" for value in state),
                "truth": f"{low:.4f} to {high:.4f}",
                "lower": f"{lower.mean():.4f}",
                "upper": f"{upper.mean():.4f}",
                "holds": f"{np.mean((lower <= high) & (upper >= low)):.3f}",
                "keys": num_keys,
            }
            rows.append(row)
            print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--updates", type=int, default=300, help="updates of each channel")
    options = parser.parse_args()
    write_table("certificates", measure(options.keys, options.updates))


if __name__ == "__main__":
    main()
