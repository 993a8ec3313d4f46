"""Tasks beside empowerment, against sums written out."""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.model import unfitted_reward
from empowerment.networks import Network
from empowerment.policy import Agent, Critic, Goal, Policy, Task, imagine, make_goal, train_policy
from empowerment.policy.base import rollout
from empowerment.policy.objective import choice_cost
from empowerment.policy.starts import rank
from empowerment.types import Action, Key, Observation, Scalar, State
from empowerment.worlds import AbstractWorld, Ball, Bounded, Pendulum, discrete

WORLD = Bounded(Ball())
PENDULUM = Bounded(Pendulum())


class Slope(eqx.Module):
    """A bound that says: to the middle."""

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        return -0.01 * jnp.sum((state - 5.0) ** 2)


def thrift(observation: Observation, action: Action) -> Scalar:
    return observation[0] - 3 * jnp.sum(action**2)


def policy_of(key, world: Bounded = WORLD) -> Policy:
    return Policy(world.states, world.actions.size, width=16, depth=1, key=key)


def test_a_goal_pays_by_the_distance_and_angles_turn():
    goal = make_goal("velocity=1, angle=3.1", ("angle", "velocity"), angles=("angle",), scale=0.5)
    seen, action = jnp.array([-3.1 + 4 * math.pi, 0.7]), jnp.zeros(1)
    distance = math.hypot(2 * math.pi - 6.2, 0.3)
    truth = 1 - math.sqrt(1 + (distance / 0.5) ** 2)
    assert float(goal(seen, action)) == pytest.approx(truth, rel=1e-4)
    straight = make_goal("angle=3.1", ("angle", "velocity"))
    truth = 1 - math.sqrt(1 + (4 * math.pi - 6.2) ** 2)
    assert float(straight(seen, action)) == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize(
    ("goal", "said"),
    [("x", "got 'x'"), ("=1", "a number"), ("x=1,x=2", "a number"), ("x=nan", "a number"),
     ("x=1,", "a number"), ("z=1", "among the columns x, y; got z")],
)  # fmt: skip
def test_words_that_are_no_goal_are_refused(goal: str, said: str):
    with pytest.raises(ValueError, match=said):
        make_goal(goal, ("x", "y"))


@pytest.mark.parametrize("weight", [-1.0, math.nan])
def test_a_weight_is_at_least_zero(weight: float):
    with pytest.raises(ValueError, match="at least 0"):
        Task(thrift, weight)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_a_scale_is_positive(scale: float):
    with pytest.raises(ValueError, match="positive and finite"):
        make_goal("x=1", ("x", "y"), scale=scale)


@pytest.mark.parametrize("weight", [0.5, math.inf])
def test_gains_are_bound_and_reward_of_each_step(getkey, weight: float):
    policy, key = policy_of(getkey()), getkey()
    starts = jnp.array([[2.0, 3.0], [8.0, 1.0]])
    task = Task(thrift, weight)
    outcome = imagine(policy, Slope(), WORLD, starts, horizon=3, task=task, key=key)
    keys = jax.random.split(jax.random.split(key)[0], 2)
    for start, found, own in zip(starts, np.asarray(outcome.gains), keys, strict=True):
        path = rollout(policy, WORLD, start, horizon=3, key=own)
        for step in range(3):
            after, pushed = np.asarray(path.states[step + 1]), path.actions[step]
            reward = after[0] - 3 * np.sum(np.asarray(WORLD.squash(pushed)) ** 2)
            bound = -0.01 * np.sum((after - 5.0) ** 2)
            truth = reward if weight == math.inf else bound + weight * reward
            assert found[step] == pytest.approx(truth, rel=1e-4)
    plain = imagine(policy, Slope(), WORLD, starts, horizon=3, key=key)
    np.testing.assert_array_equal(plain.gains, plain.bounds[:, 1:])


