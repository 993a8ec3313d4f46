"""What was imagined against what happened."""

import math
from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.agent import Comparison, Outcome, TrainedAgent, compare
from empowerment.channel import make_channel
from empowerment.data import Episode
from empowerment.distributions import Gaussian, Uniform
from empowerment.model import unfitted_reward
from empowerment.policy import Policy, Task
from empowerment.types import Action, Observation, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded, Box

LONGEST = 40
OVER = 1.1
"""A place beyond the end of the rail."""


class Rail(AbstractWorld):
    """A point on a rail, pushed; it cannot be moved any more beyond the end."""

    centre: float = 0.0
    states: Box = eqx.field(default_factory=lambda: Box([-1.2], [1.2], ("x",)))
    actions: Box = eqx.field(default_factory=lambda: Box([-1.0], [1.0], ("push",)))

    def initial(self) -> Uniform:
        middle = jnp.full(1, self.centre)
        return Uniform(middle - 0.1, middle + 0.1)

    def transition(self, state: State, action: Action) -> Gaussian:
        moved = state + 0.2 * jnp.clip(action, -1.0, 1.0)
        return Gaussian(jnp.where(jnp.abs(state) < 1.0, moved, state), jnp.zeros(1))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, jnp.full(1, 0.05))


@pytest.fixture
def agent(getkey: Callable) -> TrainedAgent:
    """A rail whose point is observed, and a channel in closed form."""
    world = Bounded(Rail())
    channel = make_channel(world, family="linearised", steps=2, key=getkey())
    policy = Policy(world.states, 1, width=4, depth=1, key=getkey())
    still = jax.tree.map(lambda leaf: 0 * leaf if eqx.is_array(leaf) else leaf, policy.network)
    policy = eqx.tree_at(lambda made: made.network, policy, still)
    return TrainedAgent(world, channel, None, policy)


def episodes(count: int, length: int, *, terminated: bool) -> list[Episode]:
    """Episodes of the point at rest, which is over the end at last if they are terminated."""
    paths = []
    for start in np.linspace(-0.1, 0.1, count, dtype=np.float32):
        rows = np.full((length + 1, 1), start)
        rows[-1] = OVER if terminated else start
        actions = np.zeros((length, 1))
        paths.append(Episode(rows, actions, terminated=terminated, truncated=not terminated))
    return paths


def test_imagination_of_the_world_itself_agrees(agent: TrainedAgent):
    found = compare(agent, [episodes(16, LONGEST, terminated=False)], can_end=True, seed=0)
    assert found.longest == LONGEST
    assert found.real[0].length == found.imagined.length == LONGEST
    assert found.agrees
    assert found.survives
    assert found.is_settled  # There is nothing to improve, if random episodes end.
    assert abs(found.imagined.empowerment - found.real[0].empowerment) < 0.1 * found.spread


