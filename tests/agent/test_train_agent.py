"""An agent in a few lines, without a folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import empowerment as emp
from empowerment.agent import AgentSettings, evaluate_policy, train_agent
from empowerment.channel import empowerment_at
from empowerment.optimise import SILENT
from empowerment.runs import Experiment, load_agent, train_run

TINY = AgentSettings(
    steps=1,
    channel_updates=100,
    bound_states=64,
    policy_updates=100,
    horizon=2,
    num_starts=2,
    width=8,
    depth=1,
)


class Slider(emp.AbstractWorld):
    """A world of one's own: a point on a rail, pushed."""

    @property
    def states(self) -> emp.Box:
        return emp.Box([-1.0], [1.0], ("x",))

    @property
    def actions(self) -> emp.Box:
        return emp.Box([-0.5], [1.5], ("push",))

    def initial(self) -> emp.Uniform:
        return self.states.uniform()

    def transition(self, state: jax.Array, action: jax.Array) -> emp.Gaussian:
        return emp.Gaussian(jnp.clip(state + 0.2 * action, -1, 1), jnp.zeros(1))

    def emission(self, state: jax.Array) -> emp.Gaussian:
        return emp.Gaussian(state, jnp.full(1, 0.05))


@pytest.fixture(scope="module")
def agent(short_fit: None) -> emp.TrainedAgent:
    return train_agent(Slider(), TINY, key=jax.random.key(0))


def test_a_world_of_ones_own_gets_a_policy(agent: emp.TrainedAgent):
    for x in (-1.0, 0.0, 1.0):
        assert -0.5 <= float(agent.act(jnp.array([x]))[0]) <= 1.5
    assert isinstance(agent.world, emp.Bounded)
    assert agent.surrogate is not None
    actor = agent.actor()
    actor.reset(seed=0)
    np.testing.assert_allclose(actor(np.zeros(1)), agent.act(jnp.zeros(1)), rtol=1e-5)


class Store:
    """Hooks that keep the results of stages, or return those that are given."""

    def __init__(self, stored: dict[str, Any]):
        self.stored, self.seen = stored, {}

    def stage(self, name: str, like: Any, train: Callable) -> Any:
        self.seen[name] = self.stored.get(name) or train(SILENT)[0]
        assert jax.tree.structure(self.seen[name]) == jax.tree.structure(like)
        return self.seen[name]


def test_hooks_see_every_stage_and_may_replace_it(agent: emp.TrainedAgent):
    first = Store({})
    train_agent(Slider(), TINY, hooks=first, key=jax.random.key(0))
    assert list(first.seen) == ["channel", "surrogate", "policy"]
    again = Store({name: first.seen[name] for name in ("channel", "surrogate")})
    trained = train_agent(Slider(), TINY, hooks=again, key=jax.random.key(0))
    assert again.seen["surrogate"] is first.seen["surrogate"]
    assert eqx.tree_equal(trained.policy, agent.policy)


@pytest.mark.slow
def test_the_bound_is_fitted_after_joint_training_too(short_fit: None):
    settings = replace(TINY, joint=True, family="paper", critic=False, bound_states=256)
    store = Store({})
    agent = train_agent(Slider(), settings, hooks=store, key=jax.random.key(0))
    assert list(store.seen) == ["channel", "policy", "surrogate"]
    assert agent.surrogate is not None
    assert not eqx.tree_equal(agent.channel, store.seen["channel"])  # That of the policy's stage.
    states = jnp.linspace(-0.9, 0.9, 7)[:, None]
    keys = jax.random.split(jax.random.key(1), 7)
    bounds = empowerment_at(agent.channel, agent.world, states, keys, num_samples=256, batch_size=7)
    error = np.asarray(jax.vmap(agent.surrogate)(states) - bounds)
    assert np.sqrt(np.mean(error**2)) < 0.15


def test_an_evaluation_says_how_far_the_surrogate_is_off(agent: emp.TrainedAgent):
    assert agent.surrogate is not None
    known = agent.surrogate.mean
    errors = []
    for shift in (0.0, 3.0):
        moved = eqx.tree_at(lambda fit: fit.mean, agent.surrogate, known + shift)
        found = evaluate_policy(
            replace(agent, surrogate=moved),
            gymnasium.wrappers.TimeLimit(emp.WorldEnv(Slider()), 50),
            episodes=1,
            seed=0,
        )
        figures = found["policy"].figures
        errors.append([figures[f"surrogate_{where}_error"] for where in ("visited", "best")])
    assert max(errors[0]) < 1
    assert errors[1] == pytest.approx([3, 3], abs=1)


@pytest.mark.slow
def test_the_command_and_the_library_train_alike(tmp_path: Path):
    experiment = Experiment(world="pendulum", agent=TINY)
    run = train_run(experiment, folder=tmp_path / "run", seed=5)
    alone = train_agent(emp.Pendulum(), TINY, key=jax.random.key(5))
    assert eqx.tree_equal(run.agent.policy, alone.policy)
    assert eqx.tree_equal(run.agent.channel, alone.channel)


def test_settings_are_checked_first():
    with pytest.raises(ValueError, match="steps to be at least 1; got 0"):
        train_agent(Slider(), AgentSettings(steps=0), key=jax.random.key(0))


@pytest.mark.slow
def test_a_joint_run_has_a_bound_and_keeps_it(tmp_path: Path):
    agent = replace(TINY, joint=True, family="paper", critic=False)
    run = train_run(Experiment(world="pendulum", agent=agent), folder=tmp_path, seed=5)
    assert eqx.tree_equal(load_agent(tmp_path).surrogate, run.agent.surrogate)
    value = emp.EmpowermentReward(gymnasium.make("empowerment/Pendulum-v0"), tmp_path)
    observation, info = value.reset(seed=0)
    assert run.agent.surrogate is not None
    wanted = run.agent.surrogate(jnp.asarray(observation, float))
    assert info["empowerment"] == pytest.approx(float(wanted), abs=1e-5)
