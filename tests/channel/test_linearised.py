"""The linearised channel as a family: a closed form, no bound, nothing to train."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.odd_worlds import Scalar

from empowerment.capacity import UNIFORM_POWER, exact_empowerment, gaussian_empowerment
from empowerment.channel import (
    Linearised,
    certify,
    channel_like,
    empowerment,
    make_channel,
    train_channel,
)
from empowerment.distributions import Gaussian
from empowerment.types import Action, State
from empowerment.worlds import Bounded, Chain, Pendulum
from empowerment.worlds.base import as_array

WORLD = Bounded(Pendulum())


@pytest.fixture(scope="module")
def channel() -> Linearised:
    made = make_channel(WORLD, family="linearised", steps=3, key=jax.random.key(0))
    assert isinstance(made, Linearised)
    return made


@pytest.mark.parametrize("state", [(0.0, 0.0), (3.0, -1.0)])
def test_value_is_the_closed_form_where_the_world_is_nearly_linear(
    channel: Linearised, state, getkey
):
    """In three steps a pendulum hardly bends, and the squash does not count."""
    place = jnp.array(state)
    found = empowerment(channel, WORLD, place, key=getkey())
    wanted = gaussian_empowerment(Pendulum(), place, steps=3)
    assert float(found.value) == pytest.approx(float(wanted), abs=2e-3)
    assert 0 < float(found.standard_error) < 1e-3


class Bent(Scalar):
    """Successor u + u^3 or tanh(2 u): slopes that differ between plans, little noise."""

    noise: jax.Array = eqx.field(default=0.02, converter=as_array)
    grows: bool = True

    def transition(self, state: State, action: Action) -> Gaussian:
        after = action + action**3 if self.grows else jnp.tanh(2 * action)
        return Gaussian(0 * state + after, jnp.zeros(1))


@pytest.mark.parametrize("world", [Bent(grows=True), Bent(grows=False)], ids=["grows", "ends"])
def test_plans_off_the_centre_count(world: Bent, getkey):
    """What the futures of all plans carry is nearer to the truth than what those at rest do."""
    state = jnp.zeros(1)
    channel = make_channel(Bounded(world), family="linearised", steps=1, key=getkey())
    found = float(empowerment(channel, Bounded(world), state, key=getkey()).value)
    centre = float(gaussian_empowerment(world, state, steps=1))
    truth = exact_empowerment(world, state, steps=1, key=getkey()).value
    # The entropy of uniform plans plus the mean logarithm of the slope, by quadrature, under the
    # power of a uniform action.
    pushes = np.linspace(-1, 1, 20001)
    slopes = 1 + 3 * pushes**2 if world.grows else 2 / np.cosh(2 * pushes) ** 2
    wanted = np.mean(0.5 * np.log1p((slopes / 0.02) ** 2 / 3))
    assert found == pytest.approx(wanted, abs=0.03)
    assert abs(found - truth) < 0.5 * abs(centre - truth)


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
    assert float(jnp.mean(jnp.tanh(plans) ** 2)) == pytest.approx(UNIFORM_POWER, rel=0.05)
    assert float(jnp.exp(log_weights).sum()) == pytest.approx(1)
    assert channel.draw(jnp.zeros(2), key=getkey()).shape == (3, 1)


def test_a_stored_one_is_made_again(channel: Linearised):
    arrays = {".inputs.whitener": np.eye(2)}
    like = channel_like(WORLD, arrays, family="linearised", steps=3)
    assert jax.tree.structure(like) == jax.tree.structure(channel)


def test_large_capacities_have_no_ceiling(getkey):
    """Upright is worth more than any code book of a thousand plans can say."""
    world = Bounded(Chain())
    channel = make_channel(world, family="linearised", steps=30, key=jax.random.key(0))
    keys = jax.random.split(getkey(), 16)

    def value(state: State) -> jax.Array:
        return jax.vmap(lambda key: channel.information(world, state, key=key))(keys).mean()

    states = jnp.array([[0, 0, 0, 0], [jnp.pi, 0, 0, 0]])
    upright, hanging = jax.jit(jax.vmap(value))(states)
    assert float(upright) > np.log(1024)
    assert float(hanging) == pytest.approx(4.04, abs=0.1)


def test_value_has_slopes(channel: Linearised, getkey):
    """What training ascends is what differences say."""
    key, off = getkey(), jnp.array([1e-2, 0.0])
    value = jax.jit(lambda state: channel.information(WORLD, state, key=key))
    place = jnp.array([1.0, 0.5])
    slope = jax.jit(jax.grad(value))(place)[0]
    wanted = (value(place + off) - value(place - off)) / (2 * off[0])
    assert float(slope) == pytest.approx(float(wanted), rel=0.02, abs=1e-4)
