"""Controllers of random weights, of every kind; made without compiling anything."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from empowerment.agent import to_bundle
from empowerment.controller import Bundle, Description
from empowerment.controller.controller import EngineName, make_engine
from empowerment.controller.description import MonitorLimits
from empowerment.controller.export.validation import Step
from empowerment.model import DVBF, Scaling
from empowerment.policy import Policy
from empowerment.worlds import AbstractWorld, Bounded, Box, LinearGaussian, Pendulum, discrete


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
    choices: tuple[int, ...] = (),
) -> tuple[Policy, Bounded, DVBF]:
    """A filter and a policy for it, in a world that is only there for its limits."""
    done = sum(choices) or done
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
        actions=discrete(*choices) if choices else Box(low, low + 3.0, _names("action", done)),
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
        actions = world.actions
        return Policy(world.states, actions.size, choices=actions.choices, width=width, key=key)

    policy = _filled(make, random)
    return eqx.tree_at(lambda p: p.states, policy, world.states)


def filter_bundle(seed: int = 0, **sizes: Any) -> Bundle:
    policy, world, model = with_filter(np.random.default_rng(seed), **sizes)
    return to_bundle(policy=policy, world=world, model=model)


def pendulum_bundle(seed: int = 0) -> Bundle:
    policy, world = without_filter(np.random.default_rng(seed))
    return to_bundle(policy=policy, world=world, model=None)


def discrete_bundle(
    choices: tuple[int, ...] = (3,),
    *,
    seed: int = 0,
    seen: int = 5,
    latent: int = 0,
    width: int = 16,
    angles: tuple[int, ...] = (),
) -> Bundle:
    """A policy that chooses, with a filter if it has a latent state; drawn array by array."""
    random = np.random.default_rng(seed)
    names = ["policy", *(["recognition", "start", "transition", "measurement"] if latent else [])]
    about = Description(
        observation_names=_names("observation", seen),
        action_names=_names("action", len(choices)),
        low=(0.0,) * len(choices),
        high=tuple(count - 1.0 for count in choices),
        networks={name: ("tanh", "identity") for name in names},
        choices=choices,
        latent_size=latent,
        angles=angles,
    )
    arrays = {
        "states.centre": random.normal(size=about.state_size),
        "states.half_width": random.uniform(0.5, 2.0, about.state_size),
    }
    for name, size in (("observations", seen), ("actions", about.encoded_size)):
        if latent:
            arrays |= {f"{name}.offset": random.normal(size=size)}
            arrays |= {f"{name}.scale": random.uniform(0.5, 2.0, size)}
    for name, (in_size, out_size) in about.sizes().items():
        for index, shape in enumerate([(width, in_size), (out_size, width)]):
            arrays[f"{name}.{index}.weight"] = 2 * random.normal(size=shape) / shape[1] ** 0.5
            arrays[f"{name}.{index}.bias"] = 0.1 * random.normal(size=shape[0])
    return Bundle(about, {name: array.astype(np.float32) for name, array in arrays.items()})


def watched_bundle(spread: float, seen: int = 3) -> Bundle:
    """A filter that stays where it begins, with a monitor of what is observed there."""
    about = Description(
        observation_names=_names("observation", seen),
        action_names=_names("action", 2),
        low=(-1.0, -2.0),
        high=(1.0, 1.0),
        networks=dict.fromkeys(
            ("policy", "recognition", "start", "transition", "measurement", "decoder"),
            ("identity",),
        ),
        latent_size=seen,
        monitor=MonitorLimits(4.0, 1e-4, 1000, 25.0, 0.1, 3, 10),
    )
    arrays = {"states.centre": np.zeros(seen), "states.half_width": np.full(seen, 2.0)}
    for name, size in (("observations", seen), ("actions", 2)):
        arrays |= {f"{name}.offset": np.zeros(size), f"{name}.scale": np.full(size, 2.0)}
    for name, (in_size, out_size) in about.sizes().items():
        arrays[f"{name}.0.weight"] = np.zeros((out_size, in_size))
        arrays[f"{name}.0.bias"] = np.zeros(out_size)
    arrays["policy.0.weight"][:2, :2] = np.eye(2)
    arrays["decoder.0.weight"] = np.eye(seen)
    arrays["measurement.0.weight"][:seen] = np.eye(seen)
    arrays["transition.0.bias"][seen:] = -5.0  # Sure of what is predicted,
    arrays["measurement.0.bias"][seen:] = 5.0  # and not of what is measured.
    arrays["innovations.scale"] = np.full(seen, 0.5 * spread)
    return Bundle(about, {name: array.astype(np.float32) for name, array in arrays.items()})


def with_bound(bundle: Bundle, seed: int = 0, width: int = 16) -> Bundle:
    """The same with a bound, of random weights and a few nats."""
    random, about = np.random.default_rng(seed), bundle.description
    networks = {**about.networks, "bound": ("tanh", "identity")}
    about = dataclasses.replace(about, networks=networks, bound_error=0.02)
    in_size = about.sizes()["bound"][0]
    arrays = {
        "bound.0.weight": 2 * random.normal(size=(width, in_size)) / in_size**0.5,
        "bound.0.bias": 0.1 * random.normal(size=width),
        "bound.1.weight": random.normal(size=(1, width)) / width**0.5,
        "bound.1.bias": np.array([2.0]),
    }
    single = {name: array.astype(np.float32) for name, array in arrays.items()}
    return Bundle(about, {**bundle.arrays, **single})


def by_engine(bundle: Bundle, name: EngineName) -> Step:
    """A step of an engine from a given memory, as an export makes it."""
    engine = make_engine(bundle, name)

    def step(observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        engine.load(memory)
        engine.observation = observation
        engine.run(seen=bool(np.isfinite(observation).all()))
        return engine.action.copy(), engine.memory.copy()

    return step


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
