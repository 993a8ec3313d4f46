"""A known world as the source of a reward: the empowerment that it really has."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import empowerment as emp
from empowerment.controller.reward_source import read_source
from empowerment.controller.world_bundle import STEPS


class Rail(emp.AbstractWorld):
    """A point on a rail, whose ends it cannot leave."""

    @property
    def states(self) -> emp.Box:
        return emp.Box([-1.0], [1.0], ("x",))

    @property
    def actions(self) -> emp.Box:
        return emp.Box([-0.5], [0.5], ("push",))

    def initial(self) -> emp.Uniform:
        return self.states.uniform()

    def transition(self, state: jax.Array, action: jax.Array) -> emp.Gaussian:
        return emp.Gaussian(jnp.clip(state + 0.2 * action, -1, 1), jnp.zeros(1))

    def emission(self, state: jax.Array) -> emp.Gaussian:
        return emp.Gaussian(state, jnp.full(1, 0.1))


@pytest.mark.slow
def test_a_world_pays_what_its_states_have(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("empowerment.controller.world_bundle._UPDATES", 1000)
    env = emp.EmpowermentReward(emp.WorldEnv(Rail()), Rail())
    paid, exact = [], []
    for x in (-0.95, -0.7, 0.0, 0.6, 0.95):
        paid.append(env.reset(options={"state": [x]})[1]["empowerment"])
        at = jnp.array([x])
        exact.append(emp.exact_empowerment(Rail(), at, steps=STEPS, key=jax.random.key(0)).value)
    assert np.ptp(exact) > 0.2
    np.testing.assert_allclose(paid, exact, atol=0.07)


def test_what_only_looks_like_a_world_is_refused():
    class Other:
        transition = emission = None

    with pytest.raises(ValueError, match="continuous states; got Other"):
        read_source(Other(), 2)
    with pytest.raises(ValueError, match=r"a world; got Grid|continuous states; got Grid"):
        read_source(emp.WORLDS["maze"](), 1)


def test_a_world_with_other_observations_is_refused_before_it_is_trained_in():
    with pytest.raises(ValueError, match="the 2 numbers of the state of the world; got 3"):
        emp.EmpowermentReward(gymnasium.make("Pendulum-v1"), emp.Pendulum())
