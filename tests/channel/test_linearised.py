"""The linearised channel as a family: a closed form, no bound, nothing to train."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.capacity import UNIFORM_POWER, gaussian_empowerment
from empowerment.channel import (
    Linearised,
    certify,
    channel_like,
    empowerment,
    make_channel,
    train_channel,
)
from empowerment.worlds import Bounded, Chain, Pendulum

WORLD = Bounded(Pendulum())


@pytest.fixture(scope="module")
def channel() -> Linearised:
    made = make_channel(WORLD, family="linearised", steps=3, key=jax.random.key(0))
    assert isinstance(made, Linearised)
    return made


@pytest.mark.parametrize("state", [(0.0, 0.0), (3.0, -1.0)])
def test_value_is_the_closed_form_of_the_world_itself(channel: Linearised, state, getkey):
    """The squash has the slope of half the range at the centre, so that powers are the same."""
    place = jnp.array(state)
    found = empowerment(channel, WORLD, place, key=getkey())
    wanted = gaussian_empowerment(Pendulum(), place, steps=3)
    assert float(found.value) == pytest.approx(float(wanted), rel=1e-4)
    assert float(found.standard_error) == 0


def test_there_is_nothing_to_train(channel: Linearised, getkey):
    trained = train_channel(channel, WORLD, num_updates=100, key=getkey())
    assert trained.model is channel
    assert trained.stopped == "there is nothing to train"
    assert trained.history[-1][0] == 0
    assert trained.history[-1][1]["bound"] > 0


def test_an_approximation_is_not_certified(channel: Linearised, getkey):
    with pytest.raises(ValueError, match="got the linearised channel, an approximation"):
        certify(channel, WORLD, jnp.zeros(2), key=getkey())


def test_plans_have_the_power_that_is_counted(channel: Linearised, getkey):
    plans, log_weights = channel.draw_many(jnp.zeros(2), 4000, key=getkey())
    assert plans.shape == (4000, 3, 1)
    assert float(jnp.mean(plans**2)) == pytest.approx(UNIFORM_POWER, rel=0.1)
    assert float(jnp.exp(log_weights).sum()) == pytest.approx(1)
    assert channel.draw(jnp.zeros(2), key=getkey()).shape == (3, 1)


def test_a_stored_one_is_made_again(channel: Linearised):
    arrays = {".inputs.whitener": np.eye(2)}
    like = channel_like(WORLD, arrays, family="linearised", steps=3)
    assert jax.tree.structure(like) == jax.tree.structure(channel)


def test_large_capacities_have_no_ceiling_and_slopes():
    """Upright is worth more than any code book of a thousand plans can say."""
    world = Bounded(Chain())
    channel = make_channel(world, family="linearised", steps=20, key=jax.random.key(0))
    value = jax.jit(lambda state: channel.information(world, state, key=jax.random.key(0)))
    assert float(value(jnp.zeros(4))) > np.log(1024)
    assert float(value(jnp.array([jnp.pi, 0, 0, 0]))) == pytest.approx(3.5, abs=0.1)
    assert np.isfinite(jax.jit(jax.grad(value))(jnp.array([0.3, 0.1, 0.0, 0.0]))).all()
