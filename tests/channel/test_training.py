import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from empowerment.channel import information_bound, make_channel, train_channel as train
from empowerment.channel.training import init, sample_states, step
from empowerment.errors import DivergedError
from empowerment.worlds import Bounded, Pendulum

WORLD = Bounded(Pendulum())


@pytest.fixture
def channel(getkey):
    return make_channel(WORLD, family="codebook", steps=1, width=16, key=getkey())


def test_updates_raise_the_bound(channel, getkey):
    trained = train(channel, WORLD, num_updates=200, batch_size=8, key=getkey())
    updates, diagnostics = zip(*trained.history, strict=True)
    bounds = [each["bound"] for each in diagnostics]
    assert updates == (0, 100, 200)
    assert bounds[-1] > bounds[0] + 0.5
    assert trained.stopped == "the budget is spent"


def test_training_stops_when_the_bound_has_settled(channel, getkey):
    # A learning rate of nearly nothing: the bound stands still from the start.
    trained = train(
        channel,
        WORLD,
        num_updates=400,
        updates_per_call=20,
        batch_size=4,
        learning_rate=1e-9,
        key=getkey(),
    )
    assert trained.stopped == "the bound has settled"
    assert trained.history[-1][0] < 400


def test_calls_compile_once(channel, getkey):
    state = init(channel, key=getkey())
    before = step._cached._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    for rate in (1e-3, 1e-4, 1e-5):
        rates = jnp.full(5, rate)
        state, _ = step(state, WORLD, learning_rates=rates, batch_size=3)
    assert step._cached._cache_size() == before + 1  # pyright: ignore[reportFunctionMemberAccess]
    assert int(state.num_updates) == 15


def test_same_key_same_channel(channel, getkey):
    key = getkey()
    one = train(channel, WORLD, num_updates=20, batch_size=4, key=key).model
    two = train(channel, WORLD, num_updates=20, batch_size=4, key=key).model
    assert eqx.tree_equal(one, two)


def test_what_cannot_be_is_refused(channel, getkey):
    with pytest.raises(DivergedError, match=r"below the capacity of 0\.100 nats"):
        train(channel, WORLD, num_updates=200, batch_size=8, ceiling=0.1, key=getkey())
    broken = eqx.tree_at(lambda c: c.head.weight, channel, jnp.nan * channel.head.weight)
    with pytest.raises(DivergedError, match=r"to stay finite; got .*nan.* by update 100"):
        train(broken, WORLD, num_updates=100, batch_size=8, key=getkey())


def test_half_of_a_batch_is_from_visited_states(getkey):
    visited = jnp.full((3, 2), 100.0)
    states = sample_states(WORLD, visited, 10, key=getkey())
    assert int(jnp.sum(states[:, 0] == 100.0)) == 5
    everywhere = sample_states(WORLD, None, 256, key=getkey())
    low, high = WORLD.states.low[None], WORLD.states.high[None]
    assert bool(jnp.all((everywhere >= low) & (everywhere <= high)))
    assert float(jnp.std(everywhere[:, 1])) > 3


@pytest.mark.slow
def test_bound_is_differentiable_in_the_channel(channel, getkey):
    parameters, rest = eqx.partition(channel, eqx.is_inexact_array)

    def bound(parameters):
        return information_bound(
            eqx.combine(parameters, rest), WORLD, jnp.zeros(2), key=jax.random.key(0)
        )

    gradient = jax.grad(bound)(parameters)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))
    assert float(jnp.abs(gradient.head.weight).max()) > 0
    assert float(jnp.abs(gradient.inputs.whitener).max()) == 0
