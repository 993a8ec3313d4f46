"""An oracle for the pendulum that shares no code with the judges: plain NumPy, forwards."""

from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits


def extremes(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Index one point of each cell, and of each row and column of cells both outermost."""
    kept = [np.unique(cells, axis=0, return_index=True)[1]]
    for axis in (0, 1):
        order = np.lexsort((points[:, 1 - axis], cells[:, axis]))
        changes = np.diff(cells[order, axis]) != 0
        kept += [order[np.append(True, changes)], order[np.append(changes, True)]]
    centred = points - points.mean(axis=0)
    spread = centred.T @ centred / len(points) + 1e-6 * np.eye(2)
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    kept.append(np.argmax(points @ np.linalg.cholesky(np.linalg.inv(spread)) @ directions, axis=0))
    return np.unique(np.concatenate(kept))


class PendulumOracle:
    """The pendulum of the paper, anew."""

    @staticmethod
    def step(states: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """Karl et al. (2018), App. A.2.2, for any number of states."""
        angle, velocity = states[..., 0], states[..., 1]
        velocity = velocity + (15 * np.sin(angle) + 3 * (torque - 0.05 * velocity)) * 0.05
        return np.stack([angle + 0.05 * velocity, np.clip(velocity, -8, 8)], axis=-1)

    @classmethod
    def futures(cls, state: np.ndarray, plans: np.ndarray, scale: float = 0.05) -> np.ndarray:
        """Where plans (a row each) end, in standard deviations of the noise."""
        states = np.tile(state, (len(plans), 1))
        for torques in plans.T:
            states = cls.step(states, torques)
        return states / scale

    @classmethod
    def reached(cls, state: np.ndarray, steps: int, *, cell: float = 0.15) -> np.ndarray:
        """True futures, forwards over many torques, thinned by cells but for the outermost."""
        points = np.array([state]) / 0.05
        torques = np.linspace(-2, 2, 129 if steps < 3 else 33)
        for _ in range(steps):
            points = cls.step(0.05 * points[:, None], torques).reshape(-1, 2) / 0.05
            points = points[extremes(points, np.round(points / cell))]
        return points

    @classmethod
    def bounds(cls, state: np.ndarray, steps: int, *, gap: float = 4e-3) -> tuple[float, float]:
        """Bound the capacity by the plain iteration of Blahut over a table of outputs.

        The lower bound holds for some true futures, the upper one for all that were found.
        """
        found = cls.reached(state, steps)
        inputs = found[extremes(found, np.round(found / (0.2 if steps < 3 else 0.4)))]
        outputs = np.meshgrid(*(np.arange(a.min() - 6, a.max() + 6.5, 0.8) for a in found.T))
        grid = np.stack([axis.ravel() for axis in outputs], axis=1)

        def table(points: np.ndarray) -> np.ndarray:
            distance = (points[:, None] - grid[None]) ** 2
            kernel = np.exp(-0.5 * distance.sum(axis=2))
            return kernel / kernel.sum(axis=1, keepdims=True)

        matrix = table(inputs)
        entropy = (matrix * np.log(np.maximum(matrix, 1e-300))).sum(axis=1)
        source, divergence = np.full(len(inputs), 1 / len(inputs)), np.zeros(len(inputs))
        lower, upper, log_output = 0.0, np.inf, np.zeros(len(grid))
        while upper - lower > gap:
            source = source * np.exp(divergence)
            source /= source.sum()
            log_output = np.log(np.maximum(source @ matrix, 1e-300))
            divergence = entropy - matrix @ log_output
            lower, upper = float(source @ divergence), float(divergence.max())
        for some in np.array_split(found, len(found) // 256 + 1):
            rows = table(some)
            beyond = (rows * (np.log(np.maximum(rows, 1e-300)) - log_output)).sum(axis=1)
            upper = max(upper, float(beyond.max()))
        return lower, upper


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Keep small matrix products on one core: workers that share cores wait for each other."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def oracle() -> type[PendulumOracle]:
    """The pendulum's oracle."""
    return PendulumOracle
