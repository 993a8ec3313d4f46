"""Time the exact estimators: ways to run Blahut-Arimoto in turns, and landscapes."""

import itertools
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

import empowerment as emp
from empowerment.capacity import AdditiveChannel, DenseChannel, reachable
from empowerment.landscapes import grid_states

_ROUNDS = 5
_TOLERANCE = 1e-3


def plain(channel: AdditiveChannel | DenseChannel) -> int:
    """Run the textbook iteration to the same gap; return the number of iterations."""
    source = np.full(channel.num_inputs, 1 / channel.num_inputs)
    for iteration in itertools.count(1):
        divergence = channel.divergence(source)
        if divergence.max() - source @ divergence <= _TOLERANCE:
            return iteration
        source = source * np.exp(divergence - divergence.max())
        source /= source.sum()
    raise AssertionError


def dense(inputs: np.ndarray) -> DenseChannel:
    """Build the same channel as one table, without using that it is a product."""
    axes = [np.arange(axis.min() - 6, axis.max() + 7) for axis in inputs.T]
    outputs = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    table = np.exp(-0.5 * ((inputs[:, None] - outputs) ** 2).sum(axis=2))
    return DenseChannel(table / table.sum(axis=1, keepdims=True))


def interleave(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Time several functions in turns; return the median of each, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


def main() -> None:
    world, scale, key = emp.Pendulum(), jnp.full(2, 0.05), jax.random.key(0)
    upright = jnp.zeros((1, 2))
    inputs = reachable(world, upright, scale, steps=5, key=key)[0].inputs
    separable, table = AdditiveChannel(inputs, np.ones(2)), dense(inputs)
    print(f"pendulum, 5 steps, upright: {len(inputs)} inputs, to a gap of {_TOLERANCE} nats")
    with threadpool_limits(1):
        times = interleave(
            {
                "momentum, separable": lambda: emp.blahut_arimoto(separable, tolerance=_TOLERANCE),
                "textbook, separable": lambda: plain(separable),
                "momentum, dense": lambda: emp.blahut_arimoto(table, tolerance=_TOLERANCE),
            }
        )
    best = times["momentum, separable"]
    for name, seconds in times.items():
        print(f"  {name:22s} {1e3 * seconds:8.1f} ms   {seconds / best:6.1f} x")
    iterations = emp.blahut_arimoto(separable, tolerance=_TOLERANCE).iterations
    print(f"  iterations: {iterations} with momentum, {plain(separable)} without")

    states = jnp.asarray(grid_states(world, "16x16"), float)
    for steps in (1, 2, 5):
        list(emp.exact_landscape(world, states[:64], steps=steps, key=key))
        start = time.perf_counter()
        list(emp.exact_landscape(world, states, steps=steps, key=key))
        each = (time.perf_counter() - start) / len(states)
        print(f"exact landscape, n = {steps}: {1e3 * each:.1f} ms per state, compiled")


if __name__ == "__main__":
    main()
