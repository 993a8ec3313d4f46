"""The pendulum: held or not, and how soon."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.policy import Policy
from empowerment.systems.pendulum import describe, hanging_starts, imagined_held, time_to_upright
from empowerment.types import State
from empowerment.worlds import Ball, Bounded, Pendulum

WORLD = Bounded(Pendulum())


def always(torque: float, key) -> Policy:
    """A policy that pushes with the same torque wherever it is."""
    policy = Policy(WORLD.states, 1, width=4, depth=1, key=key)
    push = jnp.array([jnp.arctanh(torque / 2), 0.0])
    return eqx.tree_at(
        lambda p: (p.network.layers[-1].weight, p.network.layers[-1].bias),
        policy,
        (jnp.zeros((2, 4)), push),
    )


def test_a_limp_pendulum_is_not_held_upright_but_ends_up_hanging(getkey):
    limp, key = always(0.0, getkey()), getkey()
    assert describe(limp, WORLD) == ", 0% held"

    def is_low(state: State):
        return jnp.cos(state[0]) < 0.9

    assert float(imagined_held(limp, WORLD, is_low, key=key)) == pytest.approx(1.0, abs=0.1)


def test_the_share_is_counted_over_starts(getkey):
    """Whoever starts with a positive angle and stays there: about half."""
    still = Bounded(Pendulum(gravity=0.0, max_speed=1e-3))
    share = imagined_held(always(0.0, getkey()), still, lambda state: state[0] > 0, key=getkey())
    assert 0.2 < float(share) < 0.8


def test_nothing_is_said_where_holding_means_nothing(getkey):
    world = Bounded(Ball())
    assert describe(Policy(world.states, 2, width=4, depth=1, key=getkey()), world) == ""


def test_time_to_upright():
    path = np.zeros((10, 2))
    assert time_to_upright(path, 0.05) == 0
    path[:4, 0] = 1
    assert time_to_upright(path, 0.05) == pytest.approx(0.2)
    path[6, 0] = -1
    assert time_to_upright(path, 0.05) == pytest.approx(0.35)
    path[-1, 0] = 1
    assert time_to_upright(path, 0.05) == np.inf
    starts = hanging_starts(50, 0)
    assert np.all(np.abs(np.abs(starts[:, 0]) - np.pi) < 0.06)
    assert np.all(np.abs(starts[:, 0]) <= np.pi)
    assert time_to_upright(np.array([[1.0, 0], [0, 0]]), 0.1) == pytest.approx(0.1)
