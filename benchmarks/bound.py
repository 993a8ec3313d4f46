"""Compare the variational bound with exact values, and write the tables of docs/results.md."""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import empowerment as emp
from benchmarks.model_free import train_model_free
from benchmarks.tables import Table, write_table
from empowerment.channel import AbstractChannel, Estimate, train_discrete
from empowerment.landscapes import make_world
from empowerment.landscapes.variational import BUDGETS, trained_channel, variational_landscape

_SEEDS = (0, 1, 2)
_NUM_STATES = 100


def random_states(world: emp.AbstractWorld, count: int = _NUM_STATES) -> np.ndarray:
    """Sample states from the whole region of a world."""
    rng = np.random.default_rng(2018)
    return rng.uniform(world.states.low, world.states.high, (count, world.states.size))


def exact_values(world: emp.AbstractWorld, states: np.ndarray, steps: int) -> np.ndarray:
    capacities = emp.exact_landscape(
        world, jnp.asarray(states, float), steps=steps, key=jax.random.key(0)
    )
    return np.array([capacity.value for capacity in capacities])


def estimates(
    channel: AbstractChannel, world: emp.Bounded, states: np.ndarray, num_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate the bound and its standard error at each state."""

    @eqx.filter_jit
    def of_all(
        channel: AbstractChannel, states: Float[Array, "states state"], keys: Array
    ) -> Estimate:
        def of_state(inputs: tuple[Array, Array]) -> Estimate:
            state, key = inputs
            return emp.empowerment(channel, world, state, num_samples=num_samples, key=key)

        return jax.lax.map(of_state, (states, keys))

    keys = jax.random.split(jax.random.key(7), len(states))
    estimate = of_all(channel, jnp.asarray(states, float), keys)
    return np.asarray(estimate.value, float), np.asarray(estimate.standard_error, float)


def measure_pendulum(seeds: tuple[int, ...]) -> Table:
    """Train the default channel for each n and seed, and compare it with the exact values."""
    world = emp.Bounded(emp.Pendulum())
    rows: Table = []
    for steps in (1, 2, 5, 10):
        states = random_states(world)
        truth = exact_values(emp.Pendulum(), states, steps)
        for seed in seeds:
            start = time.perf_counter()
            channel = trained_channel(
                world, family="auto", steps=steps, budget="full", seed=seed, progress=_quiet
            )
            seconds = time.perf_counter() - start
            found = variational_landscape(channel, world, states, seed=seed, progress=_quiet)
            value, lower, upper = found.value, found.lower, found.upper
            assert lower is not None
            assert upper is not None
            gap = truth - value
            rows.append(
                {
                    "n": steps,
                    "seed": seed,
                    "training": f"{seconds:.0f} s",
                    "mean gap": f"{gap.mean():.4f}",
                    "median": f"{np.median(gap):.4f}",
                    "largest": f"{gap.max():.3f}",
                    "smallest": f"{gap.min():+.4f}",
                    "Spearman": f"{_spearman(value, truth):.4f}",
                    "upper - lower": f"{np.mean(upper - lower):.3f}",
                    "interval holds": f"{np.mean((lower <= truth) & (truth <= upper)):.2f}",
                }
            )
            print(rows[-1], flush=True)
    return rows


def measure_ball(seeds: tuple[int, ...]) -> Table:
    """Compare plateau, wall and corner of the ball with the exact values, for one step."""
    world = emp.Bounded(emp.Ball())
    rng = np.random.default_rng(0)
    plateau = rng.uniform(1, 9, (100, 2))
    along = rng.uniform(1, 9, 40)
    wall = np.stack([np.zeros(40), along], axis=1)
    corners = np.array([[0.0, 0.0], [0.0, 10.0], [10.0, 0.0], [10.0, 10.0]])
    rows: Table = []
    for seed in seeds:
        start = time.perf_counter()
        channel = trained_channel(
            world, family="auto", steps=1, budget="full", seed=seed, progress=_quiet
        )
        seconds = time.perf_counter() - start
        inside, edge, corner = (
            estimates(channel, world, states, 256)[0] for states in (plateau, wall, corners)
        )
        truth = [exact_values(emp.Ball(), part[:1], 1)[0] for part in (plateau, wall, corners)]
        rows.append(
            {
                "seed": seed,
                "training": f"{seconds:.0f} s",
                "plateau - exact": f"{inside.mean() - truth[0]:+.3f}",
                "its standard deviation": f"{inside.std():.4f}",
                "wall - exact": f"{edge.mean() - truth[1]:+.3f}",
                "corner - exact": f"{corner.mean() - truth[2]:+.3f}",
            }
        )
        print(rows[-1], flush=True)
    return rows


def measure_grids(seeds: tuple[int, ...]) -> Table:
    """Compare the tabular bound with the exact values over all cells."""
    rows: Table = []
    for name in ("room", "maze", "doorways", "slippery"):
        world = make_world(name)
        assert isinstance(world, emp.Grid)
        kernel = np.asarray(world.kernel)
        for steps in (1, 2, 3):
            truth = np.array(
                [emp.discrete_empowerment(kernel, c, steps=steps).value for c in range(100)]
            )
            bounds = [
                np.asarray(
                    train_discrete(world, steps=steps, num_updates=1500, key=jax.random.key(seed))
                )
                for seed in seeds
            ]
            residual = [
                np.sum((f - truth) ** 2) / np.sum((truth - truth.mean()) ** 2) for f in bounds
            ]
            rows.append(
                {
                    "world": name,
                    "n": steps,
                    "lowest r^2 of seeds": f"{1 - max(residual):.5f}",
                    "largest error": f"{max(np.abs(f - truth).max() for f in bounds):.4f}",
                }
            )
            print(rows[-1], flush=True)
    return rows


def measure_families(seeds: tuple[int, ...]) -> Table:
    """Train every family on the same world for a similar time, with plans of five steps."""
    world, steps = emp.Bounded(emp.Pendulum()), 5
    states = np.concatenate([[[0.0, 0.0], [np.pi, 0.0]], random_states(world)])
    truth = exact_values(emp.Pendulum(), states, steps)
    rows: Table = []
    names = ("paper", "autoregressive", "gaussian", "flow", "intent", "codebook", "model-free")
    for name in names:
        for seed in seeds:
            key = jax.random.key(seed)
            start = time.perf_counter()
            if name == "model-free":
                channel = train_model_free(
                    world, steps=steps, num_updates=6000, batch_size=128, key=key
                )
            else:
                is_codebook = name == "codebook"
                channel = emp.train_channel(
                    emp.make_channel(world, family=name, steps=steps, key=key),
                    world,
                    num_updates=BUDGETS["full"] // 2 if is_codebook else 6000,
                    batch_size=32 if is_codebook else 128,
                    learning_rate=3e-3 if is_codebook else 2e-3,
                    key=key,
                ).model
            seconds = time.perf_counter() - start
            num_samples = 256 if name == "codebook" else 2048
            value, error = estimates(channel, world, states, num_samples)
            gap = truth - value
            excess = np.max(-gap / np.maximum(error, 1e-6))
            rows.append(
                {
                    "family": name,
                    "seed": seed,
                    "training": f"{seconds:.0f} s",
                    "upright": f"{value[0]:.3f}",
                    "hanging": f"{value[1]:.3f}",
                    "mean gap": f"{gap[2:].mean():.3f}",
                    "Spearman": f"{_spearman(value[2:], truth[2:]):.3f}",
                    "largest excess in standard errors": f"{excess:+.1f}",
                }
            )
            print(rows[-1], flush=True)
    return rows


def _spearman(first: np.ndarray, second: np.ndarray) -> float:
    first, second = (np.argsort(np.argsort(values)) for values in (first, second))
    return float(np.corrcoef(first, second)[0, 1])


def _quiet(doing: str, done: int, total: int) -> None:
    """Ignore progress."""


MEASURES = {
    "bound": measure_pendulum,
    "bound-ball": measure_ball,
    "bound-grids": measure_grids,
    "families": measure_families,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measures", nargs="*", default=list(MEASURES), help="default: all tables")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(_SEEDS))
    options = parser.parse_args()
    for name in options.measures:
        write_table(name, MEASURES[name](tuple(options.seeds)))


if __name__ == "__main__":
    main()
