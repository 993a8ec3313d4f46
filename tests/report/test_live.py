"""What runs in the page is what runs in Python: controller, systems, landscape, surrogate."""

from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.controller.controllers_for_tests import (
    discrete_bundle,
    filter_bundle,
    pendulum_bundle,
    with_bound,
    without_filter,
)
from tests.report.javascript import run, scripts_of

from empowerment.agent import to_bundle
from empowerment.controller import Bundle
from empowerment.controller.controller import make_engine
from empowerment.controller.reference import reference_bound, reference_step
from empowerment.environments import ENVIRONMENTS, PENDULUM_DIRECTION, EnvFactory, WorldEnv
from empowerment.report.live import bundle_data
from empowerment.systems import system_of
from empowerment.worlds import CartPole

PENDULUM = ENVIRONMENTS["pendulum"]
SEED = 7


def steps_in_the_page(bundle: Bundle, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Actions and memories after a sequence of observations, of which some are missing."""
    program = """
      const controller = makeController(data.bundle);
      let memory = controller.restart();
      return data.rows.map((row) => {
        const done = controller.step(row, memory);
        memory = done.memory;
        return [done.action, memory];
      });"""
    asked = [row.tolist() if np.isfinite(row).all() else None for row in rows]
    found = run(scripts_of(PENDULUM), program, {"bundle": bundle_data(bundle), "rows": asked})
    return np.array([action for action, _ in found]), np.array([memory for _, memory in found])


BUNDLES = {
    "observed": lambda: pendulum_bundle(SEED),
    "tracked": lambda: filter_bundle(SEED),
    "as published": lambda: filter_bundle(SEED, as_published=True, depth=2),
    "recognised from three": lambda: filter_bundle(SEED, num_initial=3),
    "choices, observed": lambda: discrete_bundle((2, 3), seed=SEED, angles=(1,)),
    "choices, tracked": lambda: discrete_bundle((4,), seed=SEED, latent=3),
}


@pytest.mark.parametrize("name", BUNDLES)
def test_the_page_acts_as_the_controller_does(name: str):
    bundle = BUNDLES[name]()
    random = np.random.default_rng(SEED)
    rows = random.normal(size=(1000, bundle.description.observation_size))
    rows[random.uniform(size=1000) < 0.1] = np.nan
    rows[0] = np.nan  # Before the first observation there is nothing to predict from.
    rows = rows.astype(np.float32).astype(float)
    actions, memories = steps_in_the_page(bundle, rows)
    wanted, memory = [], np.zeros(bundle.description.memory_size)
    for row in rows:
        action, memory = reference_step(bundle, row, memory)
        wanted.append((action, memory))
    np.testing.assert_allclose(actions, [action for action, _ in wanted], atol=1e-9)
    np.testing.assert_allclose(memories, [memory for _, memory in wanted], atol=1e-9)
    assert np.ptp(actions, axis=0).min() > 0.1


@pytest.mark.parametrize("name", ["observed", "tracked", "choices, observed", "choices, tracked"])
def test_the_page_acts_as_the_deployed_controller_does(name: str):
    """The engine of the robot computes in single precision."""
    bundle = BUNDLES[name]()
    shape = 1000, bundle.description.observation_size
    rows = np.random.default_rng(SEED + 1).normal(size=shape).astype(np.float32)
    actions, _ = steps_in_the_page(bundle, rows.astype(float))
    engine = make_engine(bundle, "numpy")
    wanted = np.empty_like(actions)
    for index, row in enumerate(rows):
        engine.rows[0][...] = row
        engine.step(0)
        wanted[index] = engine.action
    assert np.abs(actions - wanted).max() < 1e-5


NAMES = ("pendulum", "ball", "cart-pole", "double-pendulum", "triple-pendulum")


def moved_in_the_page(
    environment_id: str, states: np.ndarray, actions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Successors and observations by the script of a system, with the parameters it is given."""
    live = system_of(environment_id).live
    assert live is not None
    environment = gymnasium.make(environment_id)
    program = """
      const system = systems[data.system](data.parameters);
      return data.states.map((state, index) => {
        const after = system.step(state, data.actions[index]);
        return [after, system.observe(after)];
      });"""
    data = {
        "system": live.name,
        "parameters": live.parameters(environment),
        "states": states.tolist(),
        "actions": actions.tolist(),
    }
    found = run(scripts_of(environment_id), program, data)
    return np.array([after for after, _ in found]), np.array([seen for _, seen in found])


@pytest.mark.parametrize("name", NAMES)
def test_a_system_moves_in_the_page_as_it_does_in_its_world(name: str):
    inner = EnvFactory(ENVIRONMENTS[name])().unwrapped
    assert isinstance(inner, WorldEnv)
    world, random = inner.world, np.random.default_rng(SEED)
    low, high = (np.asarray(end, float) for end in (world.states.low, world.states.high))
    states = random.uniform(low, high, (200, len(low)))
    reach = np.asarray(world.actions.high, float)
    actions = random.uniform(-1.3 * reach, 1.3 * reach, (200, len(reach)))  # Some are limited.
    found, seen = moved_in_the_page(ENVIRONMENTS[name], states, actions)
    with jax.enable_x64(True):  # noqa: FBT003 (its signature)
        exact = jax.tree.map(_double, world)
        moved = jax.jit(jax.vmap(lambda z, u: exact.transition(z, u).mean))
        wanted = np.asarray(moved(jnp.asarray(states), jnp.asarray(actions)))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    turns = np.array([axis in world.states.angles for axis in world.states.names])
    wrapped = np.angle(np.exp(1j * wanted))
    np.testing.assert_allclose(seen, np.where(turns, wrapped, wanted), rtol=1e-9, atol=1e-9)


def _double(leaf: Any) -> Any:
    """A parameter in double precision, of the digits that single precision has."""
    return jnp.asarray(float(f"{float(leaf):.7g}")) if eqx.is_array(leaf) else leaf


def test_gymnasiums_pendulum_moves_in_the_page_as_it_does_there():
    environment = gymnasium.make("Pendulum-v1")
    inner: Any = environment.unwrapped
    random = np.random.default_rng(SEED)
    states, actions = random.uniform(-8, 8, (200, 2)), random.uniform(-3, 3, (200, 1))
    wanted, seen = [], []
    environment.reset(seed=0)
    for state, action in zip(states, actions, strict=True):
        inner.state = state.copy()
        seen.append(inner.step(action)[0])
        wanted.append(inner.state)
    found, observed = moved_in_the_page("Pendulum-v1", states, actions)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(observed, seen, atol=1e-6)


def test_a_direction_is_observed_as_its_environment_does():
    environment = gymnasium.make(PENDULUM_DIRECTION)
    random = np.random.default_rng(SEED)
    states, actions = random.uniform(-3, 3, (5, 2)), random.uniform(-2, 2, (5, 1))
    _, observed = moved_in_the_page(PENDULUM_DIRECTION, states, actions)
    for state, action, row in zip(states, actions, observed, strict=True):
        environment.reset(options={"state": state})
        np.testing.assert_allclose(row, environment.step(action)[0], atol=1e-5)


@pytest.mark.parametrize("name", BUNDLES)
def test_the_page_estimates_empowerment_as_the_controller_does(name: str):
    """At what the filter tracks, or at what is observed; outside of the region, at its edge."""
    bundle = with_bound(BUNDLES[name](), SEED)
    about, random = bundle.description, np.random.default_rng(SEED)
    low, high = (limit.astype(float) for limit in bundle.region)
    states = random.uniform(low - 0.5 * (high - low), high + 0.5 * (high - low), (50, len(low)))
    program = "const nats = makeBound(data.bundle); return data.states.map(nats);"
    data = {"bundle": bundle_data(bundle), "states": states.tolist()}
    found = run(scripts_of(PENDULUM), program, data)
    wanted = []
    for state in states:
        memory = np.concatenate([[1.0], state, np.zeros(about.memory_size)])
        wanted.append(reference_bound(bundle, state, memory))
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    assert np.ptp(wanted) > 0.05


def test_without_a_bound_there_is_no_estimate():
    program = "return makeBound(data.bundle);"
    data = {"bundle": bundle_data(pendulum_bundle(SEED))}
    assert run(scripts_of(PENDULUM), program, data) is None


def test_a_slice_is_the_bound_over_two_coordinates():
    policy, world = without_filter(np.random.default_rng(SEED), CartPole())
    bundle = with_bound(to_bundle(policy=policy, world=world, model=None), SEED)
    environment = ENVIRONMENTS["cart-pole"]
    live = system_of(environment).live
    assert live is not None
    state = [0.3, 0.2, -1.0, 0.5]
    program = """
      const simulation = makeSimulation(data.live, () => 0.5);
      const slice = simulation.slice(data.state);
      return { ...slice, names: simulation.names };"""
    stored = {
        "system": live.name,
        "parameters": live.parameters(gymnasium.make(environment)),
        "bundle": bundle_data(bundle),
        "landscapes": [],
        "interval": 0.05,
    }
    found = run(scripts_of(environment), program, {"live": stored, "state": state})
    assert found["names"] == ["position", "angle", "velocity", "turning"]
    low, high = bundle.region
    assert [found["x"][0], found["y"][-1]] == pytest.approx([low[1], high[3]])
    after = np.ones(bundle.description.memory_size)
    at = np.array([state[0], found["x"][3], state[2], found["y"][5]])
    value = found["values"][3 * len(found["y"]) + 5]
    assert value == pytest.approx(reference_bound(bundle, at, after), abs=1e-9)
    lowest, highest = found["limits"]
    everywhere = np.random.default_rng(SEED).uniform(low, high, (500, 4))
    values = [reference_bound(bundle, each, after) for each in everywhere]
    assert lowest == pytest.approx(np.quantile(values, 0.2), abs=0.1 * np.ptp(values))
    assert highest == pytest.approx(np.max(values), abs=0.1 * np.ptp(values))


CART_POLE = "CartPole-v1"


def test_gymnasiums_pole_on_a_cart_moves_in_the_page_as_it_does_there():
    inner: Any = gymnasium.make(CART_POLE).unwrapped
    random = np.random.default_rng(SEED)
    inner.reset(seed=0)
    limits = np.array([1.3 * inner.x_threshold, 3, 1.3 * inner.theta_threshold_radians, 3])
    states = random.uniform(-limits, limits, (300, 4))
    actions = random.integers(0, 2, (300, 1))
    wanted, seen, ended = [], [], []
    for state, (action,) in zip(states, actions.tolist(), strict=True):
        inner.state, inner.steps_beyond_terminated = tuple(state), None
        observation, _, terminated, _, _ = inner.step(action)
        wanted.append(inner.state)
        seen.append(observation)
        ended.append(terminated)
    found, observed = moved_in_the_page(CART_POLE, states, actions)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(observed, seen, atol=1e-6)
    program = "return data.states.map(systems.gymnasium_cart_pole(data.parameters).isOver);"
    live = system_of(CART_POLE).live
    assert live is not None
    data = {"states": found.tolist(), "parameters": live.parameters(gymnasium.make(CART_POLE))}
    assert run(scripts_of(CART_POLE), program, data) == ended
    assert 0.1 < np.mean(ended) < 0.9


def test_an_episode_that_has_ended_begins_anew_and_random_actions_are_all_chosen():
    """A policy that always pushes to the left; the filter knows what the random one did."""
    bundle = discrete_bundle((2,), seed=SEED, seen=4, latent=3)
    live = system_of(CART_POLE).live
    assert live is not None
    stored = {
        "system": live.name,
        "parameters": live.parameters(gymnasium.make(CART_POLE)),
        "bundle": bundle_data(bundle),
        "landscapes": [],
        "noise": [0.01] * 4,
        "interval": 0.02,
        "repeat": 1,
    }
    program = """
      const simulation = makeSimulation(data);
      return Array.from({ length: 400 }, () => {
        simulation.step();
        return simulation.actors.map(({ state, action, memory, isOver }) => ({
          angle: state[2], action, last: memory.slice(4), isOver,
        }));
      });"""
    found = run(scripts_of(CART_POLE), program, stored)
    for actor in range(2):
        path = [each[actor] for each in found]
        over = np.array([each["isOver"] for each in path])
        lasting = np.diff(np.flatnonzero(np.diff(over.astype(int))))
        assert 50 in lasting, "a second after its end an episode begins anew"
        assert max(abs(each["angle"]) for each in path) < 0.3
        for each in path:
            if sum(each["last"]):  # At the beginning there was no action.
                assert each["last"].index(1) == each["action"][0]
    assert {each[1]["action"][0] for each in found} == {0, 1}


def test_a_landscape_is_linear_between_its_states():
    x, y = np.linspace(-2, 2, 5), np.linspace(0, 3, 4)
    values = (1 + 2 * x[:, None] - y + 0.5 * x[:, None] * y).ravel()
    points = np.random.default_rng(SEED).uniform([-2, 0], [2, 3], (50, 2))
    points = np.concatenate([points, [[-2, 0], [2, 3], [9, 9]]])  # The last is outside.
    data = {"x": x.tolist(), "y": y.tolist(), "values": values.tolist(), "points": points.tolist()}
    found = run(
        scripts_of(PENDULUM), "return data.points.map((at) => interpolated(data, at));", data
    )
    column, row = np.clip(points, [-2, 0], [2, 3]).T
    np.testing.assert_allclose(found, 1 + 2 * column - row + 0.5 * column * row, atol=1e-9)
