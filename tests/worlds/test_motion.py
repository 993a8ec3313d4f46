"""The pendulum, the ball and the cart against numbers worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.worlds import Ball, Pendulum, double_integrator


def test_pendulum_limits_the_velocity_after_the_angle_has_moved():
    """Worked out by hand from the paper's equations, from angle 0.5, velocity 7.9.

    fall = 15 sin(0.5) = 7.191383, drive = 3 (2 - 0.05 * 7.9) = 4.815, so the velocity
    becomes 8.500319 and the angle 0.5 + 0.05 * 8.500319 = 0.925016; then the limit.
    """
    successor = Pendulum().transition(jnp.array([0.5, 7.9]), jnp.array([2.0])).mean
    np.testing.assert_allclose(successor, [0.925016, 8.0], atol=1e-6)


def test_pendulum_without_limits_in_play():
    """From angle -1, velocity 1, torque -0.5: -12.622065 and 3 (-0.5 - 0.05) = -1.65."""
    successor = Pendulum().transition(jnp.array([-1.0, 1.0]), jnp.array([-0.5])).mean
    velocity = 1 + (-12.622065 - 1.65) * 0.05
    np.testing.assert_allclose(successor, [-1 + velocity * 0.05, velocity], atol=1e-6)


def test_pendulum_uses_every_parameter():
    """With g = 4, l = 2, m = 3, friction 0.5, interval 0.1: all by hand.

    fall = 3 sin(1) = 2.524413, drive = 3 / 12 (6 - 0.5 * 2) = 1.25.
    """
    world = Pendulum(
        max_torque=6.0,
        max_speed=2.1,
        friction=0.5,
        gravity=4.0,
        mass=3.0,
        length=2.0,
        interval=0.1,
    )
    successor = world.transition(jnp.array([1.0, 2.0]), jnp.array([7.0])).mean
    velocity = 2 + 0.1 * (2.524413 + 1.25)
    np.testing.assert_allclose(successor, [1 + 0.1 * velocity, 2.1], atol=1e-6)


@pytest.mark.parametrize("torque", [2.0, -2.0])
def test_pendulum_clips_the_torque(torque: float):
    world, state = Pendulum(), jnp.array([2.0, 1.0])
    limit = world.transition(state, jnp.array([torque])).mean
    beyond = world.transition(state, jnp.array([5 * torque])).mean
    np.testing.assert_array_equal(limit, beyond)


@pytest.mark.parametrize("angle", [0.0, np.pi, -np.pi])
def test_pendulum_rests_upright_and_hanging(angle: float):
    state = jnp.array([angle, 0.0])
    successor = Pendulum().transition(state, jnp.zeros(1)).mean
    np.testing.assert_allclose(successor, state, atol=1e-6)


@pytest.mark.parametrize(("angle", "returns"), [(0.1, False), (np.pi + 0.1, True)])
def test_pendulum_falls_from_upright_and_returns_to_hanging(angle: float, returns: bool):  # noqa: FBT001
    velocity = Pendulum().transition(jnp.array([angle, 0.0]), jnp.zeros(1)).mean[1]
    assert (velocity < 0) == returns


def test_pendulum_is_its_own_mirror_image(getkey):
    world = Pendulum()
    state = world.states.uniform().sample(key=getkey())
    action = world.actions.uniform().sample(key=getkey())
    mirrored = world.transition(-state, -action).mean
    np.testing.assert_array_equal(mirrored, -world.transition(state, action).mean)


@pytest.mark.parametrize("max_speed", [0.5, 8.0])
def test_pendulum_starts_no_faster_than_it_may_go(max_speed: float):
    fastest = Pendulum(max_speed=max_speed).initial().high[1]
    assert float(fastest) == min(max_speed, 1.0)


@pytest.mark.parametrize(
    ("position", "move", "expected"),
    [
        ((5.0, 5.0), (0.3, -0.4), (5.3, 4.6)),
        ((0.2, 5.0), (-1.0, 0.7), (0.0, 5.7)),  # slides along the left wall
        ((5.0, 9.9), (-0.6, 1.0), (4.4, 10.0)),  # along the upper wall
        ((10.0, 0.0), (1.0, -1.0), (10.0, 0.0)),  # rests in a corner
        ((0.0, 5.0), (1.0, 0.0), (1.0, 5.0)),  # and leaves a wall freely
        ((5.0, 5.0), (3.0, -3.0), (6.0, 4.0)),  # no move is longer than one
    ],
)
def test_walls_absorb_only_what_is_perpendicular_to_them(position, move, expected):
    successor = Ball().transition(jnp.array(position), jnp.array(move)).mean
    np.testing.assert_allclose(successor, expected, rtol=1e-6)


def test_cart_moves_as_under_a_constant_force():
    """Ten steps of force 0.8 from rest: v = 0.8 t, x = 0.4 t^2 at t = 1, exactly."""
    cart, state = double_integrator(), jnp.zeros(2)
    for _ in range(10):
        state = cart.transition(state, jnp.array([0.8])).mean
    np.testing.assert_allclose(state, [0.4, 0.8], rtol=1e-5)


@pytest.mark.parametrize("world", [Pendulum(process_noise=0.3), Ball(process_noise=0.3)])
def test_noise_is_where_it_was_asked_for(world: Pendulum | Ball):
    centre = world.transition(world.states.centre, world.actions.centre)
    np.testing.assert_allclose(centre.scale, [0.3, 0.3])
    np.testing.assert_allclose(world.emission(world.states.centre).scale, [0.05, 0.05])


def test_parameters_are_differentiable():
    def angle(length: jax.Array) -> jax.Array:
        return Pendulum(length=length).transition(jnp.ones(2), jnp.ones(1)).mean[0]

    assert np.isfinite(jax.grad(angle)(jnp.array(1.0)))
