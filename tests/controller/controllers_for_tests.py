"""Controllers of random weights, of every kind; made without compiling anything."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from empowerment.agent import to_bundle
from empowerment.controller import Bundle
from empowerment.model import DVBF, Scaling
from empowerment.policy import Policy
from empowerment.worlds import AbstractWorld, Bounded, Box, LinearGaussian, Pendulum


def with_filter(
    random: np.random.Generator,
    *,
    seen: int = 5,
    done: int = 2,
    latent: int = 4,
    width: int = 32,
    depth: int = 1,
    num_initial: int = 1,
    as_published: bool = False,
) -> tuple[Policy, Bounded, DVBF]:
    """A filter and a policy for it, in a world that is only there for its limits."""
    low = np.linspace(-2.0, 0.5, done)
    units = Scaling(
        jnp.asarray(random.normal(size=seen), float),
        jnp.asarray(np.exp(0.3 * random.normal(size=seen)), float),
    )
    actions = Scaling(jnp.asarray(low + 1.5, float), jnp.full(done, 1.5))
    model = _filled(
        lambda key: DVBF(
            units,
            actions,
            latent_size=latent,
            width=width,
            depth=depth,
            num_initial=num_initial,
            as_published=as_published,
            key=key,
        ),
        random,
    )
    model = eqx.tree_at(lambda m: (m.observations, m.actions), model, (units, actions))
    world = LinearGaussian(
        dynamics=np.eye(latent),
        control=np.ones((latent, done)),
        observation=np.eye(latent),
        process_noise=np.full(latent, 0.1),
        resolution=np.full(latent, 0.1),
        states=Box([-3.0] * latent, [2.0] * latent, _names("latent", latent)),
        actions=Box(low, low + 3.0, _names("action", done)),
    )
    return policy_of(world, random, width=width), Bounded(world), model


def without_filter(
    random: np.random.Generator, world: AbstractWorld | None = None
) -> tuple[Policy, Bounded]:
    """A policy alone, for the pendulum if not said otherwise."""
    world = world or Pendulum()
    return policy_of(world, random), Bounded(world)


def policy_of(world: AbstractWorld, random: np.random.Generator, width: int = 32) -> Policy:
    def make(key: jax.Array) -> Policy:
        return Policy(world.states, world.actions.size, width=width, key=key)

    policy = _filled(make, random)
    return eqx.tree_at(lambda p: p.states, policy, world.states)


def filter_bundle(seed: int = 0, **sizes: Any) -> Bundle:
    policy, world, model = with_filter(np.random.default_rng(seed), **sizes)
    return to_bundle(policy=policy, world=world, model=model)


def pendulum_bundle(seed: int = 0) -> Bundle:
    policy, world = without_filter(np.random.default_rng(seed))
    return to_bundle(policy=policy, world=world, model=None)


def _filled(make: Callable[[jax.Array], Any], random: np.random.Generator) -> Any:
    """Draw the weights by NumPy: JAX would compile for every shape."""

    def draw(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        limit = max(leaf.shape[-1], 1) ** -0.5
        return jnp.asarray(random.uniform(-limit, limit, leaf.shape), float)

    return jax.tree.map(draw, eqx.filter_eval_shape(make, jax.random.key(0)))


def _names(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word} {axis}" for axis in range(count))
