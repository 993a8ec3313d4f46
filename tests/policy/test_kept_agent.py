"""Which agent a training of the policy returns: the last, unless imagined episodes got worse."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.optimise import Snapshot, TrainingState
from empowerment.policy import Agent, Critic, Policy, learner, train_policy
from empowerment.policy.training import Info
from empowerment.worlds import Ball, Bounded

WORLD = Bounded(Ball())


class Flat(eqx.Module):
    """A bound that is the same everywhere."""

    def information(self, world: Any, state: jax.Array, *, key: jax.Array) -> jax.Array:
        return jnp.zeros(())


def trained(monkeypatch: pytest.MonkeyPatch, key: jax.Array, bounds: Sequence[float]) -> Snapshot:
    """Train by calls that only count, in the value of the critic, and say how good episodes are."""
    left = list(bounds)

    def step(state: TrainingState, *given: Any, **settings: Any) -> tuple[TrainingState, Info]:
        counted = eqx.tree_at(lambda s: s.model.critic.typical, state, replace_fn=lambda n: n + 1)
        zero = jnp.zeros(())
        info = Info(
            zero, zero, jnp.asarray(float(left.pop(0))), zero, zero, zero, zero, jnp.ones(())
        )
        return counted, info

    monkeypatch.setattr(learner, "step", step)
    keys = jax.random.split(key, 3)
    sizes: dict[str, Any] = {"width": 4, "depth": 1}
    agent = Agent(
        Policy(WORLD.states, 2, **sizes, key=keys[0]),
        critic=Critic(WORLD.states, jnp.zeros(()), **sizes, key=keys[1]),
    )
    return train_policy(
        agent,
        WORLD,
        Flat(),
        betas=np.ones(len(bounds)),
        num_starts=4,
        horizon=1,
        updates_per_call=1,
        key=keys[2],
    )


@pytest.mark.parametrize(
    ("bounds", "calls"),
    [
        ([0, 0, 1, 2, 3, 9, 3, 2, 3, 3], 5),  # Call 6 had the best episodes: of agent 5.
        ([0, 0, 1, 2, 3, 3.05, 3, 2, 3, 3], 10),  # That is within a tenth of the range.
        ([9, 9, 1, 2, 3, 3, 3, 2, 3, 3], 10),  # The critic does not look far at first.
        ([0, 0, 1, 2, 3, 4, 5, 6, 7, 8], 10),
    ],
)
def test_the_last_agent_is_returned_unless_episodes_got_worse(
    getkey, monkeypatch: pytest.MonkeyPatch, bounds: list[float], calls: int
):
    found = trained(monkeypatch, getkey(), bounds)
    assert float(found.model.critic.typical) == calls
    assert ("got worse again" in learner.warning(found)) == (calls < len(bounds))
