"""The length of plans, from how fast differences grow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from empowerment.agent import AgentSettings, with_steps
from empowerment.channel import plan_length
from empowerment.runs import PRESETS
from empowerment.runs.experiment import Experiment
from empowerment.worlds import Ball, Bounded, Box, CartPole, Chain, LinearGaussian, Pendulum


def linear(dynamics: jax.Array, resolution: jax.Array) -> LinearGaussian:
    """Build a linear world without process noise."""
    ones = jnp.ones(2)
    states = Box(-ones, ones, ("first", "second"))
    actions = Box(-ones, ones, ("one", "other"))
    return LinearGaussian(
        dynamics, jnp.eye(2), jnp.eye(2), 0 * ones, resolution, states=states, actions=actions
    )


def growing(factor: float) -> LinearGaussian:
    """Build a world in which every difference grows by the same factor in a step."""
    return linear(factor * jnp.eye(2), jnp.array([0.1, 0.3]))


@pytest.mark.parametrize(
    ("factor", "steps"), [(10.0, 1), (2.83, 2), (2.01, 3), (1.3, 8), (1.0, 16), (0.5, 16)]
)
def test_a_plan_lasts_until_differences_are_eight_times_as_large(factor: float, steps: int, getkey):
    assert plan_length(growing(factor), key=getkey()) == steps
    assert plan_length(Bounded(growing(factor)), key=getkey()) == steps


def test_the_units_of_a_state_do_not_matter(getkey):
    key = getkey()
    shear = jnp.array([[1.2, 1.0], [0.0, 1.2]])
    scale = jnp.diag(jnp.array([1.0, 1000.0]))
    found = [
        plan_length(linear(change, noise), key=key)
        for change, noise in (
            (shear, jnp.array([0.1, 0.1])),
            (scale @ shear @ jnp.linalg.inv(scale), jnp.array([0.1, 100.0])),
        )
    ]
    assert found[0] == found[1] < 8


def test_fast_systems_have_short_plans(getkey):
    assert plan_length(CartPole(), key=getkey()) < plan_length(Ball(), key=getkey())


@pytest.mark.slow
def test_faster_systems_have_shorter_plans(getkey):
    triple = Chain(num_links=3, driven=(0, 1, 2), max_torque=25.0, damping=1.0)
    lengths = [plan_length(world, key=getkey()) for world in (triple, Chain(), Ball())]
    assert lengths[0] < lengths[1] < lengths[2]


def test_a_state_that_cannot_be_perceived_is_refused(getkey):
    blind = eqx.tree_at(
        lambda w: (w.observation, w.resolution), growing(2.0), (jnp.ones((1, 2)), jnp.ones(1))
    )
    with pytest.raises(ValueError, match=r"as many axes as its state has.*got 1 of 2"):
        plan_length(blind, key=getkey())


def test_a_number_is_left_as_it_is_and_auto_is_replaced():
    world = Bounded(Pendulum())
    assert with_steps(AgentSettings(steps=3), world).steps == 3
    chosen = with_steps(AgentSettings(steps="auto"), world)
    assert chosen.num_steps == plan_length(world, key=jax.random.key(0))
    with pytest.raises(ValueError, match="Expected the number of steps"):
        _ = AgentSettings(steps="auto").num_steps


def test_a_learnt_world_needs_a_number():
    experiment = Experiment(env="Pendulum-v1", agent=AgentSettings(steps="auto"))
    with pytest.raises(ValueError, match="where the world is learnt; got auto"):
        experiment.check()


def test_rods_choose_the_length_of_their_plans():
    for name in ("cart-pole", "double-pendulum", "triple-pendulum"):
        assert PRESETS[name].experiment.agent.steps == "auto"
