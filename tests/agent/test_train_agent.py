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
from empowerment.optimise import SILENT
from empowerment.runs import Experiment, train_run

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


def test_hooks_see_every_stage_and_may_replace_it(agent: emp.TrainedAgent):
    class Store:
        def __init__(self, stored: dict[str, Any]):
            self.stored, self.seen = stored, {}

        def stage(self, name: str, like: Any, train: Callable) -> Any:
            self.seen[name] = self.stored.get(name) or train(SILENT)[0]
            assert jax.tree.structure(self.seen[name]) == jax.tree.structure(like)
            return self.seen[name]

    first = Store({})
    train_agent(Slider(), TINY, hooks=first, key=jax.random.key(0))
    assert list(first.seen) == ["channel", "surrogate", "policy"]
    again = Store({name: first.seen[name] for name in ("channel", "surrogate")})
    trained = train_agent(Slider(), TINY, hooks=again, key=jax.random.key(0))
    assert again.seen["surrogate"] is first.seen["surrogate"]
    assert eqx.tree_equal(trained.policy, agent.policy)


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
