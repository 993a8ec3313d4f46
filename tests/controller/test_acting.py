"""Acting by NumPy and many episodes at once give what JAX gives step by step."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from controllers_for_tests import with_filter, without_filter
from numpy.random import Generator

import empowerment.environments  # noqa: F401 (registers them)
from empowerment.agent import PolicyActor, TrainedAgent, play, play_many, states_of
from empowerment.agent.evaluation import _filtered
from empowerment.agent.simulation import _episodes
from empowerment.channel.base import Inputs
from empowerment.channel.linearised import Linearised
from empowerment.data import Episode, RandomActor, spaces_of
from empowerment.model import DVBF, Filter
from empowerment.policy import Policy
from empowerment.worlds import Bounded

SEED, STEPS, AGENTS = 3, 20, 2


def agent_of(policy: Policy, world: Bounded, model: DVBF | None, num_agents: int) -> TrainedAgent:
    inputs = Inputs(world.states, jnp.asarray(np.eye(world.states.size), float))
    channel = Linearised(inputs=inputs, steps=1, action_size=world.actions.size)
    return TrainedAgent(world, channel, None, policy, model, num_agents)


def by_jax(
    agent: TrainedAgent, observations: np.ndarray, actions: Sequence[np.ndarray], *, sample: bool
) -> tuple[np.ndarray, np.ndarray]:
    """States of all agents and their actions, one time after the other."""
    own, count = Filter(agent.model), agent.num_agents  # pyright: ignore[reportArgumentType]
    init, update = jax.jit(jax.vmap(own.init)), jax.jit(jax.vmap(own.update))

    @jax.jit
    @jax.vmap
    def act(state: jax.Array, key: jax.Array) -> jax.Array:
        choice = agent.policy(state)
        return agent.world.squash(choice.sample(key=key) if sample else choice.mean)

    choices, found, encoded, states = agent.world.actions.choices, [], None, None
    for time, row in enumerate(observations.reshape(len(observations), count, -1)):
        if states is None:
            states = init(jnp.repeat(row[:, None], own.model.num_initial, axis=1))
        else:
            taken = actions[time - 1].reshape(count, -1)
            if choices:
                parts = [np.eye(n)[taken[:, i].astype(int)] for i, n in enumerate(choices)]
                taken = np.concatenate(parts, axis=1)
            states = update(states, jnp.asarray(taken, float), jnp.asarray(row))
        encoded = act(
            states, jax.random.split(jax.random.fold_in(jax.random.key(SEED), time), count)
        )
        if choices:
            parts = np.split(np.asarray(encoded), np.cumsum(choices)[:-1], axis=1)
            encoded = np.stack([part.argmax(1) for part in parts], axis=1)
        found.append((np.asarray(states), np.asarray(encoded).ravel()))
    return np.concatenate([each[0] for each in found]), np.stack([each[1] for each in found])


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("sizes", [{"num_initial": 2}, {"choices": (3, 2)}], ids=["box", "choices"])
def test_actions_and_states_are_those_of_jax(sizes: dict, sample: Any, random: Generator):
    policy, world, model = with_filter(random, **sizes)
    agent = agent_of(policy, world, model, AGENTS)
    actor = agent.actor(sample=sample)
    observations = random.normal(size=(STEPS + 1, AGENTS * 5)).astype(np.float32)
    observations[7, 0] = np.nan  # The first agent sees nothing then, the second one does.
    actor.reset(seed=SEED)
    actions = []
    for time, row in enumerate(observations):
        actions.append(actor(row))
        if time == 4:
            actions[-1] = actions[-1][::-1].copy() * 0  # Another action than the actor's own.
            actor.override(actions[-1])
    states, expected = by_jax(agent, observations, actions, sample=sample)
    expected[4] = 0
    np.testing.assert_allclose(actions, expected, rtol=1e-3, atol=1e-4)
    before = _filtered._cached._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    whole = Episode(observations, np.stack(actions[:-1]), terminated=False, truncated=True)
    part = whole.part(0, 5)
    estimates = states_of(agent, [whole, part])
    np.testing.assert_allclose(estimates[: len(states)], states, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(estimates[len(states) :], states[: 6 * AGENTS], rtol=1e-4, atol=1e-4)
    states_of(agent, [part, whole])
    after = _filtered._cached._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    assert after <= before + 1


def test_nothing_is_known_before_anything_finite_is_seen(random: Generator):
    policy, world, model = with_filter(random)
    for actor in (PolicyActor(policy, world, model), PolicyActor(*without_filter(random))):
        actor.reset(seed=0)
        size = 5 if actor._about.latent_size else 2
        assert np.isnan(actor(np.full(size, np.nan))).all()
        assert np.isfinite(actor(np.zeros(size))).all()


def test_episodes_at_once_are_those_of_the_environment(random: Generator):
    environment = gymnasium.make("empowerment/Pendulum-v0", max_episode_steps=STEPS)
    agent = agent_of(*without_filter(random), None, 1)
    spaces = spaces_of(environment, "the pendulum")
    starts = random.uniform(-1, 1, (2, 2))
    before = _episodes._cached._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    for actor in (agent.actor(), agent.actor(sample=True), RandomActor(spaces)):
        for given in (None, starts):
            found = play_many(agent, environment, actor, seeds=[SEED, SEED + 1], starts=given)
            for index, one in enumerate(found):
                state = None if given is None else given[index]
                other = play(environment, actor, seed=SEED + index, state=state)
                assert one.length == STEPS
                assert (one.terminated, one.truncated) == (other.terminated, other.truncated)
                np.testing.assert_allclose(one.actions, other.actions, atol=1e-4)
                np.testing.assert_allclose(one.observations, other.observations, atol=1e-4)
    after = _episodes._cached._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    assert after <= before + 1


def test_what_watches_or_changes_an_episode_is_played_step_by_step(random: Generator):
    agent = agent_of(*without_filter(random), None, 1)
    environment = gymnasium.make("empowerment/Pendulum-v0", max_episode_steps=3)
    count = []
    before_step = lambda: count.append(None)  # noqa: E731
    list(play_many(agent, environment, agent.actor(), seeds=[0], before_step=before_step))
    assert len(count) == 3
    negated = gymnasium.wrappers.TransformAction(
        environment, lambda action: -action, environment.action_space
    )
    given = {"seeds": [0], "starts": np.array([[0.5, 0.0]])}
    one = next(play_many(agent, environment, agent.actor(), **given))
    other = next(play_many(agent, negated, agent.actor(), **given))
    np.testing.assert_allclose(one.actions[0], other.actions[0], atol=1e-5)
    assert np.abs(one.observations[1] - other.observations[1]).max() > 1e-3
