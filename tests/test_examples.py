"""The examples run."""

import runpy
from pathlib import Path

import jax
import pytest

import empowerment as emp
from empowerment.agent import to_bundle
from empowerment.controller import Controller, Safety

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
