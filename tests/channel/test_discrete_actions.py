"""Discrete actions: finite plans, judged by enumeration; and policies that choose."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.capacity import exact_empowerment, gaussian_empowerment
from empowerment.channel import ceiling, empowerment, make_channel, train_channel
from empowerment.channel.certificate import refusal
from empowerment.channel.discrete_plans import MOST_PLANS, discrete_plans
from empowerment.distributions import Gaussian, Uniform
from empowerment.types import Action, State
from empowerment.worlds import AbstractWorld, Bounded, Box, discrete


class Moves(AbstractWorld):
    """Moves to the left, to the right, or not at all, up to two walls."""

    states: Box = Box((-1.0,), (1.0,), ("z",))
    actions: Box = discrete(3, names=("left", "stay", "right"))
    noise: float = eqx.field(static=True, default=0.1)
    process: float = eqx.field(static=True, default=0.0)

    def initial(self) -> Uniform:
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        moved = jnp.clip(state + action @ jnp.array([-0.4, 0.0, 0.4]), -1.0, 1.0)
        return Gaussian(moved, jnp.full(1, self.process))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, jnp.full(1, self.noise))


def brute_force(world: Moves, state: float, steps: int) -> float:
    """Capacity of all plans by a dense table and the textbook's iteration."""
    ends = [state]
    for _ in range(steps):
        ends = [min(max(end + move, -1.0), 1.0) for end in ends for move in (-0.4, 0.0, 0.4)]
    grid = np.linspace(-2, 2, 4001)
    table = np.exp(-0.5 * ((grid[None] - np.array(sorted(set(ends)))[:, None]) / world.noise) ** 2)
    table /= table.sum(axis=1, keepdims=True)
    weights, divergence = np.full(len(table), 1 / len(table)), np.zeros(len(table))
    for _ in range(5000):
        mixture = weights @ table
        divergence = np.sum(table * np.log(np.maximum(table, 1e-300) / mixture[None]), axis=1)
        weights *= np.exp(divergence)
        weights /= weights.sum()
    return float(weights @ divergence)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("state", [0.0, 0.7, 1.0])
def test_the_judge_enumerates_plans(steps: int, state: float, getkey):
    world = Moves()
    found = exact_empowerment(world, jnp.array([state]), steps=steps, key=getkey())
    assert found.upper - found.lower < 1.1e-3
    assert found.value == pytest.approx(brute_force(world, state, steps), abs=1.5e-3)


def test_a_trained_codebook_of_all_plans_reaches_the_capacity(getkey):
    world = Bounded(Moves())
    untrained = make_channel(world, family="auto", steps=2, width=32, key=getkey())
    assert ceiling(untrained) == float("inf")
    channel = train_channel(untrained, world, num_updates=600, key=getkey()).model
    for state in (0.0, 0.8, 1.0):
        place = jnp.array([state])
        exact = exact_empowerment(world.world, place, steps=2, key=getkey())
        bound = empowerment(channel, world, place, key=getkey())
        assert bound.value <= exact.upper + 3 * bound.standard_error
        assert bound.value >= exact.lower - 0.02


def test_with_process_noise_the_bound_stays_below_the_capacity_without_it(getkey):
    noisy, world = Bounded(Moves(process=0.2)), Moves()
    channel = make_channel(noisy, family="codebook", steps=2, width=32, key=getkey())
    channel = train_channel(channel, noisy, num_updates=300, key=getkey()).model
    bound = empowerment(channel, noisy, jnp.zeros(1), key=getkey())
    exact = exact_empowerment(world, jnp.zeros(1), steps=2, key=getkey())
    assert 0.2 < bound.value < exact.lower


@pytest.mark.parametrize(
    ("choices", "steps", "count"),
    [
        ((2,), 1, 2),
        ((3,), 4, 81),
        ((2, 3), 2, 36),
        ((4,), 6, MOST_PLANS),
        ((5, 5, 5), 3, MOST_PLANS),
    ],
)
def test_plans_are_different_and_hold_actions(choices, steps: int, count: int):
    plans = np.asarray(discrete_plans(discrete(*choices), steps))
    assert plans.shape == (count, steps, sum(choices))
    assert len(np.unique(plans.reshape(count, -1), axis=0)) == count
    firsts = np.cumsum((0, *choices))
    for first, last in itertools.pairwise(firsts):
        np.testing.assert_array_equal(plans[:, :, first:last].sum(axis=2), 1)
    changes = (np.abs(np.diff(plans, axis=1)).sum(axis=2) > 0).sum(axis=1)
    total = int(np.prod(choices))
    assert (changes == 0).sum() == min(total, count)
    if total**steps > count > total:
        assert changes.max() <= 2


def test_scores_choose_the_largest_of_each_group():
    world = Bounded(Moves())
    np.testing.assert_array_equal(world.squash(jnp.array([-1.0, 3.0, 2.0])), [0, 1, 0])
    np.testing.assert_array_equal(
        discrete(2, 3).choose(jnp.array([0.0, 1.0, 5.0, 4.0, 4.5])), [0, 1, 1, 0, 0]
    )
    points = np.asarray(discrete(2, 3).all_choices())
    assert points.shape == (6, 5)
    assert len(np.unique(points, axis=0)) == 6


def test_what_needs_continuous_actions_is_refused(getkey):
    world = Bounded(Moves())
    with pytest.raises(ValueError, match="discrete"):
        gaussian_empowerment(world.world, jnp.zeros(1), steps=2)
    for family in ("intent", "linearised"):
        with pytest.raises(ValueError, match="codebook or auto, since actions are discrete"):
            make_channel(world, family=family, steps=2, key=getkey())
    channel = make_channel(world, family="auto", steps=2, key=getkey())
    assert "discrete" in str(refusal(channel, world, key=getkey()))
    with pytest.raises(ValueError, match="at most 4096 plans"):
        exact_empowerment(world.world, jnp.zeros(1), steps=8, key=getkey())


@pytest.mark.parametrize("choices", [(1,), (2, 2)])
def test_choices_that_do_not_fit_are_refused(choices: tuple[int, ...]):
    ones = jnp.ones(3)
    with pytest.raises(ValueError, match="as many as the 3 axes"):
        Box(0 * ones, ones, ("a", "b", "c"), choices=choices)
