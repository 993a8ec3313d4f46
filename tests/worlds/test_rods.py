"""Rods on hinges move as MuJoCo moves the same rods."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from empowerment.worlds import AbstractWorld, CartPole, Chain
from empowerment.worlds.rods import Slow

ROD = '<geom type="capsule" fromto="0 0 0 0 0 1" size="0.02" mass="{mass}"/>'
PAGE = """
<mujoco>
  <option timestep="0.001" integrator="RK4" gravity="0 0 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>{body}</worldbody>
  <actuator>{motors}</actuator>
</mujoco>
"""


def chain_page(world: Chain) -> str:
    body = ""
    for number in reversed(range(world.num_links)):
        height = 1 if number else 0
        body = (
            f'<body pos="0 0 {height}"><joint name="h{number}" type="hinge" axis="0 -1 0" '
            f'damping="{float(world.damping)}"/>{ROD.format(mass=1)}{body}</body>'
        )
    motors = "".join(f'<motor joint="h{hinge}"/>' for hinge in world.driven)
    return PAGE.format(body=body, motors=motors)


CART_PAGE = PAGE.format(
    body=(
        '<body><joint name="rail" type="slide" axis="1 0 0" stiffness="5" damping="1"/>'
        '<geom type="box" size=".2 .1 .05" mass="1"/><body>'
        '<joint type="hinge" axis="0 1 0" damping="0.05"/>'
        + ROD.format(mass=0.5)
        + "</body></body>"
    ),
    motors='<motor joint="rail"/>',
)


@pytest.mark.parametrize(
    ("world", "page"),
    [
        pytest.param(world, chain_page(world), id=f"{world.num_links} links")
        for world in (
            Chain(num_links=1, max_torque=2.0),
            Chain(),
            Chain(num_links=3, driven=(0, 2), max_torque=25.0, damping=1.0, substeps=10),
        )
    ]
    + [pytest.param(CartPole(), CART_PAGE, id="cart-pole")],
)
def test_a_second_of_random_actions_is_as_in_mujoco(world: AbstractWorld, page: str):
    random = np.random.default_rng(0)
    model = mujoco.MjModel.from_xml_string(page)  # pyright: ignore[reportAttributeAccessIssue]
    step = jax.jit(lambda state, action: world.transition(state, action).mean)
    size = world.states.size // 2
    for _ in range(4):
        data = mujoco.MjData(model)  # pyright: ignore[reportAttributeAccessIssue]
        start = random.uniform(world.states.low, world.states.high)
        start[size:] *= 0.2
        data.qpos, data.qvel = start[:size], start[size:]
        state = jnp.asarray(start, float)
        for action in random.uniform(
            world.actions.low, world.actions.high, (20, world.actions.size)
        ):
            data.ctrl = action
            for _ in range(50):
                mujoco.mj_step(model, data)  # pyright: ignore[reportAttributeAccessIssue]
            state = step(state, jnp.asarray(action, float))
        expected = np.concatenate([data.qpos, data.qvel])
        np.testing.assert_allclose(state, expected, atol=1e-3)
        assert np.abs(expected - start).max() > 0.3


def test_height_is_that_of_the_tip():
    chain = Chain(num_links=3)
    for angles, height in (([0, 0, 0], 1), ([np.pi, 0, 0], 0), ([np.pi, np.pi, 0], 2 / 3)):
        state = jnp.array([*angles, 0.0, 0.0, 0.0], float)
        assert chain.height(state) == pytest.approx(height, abs=1e-6)
    assert CartPole().height(jnp.array([2.0, np.pi, 0.0, 0.0])) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("world", [Chain(), CartPole(), Chain(num_links=1)])
def test_slow_states_have_the_density_that_is_stated(world: Chain | CartPole, getkey):
    region = world.state_distribution()
    assert isinstance(region, Slow)
    states = jax.vmap(lambda key: region.sample(key=key))(jax.random.split(getkey(), 20_000))
    # By importance: the mean of 1/p over a part of the region is its volume.
    limits = region.region.high[None, region.num_positions :]
    speeds = jnp.abs(states[:, region.num_positions :]) / limits
    inside = jnp.all((speeds > 0.2) & (speeds < 0.7), axis=1)
    weights = jnp.exp(-jax.vmap(region.log_prob)(states))
    whole = float(jnp.prod(region.region.high - region.region.low))
    assert jnp.mean(jnp.where(inside, weights, 0.0)) / whole == pytest.approx(
        0.5 ** speeds.shape[1], rel=0.05
    )
    assert np.mean(speeds < 0.1) > 0.2


@pytest.mark.parametrize("driven", [(), (2,), (1, 0), (0, 0)])
def test_motors_are_at_hinges(driven: tuple[int, ...]):
    with pytest.raises(ValueError, match="Expected the driven hinges to be at least one of 0, 1"):
        Chain(driven=driven)
