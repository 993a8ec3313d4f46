"""Where rollouts start: at what is best, at the beginning, or where the last ones ended."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.distributions import Empirical, Uniform
from empowerment.policy import Policy
from empowerment.policy.starts import _near_best, candidates, first_starts, next_starts, rank
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, Ball, Bounded, Pendulum

COUNT = 4000
MIDDLE = 5.0


class Hill(eqx.Module):
    """A bound that is highest in the middle of a box."""

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        return -jnp.sum((state - MIDDLE) ** 2)


class Corner(Ball):
    """A ball whose episodes begin in a corner."""

    def initial(self) -> Uniform:
        return Uniform(jnp.zeros(2), jnp.full(2, 0.1))


class Logged(Ball):
    """A ball whose states are those of a log."""

    def state_distribution(self) -> Empirical:
        return Empirical(jnp.array([[1.0, 2.0], [3.0, 4.0]]))


WORLD = Bounded(Corner())
OWN = np.arange(COUNT) % 4 == 0


def starts_of(share: float, ends: jax.Array, world: AbstractWorld = WORLD) -> np.ndarray:
    best = jnp.full((16, 2), MIDDLE)
    found = next_starts(world, ends, best, jnp.array(share), key=jax.random.key(0))
    return np.asarray(found)


def test_first_starts_are_initial_states_and_any():
    starts = np.asarray(first_starts(WORLD, COUNT, key=jax.random.key(0)))
    assert starts[OWN].max() <= 0.1
    np.testing.assert_allclose(starts[~OWN].mean(axis=0), 5.0, atol=0.2)


# Anywhere: uniform over ten metres. Ranked: a tenth of half of that over two decades, whose mean
# square is that of the largest divided by 4 ln 10.
@pytest.mark.parametrize(("share", "spread"), [(0.0, 10 / 12**0.5), (1.0, 0.5 / 9.21**0.5)])
def test_rollouts_go_on_or_start_anew(share: float, spread: float):
    ends = jnp.full((COUNT, 2), 7.0)
    starts = starts_of(share, ends)
    anew = ~np.all(starts == 7.0, axis=1)
    assert anew[OWN].mean() == pytest.approx(0.05, abs=0.025)
    assert anew[~OWN].mean() == pytest.approx(0.25, abs=0.03)
    assert starts[OWN & anew].max() <= 0.1
    others = starts[~OWN & anew]
    np.testing.assert_allclose(others.mean(axis=0), MIDDLE, atol=0.5)
    np.testing.assert_allclose(others.std(axis=0), spread, rtol=0.25)


@pytest.mark.parametrize("end", [12.0, -1.0, np.nan, np.inf])
def test_what_left_the_region_starts_anew(end: float):
    starts = starts_of(0.5, jnp.full((COUNT, 2), 7.0).at[:, 1].set(end))
    assert np.all(np.isfinite(starts))
    assert not np.any(starts[:, 1] == end)


def test_angles_may_turn():
    world = Bounded(Pendulum())
    ends = jnp.tile(jnp.array([20.0, 0.0]), (COUNT, 1))
    best = jnp.zeros((4, 2))
    starts = np.asarray(next_starts(world, ends, best, jnp.array(0.5), key=jax.random.key(0)))
    assert np.mean(starts[:, 0] == 20.0) == pytest.approx(0.8, abs=0.03)


def test_states_are_ranked_by_what_a_policy_makes_of_them(getkey):
    policy = Policy(WORLD.states, 2, width=8, depth=1, key=getkey())
    best = candidates(WORLD, key=getkey())
    ranked = np.asarray(rank(policy, Hill(), WORLD, best, horizon=2, key=getkey()))
    distance = np.linalg.norm(ranked - MIDDLE, axis=1)
    assert distance[:64].mean() < 1.5
    assert distance[-64:].mean() > 5.5


def test_half_of_the_ranked_starts_are_among_the_root_of_all():
    ranked = jnp.stack([jnp.arange(1024.0), jnp.zeros(1024)], axis=1)
    chosen = np.asarray(_near_best(Bounded(Logged()), ranked, COUNT, key=jax.random.key(0)))
    assert np.mean(chosen[:, 0] < 32) == pytest.approx(0.5, abs=0.03)
    assert chosen[:, 0].max() > 900


def test_states_of_a_log_are_taken_as_they_are():
    ranked = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    for world, is_kept in ((Bounded(Logged()), True), (WORLD, False)):
        chosen = np.asarray(_near_best(world, ranked, 64, key=jax.random.key(0)))
        assert np.isin(chosen, ranked).all() == is_kept
