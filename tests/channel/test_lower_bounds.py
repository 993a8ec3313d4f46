"""No lower bound is above the truth, whatever the world."""

import math
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.odd_worlds import Blend, Foggy, Murky, Product, Scalar, Squash, truth

from empowerment.channel import (
    AbstractChannel,
    Channel,
    Codebook,
    ceiling,
    choice,
    empowerment,
    empowerment_at,
    is_at_ceiling,
    make_channel,
    train_channel,
)
from empowerment.channel.source import IntentSource
from empowerment.worlds import AbstractWorld, Bounded, Pendulum


def blend(seed: int, *, is_noisy: bool, is_affine: bool) -> Blend:
    coefficients = np.random.default_rng(seed).uniform(-1, 1, 7)
    return Blend(coefficients=coefficients, is_noisy=is_noisy, is_affine=is_affine)


CASES = [
    pytest.param(Squash(), 1, 1, id="squash"),
    pytest.param(
        blend(1, is_noisy=True, is_affine=False),
        1,
        2,
        id="curved, two steps",
        marks=pytest.mark.slow,
    ),
]
MORE = [
    pytest.param(Murky(), 2, 1, id="murky, two axes", marks=pytest.mark.slow),
    pytest.param(Foggy(), 3, 1, id="foggy, three axes", marks=pytest.mark.slow),
    *(
        pytest.param(
            blend(seed, is_noisy=is_noisy, is_affine=is_affine),
            axes,
            steps,
            id=f"{seed}-{axes}-{steps}",
            marks=pytest.mark.slow,
        )
        for seed, (is_noisy, is_affine, axes, steps) in enumerate(
            (noisy, affine, axes, steps)
            for noisy in (True, False)
            for affine in (True, False)
            for axes in (1, 2, 3, 4)
            for steps in (1, 2, 3)
        )
    ),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("world", "axes", "steps"), CASES + MORE)
def test_bounds_stay_below_brute_force(world: AbstractWorld, axes: int, steps: int, getkey):
    """Three standard errors at two states: one false alarm in 400 runs if the bound is tight."""
    given = Bounded(world if axes == 1 else Product(world, axes))
    channel = make_channel(given, family="codebook", steps=steps, width=16, key=getkey())
    trained = train_channel(channel, given, num_updates=150, batch_size=8, key=getkey()).model
    actions = {1: 101, 2: 25, 3: 13}[steps]
    for place in (-0.6, 0.3):
        upper = axes * truth(world, place, steps=steps, num_actions=actions, cells=400)[1]
        found = empowerment(trained, given, jnp.full(axes, place), key=getkey())
        assert float(found.standard_error) < 0.01
        # Cells of the brute force lose up to two thousandths on each axis.
        allowed = upper + 0.002 * axes + 3 * float(found.standard_error)
        assert float(found.value) <= allowed
        assert float(found.value) > 0.3 * upper  # otherwise it would bound nothing


@pytest.mark.statistical
def test_values_in_four_axes_agree_between_keys(getkey):
    """Untrained, so that codes overlap and the noise matters."""
    world = Bounded(Product(Scalar(noise=0.6), 4))
    channel = make_channel(world, family="codebook", steps=1, width=16, key=getkey())
    assert isinstance(channel, Codebook)
    channel = eqx.tree_at(lambda made: made.head.weight, channel, 5 * channel.head.weight)
    found = [empowerment(channel, world, jnp.zeros(4), key=getkey()) for _ in range(20)]
    values = np.array([float(each.value) for each in found])
    assert 0.2 < values.mean() <= 4 * truth(Scalar(noise=0.6), 0.0, cells=500)[1]
    assert values.std() < 0.015
    assert all(float(each.standard_error) < 0.01 for each in found)
    # No estimate of few draws is far off either: a network is fitted to thousands of those.
    keys = jax.random.split(getkey(), 512)
    few = empowerment_at(channel, world, jnp.zeros((512, 4)), keys, num_samples=1, batch_size=64)
    assert jnp.abs(few - values.mean()).max() < 0.2


def test_a_bound_at_its_ceiling_is_told(getkey):
    world = Bounded(Product(Scalar(noise=0.01), 4))  # worth 16 nats
    channel = make_channel(world, family="codebook", steps=1, width=16, key=getkey())
    assert isinstance(channel, Codebook)
    assert ceiling(channel) == pytest.approx(math.log(len(channel.intents)))
    values = ceiling(channel) - np.array([0.01, 1.0])
    assert is_at_ceiling(channel, values).tolist() == [True, False]
    # Codes that are all told apart carry just that.
    apart = eqx.tree_at(lambda made: made.head.weight, channel, 4 * channel.head.weight)
    apart = eqx.tree_at(lambda made: made.head.weight, apart, apart.head.weight.at[-1].set(0.0))
    found = float(empowerment(apart, world, jnp.zeros(4), key=getkey()).value)
    assert found <= ceiling(channel) + 1e-3
    assert is_at_ceiling(channel, np.array([found])).all()


def test_auto_takes_the_tighter_family(monkeypatch: pytest.MonkeyPatch):
    def judge(channel: AbstractChannel, world: Bounded, states: jax.Array, keys: jax.Array):
        return jnp.full(len(states), 1.0 if isinstance(channel, Codebook) else better)

    def untrained(channel: AbstractChannel, world: Bounded, **_: object) -> SimpleNamespace:
        return SimpleNamespace(model=channel)

    monkeypatch.setattr(choice, "empowerment_at", judge)
    monkeypatch.setattr(choice, "train_channel", untrained)
    noisy = Bounded(Pendulum(process_noise=0.02))
    for better in (0.5, 2.0):
        made = make_channel(noisy, family="auto", steps=2, width=16, key=jax.random.key(0))
        assert isinstance(made, Codebook) == (better < 1)
    assert isinstance(made, Channel)
    assert isinstance(made.source, IntentSource)
