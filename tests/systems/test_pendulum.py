"""The pendulum: held or not, and how soon."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.data import Episode
from empowerment.environments import EnvFactory
from empowerment.policy import Policy
from empowerment.systems import system_of
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


@pytest.mark.parametrize("repeat", [1, 2, 5])
@pytest.mark.parametrize("name", ["Pendulum-v1", "empowerment/Pendulum-v0"])
def test_the_last_five_seconds_are_five_seconds(name: str, repeat: int):
    """An episode that stands for its last 5 s is held, one that fell 4.9 s before its end not."""
    system, rows = system_of(name), round(20 / (0.05 * repeat))
    environment = EnvFactory(name, repeat)()
    angle = np.zeros(rows + 1)
    angle[: round(15 / (0.05 * repeat))] = 1.0

    def held(angle: np.ndarray) -> float:
        direction = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
        seen = direction if name == "Pendulum-v1" else np.stack([angle, 0 * angle], axis=1)
        episode = Episode(seen, np.zeros((rows, 1)), terminated=False, truncated=True)
        return system.metrics([episode], environment, ())["held_fraction"]

    assert held(angle) == 1
    angle[-round(4.9 / (0.05 * repeat))] = 1.0
    assert held(angle) == 0
    environment.close()


def test_what_is_measured_is_said():
    figures = {"held_fraction": 0.25, "uniform": {"held_fraction": 0.0}}
    (sentence,) = system_of("Pendulum-v1").summary(figures)
    assert "25% of episodes (random: 0%)" in sentence
    (sentence,) = system_of("empowerment/Pendulum-v0").summary(
        figures | {"time_to_upright_median_s": None}
    )
    assert "does not swing up" in sentence
