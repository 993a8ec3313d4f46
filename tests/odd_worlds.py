"""Worlds on which claims about bounds are tried, and their empowerment by brute force.

The oracle evaluates transition and emission on grids and shares nothing else with what it judges:
a table of probabilities in double precision, and the textbook's iteration.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from empowerment.distributions import Gaussian, Uniform
from empowerment.types import Action, State
from empowerment.worlds import AbstractWorld, Box
from empowerment.worlds.base import as_array


class Scalar(AbstractWorld):
    """A state and an action of one axis; subclasses say how it moves and what is perceived."""

    states: Box = Box((-1.0,), (1.0,), ("z",))
    actions: Box = Box((-1.0,), (1.0,), ("u",))

    def initial(self) -> Uniform:
        return self.states.uniform()

    noise: jax.Array = eqx.field(default=0.1, converter=as_array)

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, jnp.zeros(1))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, self.noise[None])


class Squash(Scalar):
    """Process noise, perceived through an emission that is not affine."""

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, jnp.full(1, 0.3))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(jnp.tanh(3 * state), jnp.full(1, 0.05))


class Shaky(Scalar):
    """Noise that depends on the action."""

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, 0.03 + 0.4 * jnp.abs(action))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, jnp.zeros(1))


class Steady(Shaky):
    """Noise that is least at the limits of the action."""

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, 0.43 - 0.4 * jnp.abs(action))


class Foggy(Scalar):
    """Noise of the emission that depends on the successor."""

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, 0.04 + 0.5 * state**2)


class Murky(Foggy):
    """The same with process noise: what is perceived is not Gaussian."""

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, jnp.full(1, 0.2))


class Patch(Scalar):
    """Process noise in a small part of the region only."""

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action, 0.5 * jnp.exp(-0.5 * ((state - 0.5) / 0.01) ** 2))


class Jump(Scalar):
    """A future that jumps with the action, as a contact does."""

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(jnp.where(action > 0, 1.0, -1.0) + 0.05 * action, jnp.zeros(1))


class Blend(Scalar):
    """A random smooth world: moves, process noise and perception by random coefficients."""

    coefficients: jax.Array = eqx.field(default=(0.0,) * 7, converter=as_array)
    is_noisy: bool = eqx.field(default=True, static=True)
    is_affine: bool = eqx.field(default=True, static=True)

    def transition(self, state: State, action: Action) -> Gaussian:
        a, b, c, d, *_ = self.coefficients
        mean, noise = (0.6 + 0.3 * a) * state + action, jnp.full(1, 0.05) + 0.2 * jnp.abs(c)
        if not self.is_affine:
            mean, noise = mean + 0.5 * b * jnp.sin(2 * action + state), noise + jnp.abs(d * action)
        return Gaussian(mean, noise if self.is_noisy else jnp.zeros(1))

    def emission(self, state: State) -> Gaussian:
        *_, e, f, g = self.coefficients
        if self.is_affine:
            return Gaussian((1 + 0.5 * e) * state, (0.1 + 0.2 * jnp.abs(f))[None])
        scale = 0.1 + 0.2 * jnp.abs(f) + 0.2 * jnp.abs(g) * state**2
        return Gaussian(jnp.tanh((1 + jnp.abs(e)) * state) + 0.2 * state, scale)


class Product(AbstractWorld):
    """Independent copies of a scalar world: information adds up."""

    one: AbstractWorld
    states: Box
    actions: Box

    def __init__(self, one: AbstractWorld, count: int):
        self.one = one
        self.states, self.actions = (
            Box(
                jnp.tile(box.low, count),
                jnp.tile(box.high, count),
                tuple(f"{box.names[0]}{axis}" for axis in range(count)),
            )
            for box in (one.states, one.actions)
        )

    def initial(self) -> Uniform:
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        parts = jax.vmap(self.one.transition)(state[:, None], action[:, None])
        return Gaussian(parts.mean[:, 0], parts.scale[:, 0])

    def emission(self, state: State) -> Gaussian:
        parts = jax.vmap(self.one.emission)(state[:, None])
        return Gaussian(parts.mean[:, 0], parts.scale[:, 0])


def truth(
    world: AbstractWorld, state: float, *, steps: int = 1, num_actions: int = 201, cells: int = 2000
) -> tuple[float, float]:
    """Bound the empowerment of a scalar world by brute force: below, and above to within a grid.

    Args:
        world: A world with one state, one action and one perceived axis.
        state: The state.
        steps: The number of actions; all sequences of grid actions are tried.
        num_actions: The number of actions in the grid.
        cells: The number of cells of the grids of states and of observations.
    """
    actions = np.linspace(float(world.actions.low[0]), float(world.actions.high[0]), num_actions)
    places, rows = np.array([state]), np.ones((1, 1))
    for _ in range(steps):
        moves = jax.vmap(lambda z: jax.vmap(lambda u: world.transition(z[None], u[None]))(actions))
        successor = jax.tree.map(lambda part: np.asarray(part, float)[..., 0], moves(places))
        if not successor.scale.any():  # Futures are points: one for each plan.
            places = successor.mean.reshape(-1)
            rows = np.eye(len(places))
            continue
        edges = _edges(successor, cells)
        kernel = _masses(successor, edges)  # by place, action and cell
        rows = np.einsum("ps,sac->pac", rows, kernel).reshape(-1, cells)
        places = 0.5 * (edges[1:] + edges[:-1])
    seen = jax.tree.map(
        lambda part: np.asarray(part, float)[:, 0],
        jax.vmap(lambda z: world.emission(z[None]))(jnp.asarray(places)),
    )
    if seen.scale.any():
        rows = rows @ _masses(seen, _edges(seen, cells))
    return _blahut(rows)


def _edges(given: Gaussian, cells: int) -> np.ndarray:
    low, high = given.mean - 7 * given.scale, given.mean + 7 * given.scale
    return np.linspace(float(low.min()) - 1e-6, float(high.max()) + 1e-6, cells + 1)


def _masses(given: Gaussian, edges: np.ndarray) -> np.ndarray:
    scale = np.maximum(given.scale, 1e-9)[..., None]
    masses = np.diff(norm.cdf((edges - np.asarray(given.mean)[..., None]) / scale), axis=-1)
    return masses / masses.sum(axis=-1, keepdims=True)


def _blahut(table: np.ndarray, *, gap: float = 5e-4, most: int = 20_000) -> tuple[float, float]:
    source = np.full(len(table), 1 / len(table))
    entropy = np.sum(table * np.log(np.maximum(table, 1e-300)), axis=1)
    lower = upper = 0.0
    for _ in range(most):
        divergence = entropy - table @ np.log(np.maximum(source @ table, 1e-300))
        lower, upper = float(source @ divergence), float(divergence.max())
        if upper - lower < gap:
            break
        source = source * np.exp(divergence - upper)
        source /= source.sum()
    return lower, upper
