"""Whether a policy holds its world, for those worlds where that means something."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from empowerment.policy import Policy
from empowerment.types import Key, Scalar, State
from empowerment.worlds import AbstractWorld, Bounded, Pendulum

UPRIGHT = 0.3
"""Radians from upright within which a pendulum stands."""

_NUM_STEPS, _NUM_HELD = 400, 100
"""The length of an episode, and throughout how much of its end the world has to be held."""

_NUM_STARTS = 32

Holds = Callable[[State], Bool[Array, ""]]
"""Whether a state is one to be held."""


def _is_upright(state: State) -> Bool[Array, ""]:
    return jnp.cos(state[0]) >= math.cos(UPRIGHT)


_HOLDS: dict[type[AbstractWorld], Holds] = {Pendulum: _is_upright}


def held_in_words(policy: Policy, world: Bounded) -> str:
    """Say how much of a world a policy holds; nothing where that has no meaning."""
    holds = _HOLDS.get(type(world.world))
    if holds is None:
        return ""
    return f", {float(held_fraction(policy, world, holds, key=jax.random.key(0))):.0%} held"


@eqx.filter_jit
def held_fraction(policy: Policy, world: Bounded, holds: Holds, *, key: Key) -> Scalar:
    """Estimate in how many episodes the mean action holds a world in the end.

    In the world as it is imagined, without its noise: quick enough to watch training by.
    `evaluate_agent` asks the real environment.

    Args:
        policy: Whose actions live before the squash.
        world: A world whose actions live before the squash.
        holds: Whether a state is one to be held.
        key: Consumed.

    Returns:
        The share of episodes that end with all states held.
    """

    def step(state: State, _: None) -> tuple[State, Bool[Array, ""]]:
        successor = world.transition(state, policy(state).mean).mean
        return successor, holds(successor)

    def is_held(key: Key) -> Bool[Array, ""]:
        start = world.initial().sample(key=key)
        return jnp.all(jax.lax.scan(step, start, None, length=_NUM_STEPS)[1][-_NUM_HELD:])

    keys = jax.random.split(key, _NUM_STARTS)
    return jnp.mean(jax.vmap(is_held)(keys).astype(float))
