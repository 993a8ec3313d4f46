"""Policies of discrete actions: probabilities, costs against sums written out, and learning."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.agent import train_agent
from empowerment.agent.settings import AgentSettings
from empowerment.distributions import Gaussian, Uniform
from empowerment.policy import Agent, Critic, Policy, objective, train_policy
from empowerment.policy.base import Choice
from empowerment.policy.objective import choice_cost, imagine, returns, surprises
from empowerment.types import Action, Key, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded, Box, discrete


class Walk(AbstractWorld):
    """Two axes, each moved by a choice of its own."""

    states: Box = Box((-3.0, -3.0), (3.0, 3.0), ("x", "y"))
    actions: Box = discrete(3, 2)

    def initial(self) -> Uniform:
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        moves = jnp.stack([action[:3] @ jnp.array([-0.3, 0.0, 0.3]), 0.3 * (action[4] - action[3])])
        return Gaussian(state + moves, jnp.full(2, 0.02))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, jnp.full(2, 0.1))


WORLD = Bounded(Walk())


class Valley(eqx.Module):
    """A bound that is highest at one place."""

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        return 3 - 0.2 * jnp.sum((state - jnp.array([1.0, -1.0])) ** 2)


def policy_of(key: Key) -> Policy:
    return Policy(WORLD.states, 5, choices=(3, 2), width=16, depth=1, key=key)


def critic_of(key: Key) -> Critic:
    return Critic(WORLD.states, jnp.array(2.0), width=16, depth=1, key=key)


def test_samples_have_the_stated_probabilities_and_some_are_of_chance(getkey):
    choice = Choice(jnp.array([9.0, 0.0, 0.0, 1.0, -1.0]), discrete(3, 2))
    keys = jax.random.split(getkey(), 20_000)
    chosen = jax.jit(jax.vmap(lambda key: WORLD.squash(choice.sample(key=key))))(keys)
    found = np.asarray(chosen.mean(axis=0))
    stated = np.exp(np.asarray(choice.mean))
    np.testing.assert_allclose(found, stated, atol=4 * np.sqrt(0.25 / 20_000))
    np.testing.assert_allclose([stated[:3].sum(), stated[3:].sum()], 1, rtol=1e-5)
    assert stated.min() >= 0.01 / 3 - 1e-6
    log_probs = jax.vmap(choice.log_prob)(WORLD.actions.all_choices())
    assert float(jnp.exp(log_probs).sum()) == pytest.approx(1, abs=1e-5)


def test_divergence_is_that_from_the_uniform_distribution(getkey):
    choice = policy_of(getkey())(jnp.array([0.3, -2.0]))
    assert isinstance(choice, Choice)
    log_probs = jax.vmap(choice.log_prob)(WORLD.actions.all_choices())
    truth = jnp.sum(jnp.exp(log_probs) * (log_probs + jnp.log(6.0)))
    assert float(choice.divergence_from_uniform()) == pytest.approx(float(truth), abs=1e-5)
    uniform = Choice(jnp.zeros(5), discrete(3, 2))
    assert float(uniform.divergence_from_uniform()) == pytest.approx(0, abs=1e-6)


def test_cost_is_the_sum_over_all_actions(getkey):
    policy, critic, state, key = policy_of(getkey()), critic_of(getkey()), jnp.ones(2), getkey()
    options = {"beta": jnp.array(20.0), "discount": 0.9, "critic": critic, "key": key}
    found = choice_cost(policy, Valley(), WORLD, state, **options)
    noise = jax.random.normal(jax.random.split(key, 3)[0], (2,))
    choice, total = policy(state), 0.0
    assert isinstance(choice, Choice)
    for action in WORLD.actions.all_choices():
        transition = WORLD.world.transition(state, action)
        successor = transition.mean + transition.scale * noise
        value = 0.1 * Valley().information(WORLD, successor, key=key) + 0.9 * critic(successor)
        total += float(jnp.exp(choice.log_prob(action)) * value)
    total -= 0.1 * float(choice.divergence_from_uniform()) / 20
    assert float(found) == pytest.approx(-total, rel=1e-5)


@pytest.mark.statistical
def test_the_gradient_of_sampled_actions_is_that_of_the_sum(getkey, monkeypatch):
    policy, critic, state = policy_of(getkey()), critic_of(getkey()), jnp.ones(2)

    def gradient(key: Key):
        def of(policy: Policy) -> Scalar:
            return choice_cost(
                policy, Valley(), WORLD, state, beta=jnp.array(20.0), discount=0.9, critic=critic,
                key=key,
            )  # fmt: skip

        return eqx.filter_grad(of)(policy).network.layers[-1].bias

    keys = jax.random.split(getkey(), 4000)
    exact = jax.jit(jax.vmap(gradient))(keys).mean(axis=0)
    monkeypatch.setattr(objective, "_ALL", 1)
    sampled = jax.jit(jax.vmap(gradient))(keys)
    error = sampled.std(axis=0) / np.sqrt(len(keys))
    np.testing.assert_array_less(np.abs(sampled.mean(axis=0) - exact), 4.5 * error + 1e-6)
    assert float(jnp.abs(exact).max()) > 10 * float(error.max())


@pytest.mark.statistical
def test_with_surprises_the_gradient_is_that_of_the_returns_whatever_the_critic(getkey):
    """A critic that knows nothing: beyond ten steps, at half the weight each, nothing counts."""
    policy, state, beta, half = policy_of(getkey()), jnp.ones(2), jnp.array(20.0), 0.5
    critic = eqx.tree_at(
        lambda c: c.network.layers[-1].weight, critic_of(getkey()), replace_fn=lambda w: 5 * w
    )
    count, options = 3000, {"beta": beta, "discount": half, "critic": critic}

    @jax.jit
    def follow(state: State, key: Key):
        starts = jnp.broadcast_to(state, (count, 2))
        outcomes = imagine(policy, Valley(), WORLD, starts, horizon=10, key=key)
        return outcomes, jax.vmap(lambda o: returns(o, trace=1.0, **options))(outcomes)

    def slope(log_probs_of):
        jacobian: Any = eqx.filter_jacrev(log_probs_of)(policy)
        return np.asarray(jacobian.network.layers[-1].bias)

    outcomes, found = follow(state, getkey())
    after = jax.vmap(lambda *each: surprises(*each, discount=half, critic=critic))(outcomes, found)
    of_taken = slope(lambda p: jax.vmap(p(state).log_prob)(outcomes.actions[:, 0]))
    foreseen = slope(lambda p: -choice_cost(p, Valley(), WORLD, state, key=getkey(), **options))
    each = foreseen + of_taken * np.asarray(after)[:, :1]

    truth, choice = (
        -half / beta * slope(lambda p: p(state).divergence_from_uniform()),
        policy(state),
    )
    for action in WORLD.actions.all_choices():
        transition = WORLD.world.transition(state, action)
        later = np.asarray(follow(transition.mean, getkey())[1])[:, 0].mean()
        value = half * Valley().information(WORLD, transition.mean, key=getkey()) + half * later
        of_action = slope(lambda p, action=action: p(state).log_prob(action))
        truth = truth + float(jnp.exp(choice.log_prob(action)) * value) * of_action

    error = each.std(axis=0) / np.sqrt(count)
    tolerance = 4.5 * error.max() + 3e-3
    np.testing.assert_allclose(each.mean(axis=0), truth, atol=tolerance)
    assert np.abs(foreseen - truth).max() > 2 * tolerance


def test_the_policy_goes_where_the_bound_is_high(getkey):
    agent = Agent(policy_of(getkey()), critic=critic_of(getkey()))
    trained = train_policy(
        agent,
        WORLD,
        Valley(),
        betas=np.full(300, 100.0),
        num_starts=32,
        horizon=4,
        discount=0.9,
        learning_rate=1e-2,
        key=getkey(),
    )
    policy = trained.model.policy

    def follow(state: State) -> State:
        def step(state: State, _: None) -> tuple[State, None]:
            return WORLD.transition(state, policy(state).mean).mean, None

        return jax.lax.scan(step, state, None, length=20)[0]

    ends = jax.vmap(follow)(jnp.array([[-2.0, 2.0], [2.5, 2.5], [0.0, 0.0], [-2.0, -2.0]]))
    # Within two moves: along the second axis it has to move, one way or the other.
    np.testing.assert_allclose(ends, np.tile([1.0, -1.0], (4, 1)), atol=0.6)


def test_without_a_critic_discrete_actions_are_refused(getkey):
    settings = AgentSettings(critic=False, discount=1.0)
    with pytest.raises(ValueError, match=r"Expected a critic.*discrete"):
        train_agent(Walk(), settings, key=getkey())