def test_nothing_is_left_after_a_real_end(agent: TrainedAgent):
    whole = episodes(16, LONGEST, terminated=False)
    short = episodes(16, LONGEST // 4, terminated=True)
    found = compare(agent, [whole, short], can_end=True, seed=0)
    assert found.real[1].length == pytest.approx(LONGEST / 4)
    # Along a quarter of the way there is about as much as along the whole.
    assert found.real[1].empowerment == pytest.approx(found.real[0].empowerment / 4, rel=0.1)
    assert found.best == 0
    assert not found.agrees
    assert not found.is_settled


def test_an_episode_that_was_cut_counts_as_far_as_it_goes(agent: TrainedAgent):
    whole = episodes(4, LONGEST, terminated=False)
    cut = [whole[0].part(0, 3)]
    found = compare(agent, [whole, [*whole, *cut]], can_end=True, seed=0)
    assert found.real[1].length == LONGEST


def test_imagined_episodes_end_where_the_bound_is_that_of_real_ends(agent: TrainedAgent):
    ended = episodes(16, LONGEST, terminated=True)
    assert compare(agent, [ended], can_end=True, seed=0).imagined.length == LONGEST
    over = replace(agent, world=Bounded(Rail(centre=OVER)))
    found = compare(over, [ended], can_end=True, seed=0)
    assert found.imagined.length == 0
    assert found.imagined.empowerment == 0
    assert not found.agrees


def test_what_a_task_pays_stays_where_an_episode_has_ended(agent: TrainedAgent):
    def bright(observation: Observation, action: Action) -> Scalar:
        return observation[0]

    ended = episodes(4, LONGEST // 4, terminated=True)
    lasting = episodes(4, LONGEST, terminated=False)
    alone = replace(agent, task=Task(bright, math.inf))
    real = compare(alone, [ended, lasting], can_end=True, seed=0).real
    first = np.mean([path.observations[0, 0] for path in ended])
    share = (LONGEST // 4 - 1) / LONGEST
    assert real[0].gain == pytest.approx(share * first + (1 - share) * OVER, abs=1e-5)
    assert real[1].gain == pytest.approx(first, abs=1e-5)
    both = compare(replace(agent, task=Task(bright, 2.0)), [ended, lasting], can_end=True, seed=0)
    assert both.real[0].gain == pytest.approx(
        both.real[0].empowerment + 2 * real[0].worth, rel=1e-4
    )
    # It is imagined as it is paid: at rest, where the point starts.
    found = compare(alone, [lasting], can_end=True, seed=0)
    assert found.imagined.gain == pytest.approx(0.0, abs=0.05)
    assert not found.survives  # There may be more to gain.
    without = replace(agent, task=Task(bright, 0.0))
    assert compare(without, [lasting], can_end=True, seed=0) == compare(
        agent, [lasting], can_end=True, seed=0
    )


def test_nothing_is_paid_after_a_real_end_by_what_was_recorded(agent: TrainedAgent):
    """Rewards of an environment: those that episodes have, in the unit of the learnt reward."""
    reward = unfitted_reward(agent.world.states, 1, width=4, depth=1)
    reward = replace(reward, unit=jnp.array(2.0), can_end=jnp.array(0.0))
    alone = replace(agent, task=Task(reward, math.inf))
    ended = [
        replace(each, rewards=np.arange(each.length))
        for each in episodes(4, LONGEST // 4, terminated=True)
    ]
    lasting = [
        replace(each, rewards=np.full(each.length, -6.0))
        for each in episodes(4, LONGEST, terminated=False)
    ]
    real = compare(alone, [ended, lasting], can_end=True, seed=0).real
    assert real[0].gain == pytest.approx(np.arange(LONGEST // 4).sum() / LONGEST / 2, rel=1e-5)
    assert real[1].gain == pytest.approx(-3.0, rel=1e-5)
    with pytest.raises(ValueError, match="Expected episodes with rewards"):
        compare(alone, [episodes(4, LONGEST, terminated=False)], can_end=True, seed=0)


def outcome(value: float) -> Outcome:
    return Outcome(value, 10.0)


def comparison(imagined: float, *real: float) -> Comparison:
    return Comparison(outcome(imagined), tuple(map(outcome, real)), 10, 1.0, survives=False)


def test_rounds_end_when_imagination_agrees_and_nothing_improves():
    assert not comparison(2.0, 2.0).is_settled  # Whether more is possible, nobody knows yet.
    assert not comparison(2.5, 2.0, 2.5).is_settled  # Better than before.
    assert not comparison(2.5, 2.0, 2.0).is_settled  # Imagination does not agree.
    assert comparison(2.1, 2.0, 2.04).is_settled
    assert comparison(1.85, 2.0, 1.85).is_settled
    assert not comparison(1.0, 2.0, 1.0).is_settled  # The last training failed: the next may not.
    assert replace(comparison(2.0, 2.0), survives=True).is_settled
    assert not replace(comparison(2.5, 2.0), survives=True).is_settled


def test_the_best_round_is_kept():
    assert comparison(0.0, 1.0, 3.0, 2.0).best == 1
    assert comparison(0.0, 1.0, 1.0).best == 0
