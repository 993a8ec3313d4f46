"""What a policy is judged by, against sums written out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from empowerment.distributions import Gaussian, divergence_from_standard
from empowerment.policy import Critic, Outcome, Policy, cost, imagine, rollout
from empowerment.policy.objective import returns
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded, Box, LinearGaussian, Pendulum

WORLD = Bounded(Pendulum())
DISCOUNT = 0.9


class Hill(eqx.Module):
    """A bound that is highest at rest, upright, and known in closed form."""

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        return 3 + jnp.cos(state[0]) - 0.1 * state[1] ** 2


def policy_of(key) -> Policy:
    return Policy(WORLD.states, 1, width=8, depth=1, key=key)


def outcome_of(key) -> Outcome:
    bound_key, state_key, divergence_key = jax.random.split(key, 3)
    return Outcome(
        jax.random.normal(state_key, (5, 2)),
        jax.random.uniform(bound_key, (5,)),
        jax.random.uniform(divergence_key, (4,)),
        jnp.zeros((4, 1)),
    )


def critic_of(key) -> Critic:
    return Critic(WORLD.states, jnp.array(0.4), width=8, depth=1, key=key)


def test_divergence_is_that_of_two_gaussians():
    mean, scale = 0.7, 0.4
    norm = scipy.stats.norm
    truth, _ = scipy.integrate.quad(
        lambda u: norm.pdf(u, mean, scale) * (norm.logpdf(u, mean, scale) - norm.logpdf(u)), -6, 6
    )
    found = divergence_from_standard(Gaussian(jnp.array([mean, 0.0]), jnp.array([scale, 1.0])))
    assert float(found) == pytest.approx(truth, abs=1e-5)


def test_cost_without_critic_is_the_mean(getkey):
    outcome = outcome_of(getkey())
    gains = np.asarray(outcome.bounds)[1:] - np.asarray(outcome.divergences) / 20
    assert float(cost(outcome, beta=jnp.array(20.0))) == pytest.approx(-gains.mean(), rel=1e-5)


def test_cost_with_critic_is_the_discounted_sum(getkey):
    outcome, critic = outcome_of(getkey()), critic_of(getkey())
    gains = np.asarray(outcome.bounds)[1:] - np.asarray(outcome.divergences) / 20
    truth = sum((1 - DISCOUNT) * DISCOUNT**t * gain for t, gain in enumerate(gains))
    truth += DISCOUNT**4 * float(critic(outcome.states[-1]))
    found = cost(outcome, beta=jnp.array(20.0), discount=DISCOUNT, critic=critic)
    assert float(found) == pytest.approx(-truth, rel=1e-5)


@pytest.mark.parametrize("trace", [0.0, 0.6, 1.0])
def test_returns_follow_their_recursion(getkey, trace: float):
    outcome, critic, beta = outcome_of(getkey()), critic_of(getkey()), jnp.array(20.0)
    found = returns(outcome, beta=beta, discount=DISCOUNT, trace=trace, critic=critic)
    later = float(critic(outcome.states[-1]))
    for t in (3, 2, 1, 0):
        gain = float(outcome.bounds[t + 1]) - float(outcome.divergences[t]) / 20
        value = float(critic(outcome.states[t + 1]))
        later = (1 - DISCOUNT) * gain + DISCOUNT * ((1 - trace) * value + trace * later)
        # Of terms of order one in single precision, whose sum may be close to zero.
        assert float(found[t]) == pytest.approx(later, rel=1e-5, abs=1e-6)


def test_a_constant_bound_is_worth_itself(getkey):
    """The critic speaks of means: whatever the discount, a constant stays what it is."""
    critic = eqx.tree_at(
        lambda c: (c.network.layers[-1].weight, c.network.layers[-1].bias),
        critic_of(getkey()),
        replace_fn=jnp.zeros_like,
    )
    outcome = Outcome(jnp.zeros((5, 2)), jnp.full(5, 0.4), jnp.zeros(4), jnp.zeros((4, 1)))
    beta = jnp.array(1.0)
    found = returns(outcome, beta=beta, discount=DISCOUNT, trace=0.5, critic=critic)
    np.testing.assert_allclose(np.asarray(found), 0.4, rtol=1e-5)
    paid = cost(outcome, beta=beta, discount=DISCOUNT, critic=critic)
    assert float(paid) == pytest.approx(-0.4, rel=1e-5)


NOISY = Bounded(
    LinearGaussian(
        jnp.array([[0.9, 0.1], [0.0, 0.8]]),
        jnp.array([[0.0], [0.5]]),
        jnp.eye(2),
        process_noise=[0.3, 0.7],
        resolution=[0.1, 0.1],
        states=WORLD.states,
        actions=Box([-1.0], [1.0], ("u",)),
    )
)


@pytest.mark.parametrize("world", [WORLD, NOISY], ids=["noiseless", "noisy"])
def test_rollout_is_the_world_step_by_step(getkey, world: Bounded):
    policy, start, key = policy_of(getkey()), jnp.array([0.3, -0.5]), getkey()
    path = rollout(policy, world, start, horizon=6, key=key)
    noise, drift = (
        jax.random.normal(key, (6, size))
        for key, size in zip(jax.random.split(key), (1, 2), strict=True)
    )
    state = start
    for index in range(6):
        choice = policy(state)
        assert isinstance(choice, Gaussian)
        successor = world.transition(state, choice.mean + choice.scale * noise[index])
        state = successor.mean + successor.scale * drift[index]
        np.testing.assert_allclose(
            np.asarray(path.states[index + 1]), np.asarray(state), rtol=1e-4, atol=1e-5
        )
    assert np.array_equal(np.asarray(path.states[0]), np.asarray(start))


def test_gradient_goes_through_the_dynamics(getkey):
    """The derivative of the cost in one weight of the policy, against finite differences."""
    policy, start, key = policy_of(getkey()), jnp.array([2.0, 0.5]), jax.random.key(1)

    @jax.jit
    def paid(shift: Scalar) -> Scalar:
        moved = eqx.tree_at(
            lambda p: p.network.layers[-1].bias, policy, replace_fn=lambda bias: bias + shift
        )
        outcome = imagine(moved, Hill(), WORLD, start[None], horizon=8, key=key)
        return jax.vmap(lambda one: cost(one, beta=jnp.array(50.0)))(outcome)[0]

    at, step = jnp.array(0.1), 1e-2
    slope = float(jax.grad(paid)(at))
    rise = float(paid(at + step) - paid(at - step)) / (2 * step)
    assert abs(slope) > 1e-3
    assert slope == pytest.approx(rise, rel=0.02)


def test_policy_is_within_limits_and_begins_at_its_prior(getkey):
    policy = Policy(WORLD.states, 2, key=getkey())
    choices = jax.vmap(policy)(100 * jax.random.normal(getkey(), (64, 2)))
    assert isinstance(choices, Gaussian)
    assert choices.mean.shape == (64, 2)
    assert float(jnp.max(choices.scale)) < np.exp(1.0)
    assert float(jnp.min(choices.scale)) > np.exp(-4.0)
    assert float(jnp.median(choices.scale)) == pytest.approx(1.0, abs=0.4)


def test_what_goes_back_through_an_unstable_world_is_limited(getkey):
    """Where the world grows tenfold a step, so does the gradient, unless its norm is limited."""
    unstable = Bounded(
        LinearGaussian(
            10 * jnp.eye(2),
            jnp.array([[0.0], [1.0]]),
            jnp.eye(2),
            process_noise=[0.1, 0.1],
            resolution=[0.1, 0.1],
            states=WORLD.states,
            actions=Box([-1.0], [1.0], ("u",)),
        )
    )
    policy, start, key = policy_of(getkey()), jnp.array([0.3, -0.5]), getkey()

    def last(start: State, limit: float) -> Scalar:
        path = rollout(policy, unstable, start, horizon=30, adjoint_limit=limit, key=key)
        return path.states[-1].sum()

    assert np.abs(jax.grad(last)(start, np.inf)).max() > 1e20
    for limit in (0.5, 3.0):
        assert np.linalg.norm(jax.grad(last)(start, limit)) == pytest.approx(limit, rel=1e-3)


def test_a_limit_that_is_not_reached_changes_nothing(getkey):
    policy, start, key = policy_of(getkey()), jnp.array([2.0, 0.5]), getkey()

    def last(start: State, limit: float) -> Scalar:
        path = rollout(policy, WORLD, start, horizon=8, adjoint_limit=limit, key=key)
        return path.states[-1].sum()

    free, limited = (np.asarray(jax.grad(last)(start, limit)) for limit in (np.inf, 1e6))
    np.testing.assert_allclose(free, limited, rtol=1e-5)
