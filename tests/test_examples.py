"""The examples run."""

import runpy
from pathlib import Path

import jax

import empowerment as emp

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_world_of_ones_own_trains():
    example = runpy.run_path(str(EXAMPLES / "cartpole.py"))
    world = emp.Bounded(example["CartPole"]())
    untrained = emp.Policy(world.states, 1, key=jax.random.key(0))
    before = example["balance"](untrained)
    after = example["balance"](example["train"](channel_updates=200, policy_updates=300))
    assert before < 0.3
    assert after > 0.9