@pytest.mark.parametrize("can_end", [0.0, 1.0])
def test_a_learnt_reward_is_paid_until_an_end(getkey, can_end: float):
    policy, key = policy_of(getkey()), getkey()
    made = unfitted_reward(WORLD.states, 2, width=8, depth=1)
    made = replace(made, unit=jnp.array(4.0), mean=jnp.array(0.5), can_end=jnp.array(can_end))
    # Beyond the middle on the first axis everything has ended.
    first = jnp.array([[1.0, 0.0]])
    gate = eqx.nn.Linear(2, 1, key=getkey())
    gate = eqx.tree_at(lambda g: (g.weight, g.bias), gate, (-200 * first, jnp.zeros(1)))
    made = eqx.tree_at(lambda m: m.goes_on, made, Network((gate,), jnp.tanh))
    near = jnp.stack([jnp.linspace(4.2, 5.8, 16), jnp.full(16, 5.0)], axis=1)
    starts = jnp.concatenate([jnp.array([[2.0, 3.0], [8.0, 1.0]]), near])
    outcome = imagine(policy, Slope(), WORLD, starts, horizon=3, task=Task(made, math.inf), key=key)
    gains = np.asarray(outcome.gains)
    for episode, (states, actions) in enumerate(zip(outcome.states, outcome.actions, strict=True)):
        for step in range(3):
            place = 2 * (states[step + 1] - 5) / 5
            inputs = jnp.concatenate([place, WORLD.squash(actions[step])])
            paid = 0.5 + float(made.paid(inputs)[0])
            alive = 1 - can_end / (1 + math.exp(-80 * (float(states[step][0]) - 5)))
            assert gains[episode, step] == pytest.approx(alive * paid / 4, abs=1e-4)
    path = np.asarray(outcome.states)[:, :, 0]
    assert np.any((path[:, :-1] < 4.9) & (path[:, 1:] > 5.1))  # The last action is paid.
    assert np.any(gains[1] != 0) == (can_end == 0)


def test_states_are_ranked_by_the_task_as_well(getkey):
    policy = policy_of(getkey())
    goal = make_goal("x=1,y=9", ("x", "y"))
    best = jnp.full((2048, 2), 5.0)
    task = Task(goal, math.inf)
    ranked = np.asarray(rank(policy, Slope(), WORLD, best, horizon=2, task=task, key=getkey()))
    distance = np.linalg.norm(ranked - np.array([1.0, 9.0]), axis=1)
    assert distance[:50].mean() < 2.5
    assert distance[-50:].mean() > 7


def test_discrete_actions_are_chosen_by_the_task_as_well(getkey):
    """The same state after each action and no bound: what is left is the price of the action."""

    class Still(AbstractWorld):
        states = Pendulum().states
        actions = discrete(3)

        def initial(self):
            return self.states.uniform()

        def transition(self, state: State, action: Action):
            return Pendulum().transition(state, jnp.zeros(1))

        def emission(self, state: State):
            return Pendulum().emission(state)

    world = Bounded(Still())
    policy = Policy(world.states, 3, choices=(3,), width=8, depth=1, key=getkey())
    critic = Critic(world.states, jnp.zeros(()), width=8, depth=1, key=getkey())
    prices = jnp.array([0.0, 1.0, -2.0])
    state, key = jnp.array([0.3, 0.1]), getkey()

    def cost_of(task: Task | None) -> Scalar:
        options = {"beta": jnp.array(1e9), "discount": 0.5, "critic": critic, "key": key}
        return choice_cost(policy, Slope(), world, state, task=task, **options)

    paid = Task(lambda seen, action: prices @ action, 2.0)
    expected = float(jnp.exp(policy(state).mean) @ prices)
    found = float(cost_of(None) - cost_of(paid))
    assert found == pytest.approx(0.5 * 2.0 * expected, abs=1e-4)


def test_the_policy_goes_to_the_goal_and_a_weight_of_zero_changes_nothing():
    keys = jax.random.split(jax.random.key(3), 3)
    agent = Agent(policy_of(keys[0]), critic=Critic(
        WORLD.states, jnp.zeros(()), width=16, depth=1, key=keys[1]
    ))  # fmt: skip

    def trained(task: Task | None, updates: int) -> Policy:
        return train_policy(
            agent,
            WORLD,
            Slope(),
            betas=np.full(updates, 500.0),
            num_starts=32,
            horizon=4,
            discount=0.9,
            learning_rate=1e-2,
            task=task,
            updates_per_call=10,
            key=keys[2],
        ).model.policy

    goal = make_goal("x=2,y=7", ("x", "y"))
    assert isinstance(goal, Goal)
    with_none, with_zero = trained(None, 10), trained(Task(goal, 0.0), 10)
    assert bool(eqx.tree_equal(with_none, with_zero))
    policy = trained(Task(goal, 1.0), 200)

    def settle(start: State) -> State:
        def step(state: State, _: None) -> tuple[State, None]:
            return WORLD.transition(state, policy(state).mean).mean, None

        return jax.lax.scan(step, start, None, length=60)[0]

    ends = jax.vmap(settle)(jnp.array([[1.0, 1.0], [9.0, 9.0], [9.0, 1.0], [5.0, 5.0]]))
    assert float(jnp.max(jnp.linalg.norm(ends - jnp.array([[2.0, 7.0]]), axis=1))) < 0.5
