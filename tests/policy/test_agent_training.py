"""Algorithm 1: who learns, who does not, and that it goes where it should."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.channel import AbstractChannel, Estimate, Inputs, make_channel
from empowerment.distributions import Empirical
from empowerment.errors import DivergedError, NotConvergedError
from empowerment.optimise import Callback
from empowerment.policy import (
    Agent,
    Critic,
    Policy,
    fit_surrogate,
    train_policy,
    training as agent_training,
)
from empowerment.policy.surrogate import _disjoint, _judge, root_mean_product
from empowerment.types import Key, Plan, Scalar, State
from empowerment.worlds import AbstractWorld, Ball, Bounded

WORLD = Bounded(Ball())
CALL: dict[str, Any] = {
    "betas": jnp.full(2, 50.0, float),
    "discounts": jnp.full(2, 0.9, float),
    "shares": jnp.full(2, 0.5, float),
    "learning_rates": jnp.full(2, 1e-3, float),
}


class Slope(eqx.Module):
    """A bound that says: to the middle."""

    weight: Scalar

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        return -self.weight * jnp.sum((state - 5.0) ** 2)


class Known(AbstractChannel):
    """A channel whose bound is known in closed form."""

    inputs: Inputs
    steps: int = eqx.field(static=True)
    rate: float = 1.0

    def draw(self, state: State, *, key: Key) -> Plan:
        return jnp.zeros((1, 2))

    def draw_many(self, state: State, count: int, *, key: Key):
        return jnp.zeros((count, 1, 2)), jnp.zeros(count)

    def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
        return 2 + jnp.sin(self.rate * state[0])

    def estimate(self, world: AbstractWorld, state: State, *, num_samples: int, key: Key):
        return Estimate(self.information(world, state, key=key), jnp.zeros(()))


def policy_of(key) -> Policy:
    return Policy(WORLD.states, 2, width=16, depth=1, key=key)


def critic_of(key) -> Critic:
    return Critic(WORLD.states, jnp.zeros(()), width=16, depth=1, key=key)


def same(first, second) -> bool:
    return bool(eqx.tree_equal(first, second))


def test_a_given_bound_is_left_as_it_is_and_the_rest_learns(getkey):
    agent = Agent(policy_of(getkey()), critic=critic_of(getkey()))
    before = agent_training.init(agent, WORLD, num_starts=4, key=getkey())
    best = jnp.full((2048, 2), 5.0, float)  # As many as in a whole training: the same program.
    after, info = agent_training.step(
        before, WORLD, Slope(jnp.array(0.1)), best, **CALL, num_starts=4, horizon=3
    )
    assert not same(after.model.policy.network, agent.policy.network)
    assert agent.critic is not None
    assert after.model.critic is not None
    assert not same(after.model.critic.network, agent.critic.network)
    assert same(after.model.policy.states, agent.policy.states)
    assert after.model.channel is None
    assert int(after.num_updates) == 2
    assert all(np.isfinite(float(value)) for value in vars(info).values())


def test_without_a_bound_the_channel_learns_with_the_policy(getkey):
    channel = make_channel(WORLD, family="gaussian", steps=1, width=8, depth=1, key=getkey())
    agent = Agent(policy_of(getkey()), channel)
    before = agent_training.init(agent, WORLD, num_starts=4, key=getkey())
    after, _ = agent_training.step(before, WORLD, **CALL, num_starts=4, horizon=3)
    assert after.model.channel is not None
    assert not same(after.model.channel.source, channel.source)  # type: ignore[attr-defined]
    assert same(after.model.channel.inputs.states, channel.inputs.states)


def test_neither_bound_nor_channel_is_refused(getkey):
    agent = Agent(policy_of(getkey()))
    state = agent_training.init(agent, WORLD, num_starts=2, key=getkey())
    with pytest.raises(ValueError, match="got neither"):
        agent_training.step(state, WORLD, **CALL, num_starts=2, horizon=2)


@pytest.mark.parametrize("make_critic", [lambda key: None, critic_of])
def test_the_policy_goes_where_the_bound_is_high(make_critic):
    keys = jax.random.split(jax.random.key(3), 4)
    agent = Agent(policy_of(keys[0]), critic=make_critic(keys[1]))
    trained = train_policy(
        agent,
        WORLD,
        Slope(jnp.array(0.1)),
        betas=np.full(300, 500.0),
        num_starts=32,
        horizon=4,
        discount=0.9,
        learning_rate=1e-2,
        key=keys[2],
    )
    policy = trained.model.policy
    starts = WORLD.states.uniform()

    def moves(key: Key) -> Scalar:
        state = starts.sample(key=key)
        successor = WORLD.transition(state, policy(state).mean).mean
        return jnp.linalg.norm(state - 5) - jnp.linalg.norm(successor - 5)

    closer = jax.vmap(moves)(jax.random.split(keys[3], 64))
    assert float(jnp.mean(closer > 0)) > 0.95
    made = [count for count, _ in trained.history]
    assert made == [100, 200, 300]


def test_resumed_training_ends_with_the_same_bits(getkey):
    agent, key = Agent(policy_of(getkey()), critic=critic_of(getkey())), getkey()
    kept = []
    settings: dict[str, Any] = {
        "betas": np.linspace(5, 50, 6),
        "num_starts": 4,
        "horizon": 3,
        "discount": 0.9,
        "updates_per_call": 2,
        "key": key,
    }
    bound = Slope(jnp.array(0.1))
    whole = train_policy(agent, WORLD, bound, **settings, callback=Callback(kept.append))
    again = train_policy(
        agent, WORLD, bound, **settings, callback=Callback(resume=lambda fresh: kept[0])
    )
    assert same(whole.model, again.model)
    assert whole.history == again.history


def test_beta_horizon_and_budget(getkey):
    """Beta may change without compiling anew; a trained bound serves any horizon."""
    traces = 0

    class Counting(eqx.Module):
        def information(self, world: AbstractWorld, state: State, *, key: Key) -> Scalar:
            nonlocal traces
            traces += 1
            return state[0]

    agent, bound = Agent(policy_of(getkey())), Counting()
    state = agent_training.init(agent, WORLD, num_starts=2, key=getkey())
    for beta in (5.0, 2000.0):
        call = {**CALL, "betas": jnp.full(2, beta, float)}
        state, _ = agent_training.step(state, WORLD, bound, **call, num_starts=2, horizon=2)
    assert traces == 1
    state, _ = agent_training.step(state, WORLD, bound, **CALL, num_starts=2, horizon=5)
    assert traces == 2
    with pytest.raises(ValueError, match="multiple of 100; got 50"):
        train_policy(state.model, WORLD, bound, betas=np.ones(50), key=getkey())


@pytest.mark.slow
def test_one_channel_serves_every_horizon_untouched(getkey):
    """Policies are trained for two horizons on the same channel, which stays as it was."""
    channel = make_channel(WORLD, family="gaussian", steps=1, width=8, depth=1, key=getkey())
    before = [np.array(leaf) for leaf in jax.tree.leaves(channel)]
    fresh = Agent(policy_of(getkey()))
    start = agent_training.init(fresh, WORLD, num_starts=4, key=getkey())
    made = []
    for horizon in (2, 5):
        after, _ = agent_training.step(start, WORLD, channel, **CALL, num_starts=4, horizon=horizon)
        made.append(after.model)
        assert after.model.channel is None
        assert not same(after.model.policy.network, fresh.policy.network)
    assert not same(made[0].policy.network, made[1].policy.network)
    for was, leaf in zip(before, jax.tree.leaves(channel), strict=True):
        assert np.array_equal(was, np.asarray(leaf))


def test_what_is_not_finite_stops_training(getkey):
    agent = Agent(policy_of(getkey()))
    with pytest.raises(DivergedError, match="by update 100"):
        train_policy(
            agent,
            WORLD,
            Slope(jnp.array(jnp.nan)),
            betas=np.ones(200),
            num_starts=32,
            horizon=4,
            key=getkey(),
        )


INPUTS = Inputs(WORLD.states, jnp.eye(2))


def test_surrogate_is_the_bound_it_was_fitted_to():
    keys = jax.random.split(jax.random.key(0))
    channel = Known(inputs=INPUTS, steps=1)
    fit, about = fit_surrogate(
        channel, WORLD, num_states=512, num_updates=800, width=32, key=keys[0]
    )
    fitted = fit.surrogate
    states = jax.vmap(lambda key: WORLD.states.uniform().sample(key=key))(
        jax.random.split(keys[1], 256)
    )
    truth = 2 + jnp.sin(states[:, 0])
    error = float(jnp.sqrt(jnp.mean((jax.vmap(fitted)(states) - truth) ** 2)))
    assert error < 0.1
    assert float(fitted.error) == pytest.approx(error, rel=0.5)
    assert about["error"] == float(fitted.error)
    assert about["spread"] == pytest.approx(float(truth.std()), rel=0.1)
    assert about["warning"] == ""


class Visited(Ball):
    """A ball whose states are those of a log."""

    def state_distribution(self) -> Empirical:
        return Empirical(10 * jax.random.uniform(jax.random.key(5), (64, 2)))


def test_surrogate_is_judged_at_states_it_was_not_fitted_to():
    """A bound that nobody could guess from other states is learnt by heart, and guessed badly."""
    channel = Known(inputs=INPUTS, steps=1, rate=1e4)
    sizes = {"num_states": 256, "num_updates": 3000, "width": 64}
    fit, about = fit_surrogate(channel, Bounded(Visited()), **sizes, key=jax.random.key(1))
    fitted = fit.surrogate
    states = Visited().state_distribution().values
    off = np.asarray(jax.vmap(fitted)(states) - (2 + jnp.sin(1e4 * states[:, 0])))
    assert np.median(np.abs(off)) < 0.1 * about["spread"]
    assert about["error"] > 0.5 * about["spread"]
    assert "rough picture of the bound" in about["warning"]


@pytest.mark.parametrize(
    ("error", "spread", "said"),
    [
        (0.009, 0.0, ""),
        (0.02, 0.1, "rough"),
        (0.09, 1.0, ""),
        (0.11, 1.0, "rough"),
        (0.9, 1.0, "rough"),
    ],
)
def test_a_rough_fit_is_told(error: float, spread: float, said: str):
    warning = _judge(error=error, spread=spread)
    assert bool(warning) == bool(said)
    assert said in warning


@pytest.mark.parametrize(("error", "spread"), [(1.6, 1.0), (0.16, 0.0), (float("nan"), 1.0)])
def test_a_fit_that_is_worse_than_a_constant_is_refused(error: float, spread: float):
    with pytest.raises(NotConvergedError, match=f"error of {error:.3g} nats"):
        _judge(error=error, spread=spread)


def test_states_to_fit_to_and_to_judge_by_have_none_in_common():
    values = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    drawn = values[np.random.default_rng(1).integers(0, 40, 364)]
    fitted, judged = (np.asarray(part) for part in _disjoint(drawn, 300))
    assert (len(fitted), len(judged)) == (300, 64)
    sets = [set(map(tuple, part.tolist())) for part in (fitted, judged)]
    assert sets[0] | sets[1] == set(map(tuple, values.tolist()))
    assert not sets[0] & sets[1]
    assert len(sets[1]) == 10
    fitted, judged = (np.asarray(part) for part in _disjoint(values, 32))
    np.testing.assert_array_equal(fitted, values[:32])
    np.testing.assert_array_equal(judged, values[32:])
    with pytest.raises(ValueError, match="two states or more"):
        _disjoint(values[np.zeros(9, int)], 8)


def test_noise_of_estimates_is_in_neither_error_nor_spread():
    random = np.random.default_rng(0)
    truth, one, other = random.normal(size=(3, 100_000))
    found = root_mean_product(*(jnp.asarray(0.1 * truth + noise) for noise in (one, other)))
    assert float(found) == pytest.approx(0.1, rel=0.25)
    assert float(root_mean_product(jnp.ones(3), -jnp.ones(3))) == 0
