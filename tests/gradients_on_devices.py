"""Print how far gradients on two devices are from those on one, for channel, model and policy.

Run by `test_devices.py` in a process with two virtual devices, or, given the address of process 0
and the number of a process, in two processes with one device each.
"""

import contextlib
import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empowerment.agent import AgentSettings
from empowerment.agent.training import untrained_agent, untrained_channel
from empowerment.channel import AbstractChannel, training as channel_training
from empowerment.data import collect
from empowerment.devices import gathered, use_devices
from empowerment.model import ModelSettings, training as model_training
from empowerment.model.fit import prepare, untrained_dvbf
from empowerment.policy import training as policy_training
from empowerment.processes import joined
from empowerment.worlds import Bounded, Pendulum

SETTINGS = AgentSettings(steps=2, family="gaussian", joint=True, num_starts=8, width=8, depth=1)


@functools.cache
def untrained() -> tuple[Bounded, AbstractChannel]:
    """Nothing is computed before the processes have joined."""
    world = Bounded(Pendulum())
    return world, untrained_channel(world, SETTINGS, key=jax.random.key(0))


def channel() -> tuple[Any, Any]:
    world, fresh = untrained()
    state = channel_training.init(fresh, key=jax.random.key(1))
    arguments = {"learning_rates": jnp.ones(1), "batch_size": 16}
    return channel_training.step, ((state, world), arguments)


def model() -> tuple[Any, Any]:
    data, _ = collect("Pendulum-v1", steps=400, seed=0)
    prepared = prepare(data, data, length=10, seed=0)
    settings = ModelSettings(width=8)
    fresh = untrained_dvbf(settings, prepared.observations, prepared.actions, key=jax.random.key(2))
    state = model_training.init(fresh, key=jax.random.key(3))
    arguments = {"weights": jnp.ones(1), "learning_rates": jnp.ones(1), "batch_size": 16}
    return model_training.step, ((state, prepared.train_windows), arguments)


def policy() -> tuple[Any, Any]:
    world, fresh = untrained()
    agent = untrained_agent(world, SETTINGS, fresh, jnp.zeros(()), key=jax.random.key(4))
    state = policy_training.init(agent, world, num_starts=8, key=jax.random.key(5))
    rates = jnp.full(1, 0.9)
    schedules = dict.fromkeys(("betas", "discounts", "shares", "learning_rates"), rates)
    return policy_training.step, ((state, world), {**schedules, "num_starts": 8, "horizon": 4})


def gradient(make: Callable[[], tuple[Any, Any]], count: int) -> tuple[np.ndarray, bool]:
    """After one update Adam's first moment is a tenth of the gradient."""
    step, (positional, named) = make()
    with use_devices(count) if count > 1 else contextlib.nullcontext():
        compiled = step.lower(*positional, **named).compile()
        after, _ = step(*positional, **named)
    moments = jax.tree.leaves(gathered(after.optimiser[1].mu))
    text = compiled.compiled.as_text()
    return np.concatenate([np.ravel(leaf) for leaf in moments]), "all-reduce" in text


def main() -> None:
    assert len(jax.devices()) == 2
    found = {}
    for make in (channel, model, policy):
        (one, adds_one), (two, adds_two) = gradient(make, 1), gradient(make, 2)
        assert not adds_one
        assert np.abs(one).max() > 0
        error = np.linalg.norm(two - one) / np.linalg.norm(one)
        found[make.__name__] = {"error": float(error), "adds": adds_two}
    print(json.dumps(found))


def main_of_processes(address: str, number: int) -> None:
    with joined(address, number=number, count=2, settings={}, seconds=120.0) as team:
        print(team.share(lambda: b"from process 0").decode())
        main()
        assert len(jax.local_devices()) == 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main_of_processes(sys.argv[1], int(sys.argv[2]))
    else:
        main()
