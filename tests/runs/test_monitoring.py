"""The monitor of a run is calibrated on what its model was not trained on."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.random import Generator, default_rng

from empowerment.agent import to_bundle
from empowerment.controller import Bundle
from empowerment.data import Episode, Spaces, Trajectories
from empowerment.model import DVBF, ModelSettings, Scaling, split
from empowerment.policy import Policy
from empowerment.runs import Experiment
from empowerment.runs.loading import data_path
from empowerment.runs.monitoring import add_monitor, describe_monitor
from empowerment.worlds import Bounded, Box, LinearGaussian

SPACES = Spaces(-np.ones(2), np.ones(2), -np.ones(1), np.ones(1), ("a", "b"), ("u",))
EXPERIMENT = Experiment(env="Pendulum-v1", model=ModelSettings(window=20))
LENGTH, SETTLING = 60, 10


def zeros(leaf: object) -> object:
    return jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf


def untrained() -> tuple[Bundle, DVBF]:
    """A model that expects zeros, and its controller."""
    unit = Scaling(jnp.zeros(2), jnp.ones(2)), Scaling(jnp.zeros(1), jnp.ones(1))
    world = LinearGaussian(
        dynamics=np.eye(2),
        control=np.ones((2, 1)),
        observation=np.eye(2),
        process_noise=np.full(2, 0.1),
        resolution=np.full(2, 0.1),
        states=Box([-1.0] * 2, [1.0] * 2, ("a", "b")),
        actions=Box([-1.0], [1.0], ("u",)),
    )
    made = eqx.filter_eval_shape(
        lambda key: (
            DVBF(*unit, latent_size=2, width=4, key=key),
            Policy(world.states, 1, width=4, key=key),
        ),
        jax.random.key(0),
    )
    model, policy = jax.tree.map(zeros, made)
    model = eqx.tree_at(lambda m: (m.observations, m.actions), model, unit)
    policy = eqx.tree_at(lambda p: p.states, policy, world.states)
    return to_bundle(policy=policy, world=Bounded(world), model=model), model


def data(random: Generator, count: int, size: float) -> Trajectories:
    episodes = [
        Episode(
            size * random.normal(size=(LENGTH + 1, 2)),
            random.uniform(-1, 1, (LENGTH, 1)),
            terminated=False,
            truncated=True,
        )
        for _ in range(count)
    ]
    return Trajectories(tuple(episodes), SPACES, {})


def test_it_is_held_out_data_or_that_of_the_policy(tmp_path: Path):
    random, (bundle, model) = default_rng(0), untrained()
    first = data(random, 60, 1.0)
    first.save(data_path(tmp_path, 0))
    made = add_monitor(bundle, model, EXPERIMENT, tmp_path, number=0, seed=3)
    parts = split((first,), 3, window=20)
    assert parts.test is not None
    count = len(parts.validation.episodes) + len(parts.test.episodes)
    limits = made.description.monitor
    assert limits is not None
    assert limits.num_steps == count * (LENGTH + 1 - SETTLING)
    assert made.arrays["innovations.scale"] == pytest.approx(1.0, rel=0.2)
    assert f"by mistake at most once in {limits.num_steps + 50} steps" in describe_monitor(made)
    # The policy of this round recorded the data of the next.
    data(random, 10, 3.0).save(data_path(tmp_path, 1))
    made = add_monitor(bundle, model, EXPERIMENT, tmp_path, number=0, seed=3)
    limits = made.description.monitor
    assert limits is not None
    assert limits.num_steps == 10 * (LENGTH + 1 - SETTLING)
    assert made.arrays["innovations.scale"] == pytest.approx(3.0, rel=0.2)


def test_too_few_data_are_said(tmp_path: Path):
    random, (bundle, model) = default_rng(0), untrained()
    data(random, 4, 1.0).save(data_path(tmp_path, 0))
    made = add_monitor(bundle, model, EXPERIMENT, tmp_path, number=0, seed=3)
    assert made is bundle
    assert "too few" in describe_monitor(made)
