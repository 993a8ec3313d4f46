"""Compare the exact estimators with closed forms, and write the tables of docs/results.md."""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import empowerment as emp
from benchmarks.tables import Table, write_table
from empowerment.worlds import MAZE, Grid

_SEEDS = (0, 1, 2)


def entropy(probability: float) -> float:
    return -sum(p * math.log(p) for p in (probability, 1 - probability) if p > 0)


def channels() -> Iterator[tuple[str, np.ndarray, float]]:
    """Yield channels whose capacity is known in closed form: name, matrix, capacity."""
    for e in (0.01, 0.11, 0.3):
        symmetric = np.array([[1 - e, e], [e, 1 - e]])
        yield f"binary symmetric, {e}", symmetric, math.log(2) - entropy(e)
        erasure = np.array([[1 - e, e, 0], [0, e, 1 - e]])
        yield f"binary erasure, {e}", erasure, (1 - e) * math.log(2)
        z_channel = np.array([[1.0, 0.0], [e, 1 - e]])
        yield f"Z, {e}", z_channel, math.log(1 + (1 - e) * e ** (e / (1 - e)))
    typewriter = 0.5 * (np.eye(26) + np.roll(np.eye(26), 1, axis=1))
    yield "noisy typewriter, 26 letters", typewriter, math.log(13)


def judge_channels() -> Table:
    """Compare Blahut-Arimoto with closed forms."""
    rows: Table = []
    for name, matrix, truth in channels():
        capacity = emp.blahut_arimoto(matrix)
        rows.append(
            {
                "channel": name,
                "closed form": f"{truth:.6f}",
                "Blahut-Arimoto": f"{capacity.value:.6f}",
                "error": f"{capacity.value - truth:+.1e}",
                "upper - lower": f"{capacity.upper - capacity.lower:.1e}",
                "iterations": capacity.iterations,
            }
        )
    return rows


def judge_pendulum() -> Table:
    """Compute exact empowerment at four states, over seeds."""
    states = jnp.array([[0.0, 0.0], [jnp.pi, 0.0], [1.0, -3.0], [jnp.pi / 2, 0.0]])
    names = ("upright (0, 0)", "hanging (pi, 0)", "(1, -3)", "(pi/2, 0)")
    world = emp.Pendulum()
    rows: Table = []
    for steps in (1, 2, 5, 10):
        runs = [
            list(emp.exact_landscape(world, states, steps=steps, key=jax.random.key(seed)))
            for seed in _SEEDS
        ]
        values = np.array([[capacity.value for capacity in run] for run in runs])
        gap = max(capacity.upper - capacity.lower for run in runs for capacity in run)
        row: dict[str, object] = {"n": steps}
        row |= {name: f"{value:.3f}" for name, value in zip(names, values.mean(0), strict=True)}
        row["spread over seeds"] = f"{np.ptp(values, axis=0).max():.4f}"
        row["largest upper - lower"] = f"{gap:.4f}"
        rows.append(row)
    return rows


def judge_ball() -> Table:
    """Compute exact one-step empowerment of the ball, per axis."""
    rows: Table = []
    for resolution in (0.02, 0.05, 0.1, 0.2):
        world = emp.Ball(resolution=resolution)
        states = jnp.array([[5.0, 5.0], [0.0, 0.0], [0.0, 5.0]])
        centre, corner, edge = (
            capacity.value
            for capacity in emp.exact_landscape(world, states, steps=1, key=jax.random.key(0))
        )
        rows.append(
            {
                "resolution / longest move": resolution,
                "centre, per axis": f"{centre / 2:.4f}",
                "wall, per axis": f"{corner / 2:.4f}",
                "edge - (centre + wall)": f"{edge - (centre + corner) / 2:+.4f}",
            }
        )
    return rows


def judge_linear() -> Table:
    """Compare the linearised channel with the stacked closed form of a linear system."""
    rng = np.random.default_rng(0)
    rows: Table = []
    for steps in (1, 2, 5, 10):
        dynamics, control = 0.5 * rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
        observation = rng.normal(size=(2, 3))
        process, resolution = rng.uniform(0.1, 0.5, 3), rng.uniform(0.1, 0.5, 2)
        ones = (1.0, 1.0)
        world = emp.LinearGaussian(
            dynamics=dynamics,
            control=control,
            observation=observation,
            process_noise=process,
            resolution=resolution,
            states=emp.Box((*ones, 1.0), (2.0, 2.0, 2.0), ("a", "b", "c")),
            actions=emp.Box((-1.0, -1.0), ones, ("u", "v")),
        )
        powers = [np.linalg.matrix_power(dynamics, k) for k in range(steps)]
        gain = np.concatenate([observation @ power @ control for power in powers[::-1]], axis=1)
        noise = np.diag(resolution**2)
        for power in powers:
            noise = noise + observation @ power @ np.diag(process**2) @ power.T @ observation.T
        truth = _pour(np.linalg.eigvals(np.linalg.solve(noise, gain @ gain.T)).real, 2 * steps / 3)
        value = float(emp.gaussian_empowerment(world, jnp.zeros(3), steps=steps))
        rows.append(
            {
                "n": steps,
                "bisection on the water level": f"{truth:.5f}",
                "gaussian_empowerment": f"{value:.5f}",
                "error": f"{value - truth:+.1e}",
            }
        )
    return rows


def _pour(strengths: np.ndarray, power: float) -> float:
    """Compute the capacity by bisection on the water level: slow and obvious."""
    heights = 1 / strengths[strengths > 1e-12]
    low, high = 0.0, power + heights.max()
    for _ in range(200):
        level = 0.5 * (low + high)
        if np.maximum(level - heights, 0).sum() > power:
            high = level
        else:
            low = level
    return 0.5 * float(np.log(np.maximum(low / heights, 1)).sum())


def judge_maze() -> Table:
    """Compute the extremes of empowerment in the maze, in bits."""
    kernel = np.asarray(Grid(MAZE).kernel)
    rows: Table = []
    for steps in (1, 2, 5, 10):
        bits = [
            emp.discrete_empowerment(kernel, cell, steps=steps).value / math.log(2)
            for cell in range(len(kernel))
        ]
        rows.append({"n": steps, "lowest": f"{min(bits):.2f}", "highest": f"{max(bits):.2f}"})
    return rows


def main() -> None:
    judges = {
        "channels": judge_channels,
        "pendulum": judge_pendulum,
        "ball": judge_ball,
        "linear": judge_linear,
        "maze": judge_maze,
    }
    for name, judge in judges.items():
        write_table(name, judge())


if __name__ == "__main__":
    main()
