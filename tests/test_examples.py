"""The examples run."""

import runpy
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest

import empowerment as emp
from empowerment.agent import to_bundle
from empowerment.controller import Bundle, Controller, Description, Safety
from empowerment.controller.reference import reference_bound

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
def test_a_world_of_ones_own_trains():
    example = runpy.run_path(str(EXAMPLES / "cartpole.py"))
    world = emp.Bounded(example["CartPole"]())
    untrained = emp.Policy(world.states, 1, key=jax.random.key(0))
    before = example["balance"](untrained)
    after = example["balance"](example["train"](channel_updates=200, policy_updates=300))
    assert before < 0.3
    assert after > 0.9


def test_hardware_over_a_socket_is_controlled_as_the_environment_is():
    example = runpy.run_path(str(EXAMPLES / "hardware.py"))
    world = emp.Bounded(emp.Pendulum())
    policy = emp.Policy(world.states, 1, key=jax.random.key(0))
    bundle = to_bundle(policy=policy, world=world, model=None)
    controller = Controller(bundle, engine="numpy", safety=Safety(max_missing=1000))
    timing, angles = example["control"](
        controller, duration=1.0, drop=0.5, delay=0.005, interval=0.01
    )
    assert len(timing.begun) > 0
    assert len(angles) > 1
    assert 0 < controller.num_missing < controller.num_steps
    assert controller.fault is None


def test_a_plain_loop_learns_from_empowerment_alone():
    example = runpy.run_path(str(EXAMPLES / "cleanrl_reward.py"))
    lengths = example["learn"](paying_bundle(4, choices=(2,)), iterations=6)
    assert lengths[0] < 150
    assert max(lengths[-2:]) > 2 * lengths[0]


def test_the_pendulum_of_the_example_pays_empowerment_of_angle_and_velocity():
    # What it trains is not in the lock; the environment that it trains in is made without.
    example = runpy.run_path(str(EXAMPLES / "sb3_reward.py"))
    bundle = paying_bundle(2, low=-2.0, high=2.0)
    env, bare = example["make"](bundle), gymnasium.make("Pendulum-v1")
    assert env.observation_space == bare.observation_space
    np.testing.assert_allclose(env.reset(seed=0)[0], bare.reset(seed=0)[0], atol=1e-6)
    for push in (2.0, -1.0):
        seen, reward, *_, info = env.step(np.array([push], np.float32))
        wanted, own, *_ = bare.step(np.array([push], np.float32))
        np.testing.assert_allclose(seen, wanted, atol=1e-6)
        state = np.array([np.arctan2(wanted[1], wanted[0]), wanted[2]])
        nats = reference_bound(bundle, state, np.array([1.0, 0.0]))
        assert info["empowerment"] == pytest.approx(nats, abs=1e-5)
        assert reward == pytest.approx(10 * (nats - example["TYPICAL"]), abs=1e-4)
        assert info["extrinsic_reward"] == own


def paying_bundle(
    size: int, choices: tuple[int, ...] = (), low: float = 0.0, high: float = 1.0
) -> Bundle:
    """A bundle without a filter whose bound is highest, with two nats, where all is zero."""
    about = Description(
        observation_names=tuple(f"observation {axis}" for axis in range(size)),
        action_names=("action",),
        low=(low,),
        high=(high,),
        choices=choices,
        networks={"policy": ("identity",), "bound": ("relu", "identity")},
        bound_error=0.0,
    )
    outputs, eye = about.sizes()["policy"][1], np.eye(size)
    arrays = {
        "states.centre": np.zeros(size),
        "states.half_width": np.ones(size),
        "policy.0.weight": np.zeros((outputs, size)),
        "policy.0.bias": np.zeros(outputs),
        "bound.0.weight": np.concatenate([eye, -eye]),
        "bound.0.bias": np.zeros(2 * size),
        "bound.1.weight": np.full((1, 2 * size), -0.1),
        "bound.1.bias": np.full(1, 2.0),
    }
    return Bundle(about, {name: array.astype(np.float32) for name, array in arrays.items()})
