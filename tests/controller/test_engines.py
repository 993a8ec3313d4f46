"""The controller gives the numbers of JAX, whatever computes them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from controllers_for_tests import with_filter, without_filter
from jaxtyping import Array
from numpy.random import Generator

from empowerment.agent import to_bundle
from empowerment.controller import Bundle, Controller
from empowerment.controller.controller import EngineName, make_engine
from empowerment.controller.reference import reference_step
from empowerment.distributions import Gaussian
from empowerment.model import DVBF, Filter
from empowerment.policy import Policy
from empowerment.worlds import WORLDS, AbstractWorld, Ball, Bounded, Pendulum

STEPS = 40
# As printed, scales are squares: near zero, single precision itself is that far from double.
TOLERANCE = {"ours": 1e-6, "printed": 2e-5}
ENGINE_NAMES: list[EngineName] = ["numpy", "numba"]
FILTERS = {
    "small": {},
    "wide": {"seen": 44, "latent": 16, "width": 128},
    "deep": {"depth": 2, "done": 1},
    "printed": {"as_published": True},
    "many first": {"num_initial": 3},
    "one of each": {"seen": 1, "done": 1, "latent": 1, "width": 3},
}


def by_jax(
    policy: Policy, world: Bounded, model: DVBF | None, observations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The states and the actions as JAX has them; an observation that is missing is NaN."""

    def act(state: Array) -> Array:
        return world.squash(policy(state).mean)

    if model is None:
        return observations, np.asarray(jax.jit(jax.vmap(act))(observations))
    own = Filter(model)

    def advance(before: tuple[Array, Array], observation: Array) -> tuple:
        state = own.update(*before, observation)
        after = (state, act(state))
        return after, after

    @jax.jit
    def run(observations: Array) -> tuple[Array, Array]:
        state = own.init(jnp.repeat(observations[:1], model.num_initial, axis=0))
        first = (state, act(state))
        rest = jax.lax.scan(advance, first, observations[1:])[1]
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)

    states, actions = run(observations)
    return np.asarray(states), np.asarray(actions)


def by_controller(
    bundle: Bundle, engine: EngineName, observations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the filter remembers, and the actions."""
    controller = Controller(bundle, engine=engine)
    actions, states = [], []
    for observation in observations:
        actions.append(controller.step(observation))
        states.append(controller._engine.memory[1 : 1 + bundle.description.latent_size].copy())
    return np.stack(states), np.stack(actions)


def observations_of(bundle: Bundle, random: Generator, *, missing: bool = True) -> np.ndarray:
    shape = (STEPS, bundle.description.observation_size)
    observations = 1.5 * random.normal(size=shape).astype(np.float32)
    if missing:
        observations[5:8, 0] = np.nan
        observations[20] = np.inf
    return observations


@pytest.mark.parametrize("kind", FILTERS)
def test_filter_and_policy_are_those_of_jax(kind: str, random: Generator):
    policy, world, model = with_filter(random, **FILTERS[kind])
    bundle = to_bundle(policy=policy, world=world, model=model)
    observations = observations_of(bundle, random)
    states, actions = by_jax(policy, world, model, observations)
    tolerance = TOLERANCE["printed" if model.as_published else "ours"]
    for name in ENGINE_NAMES:
        # Each step from where JAX was: what is off by rounding grows from step to step.
        engine, size = make_engine(bundle, name), model.latent_size
        for time in range(1, STEPS):
            before = np.concatenate([[1.0], states[time - 1], actions[time - 1] - bundle.middle])
            engine.load(before.astype(np.float32))
            engine.observation = observations[time]
            engine.run(seen=bool(np.isfinite(observations[time]).all()))
            close(engine.memory[1 : 1 + size], states[time], tolerance)
            close(engine.action, actions[time], tolerance)
        found_states, found_actions = by_controller(bundle, name, observations)
        close(found_states, states, 100 * tolerance)
        close(found_actions, actions, 100 * tolerance)
    memory = np.zeros(bundle.description.memory_size)
    for observation, expected in zip(observations, actions, strict=True):
        action, memory = reference_step(bundle, observation, memory)
        close(action, expected, 100 * tolerance)


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("make", [Pendulum, Ball, WORLDS["cart"]])
def test_policy_alone_is_that_of_jax(make: Callable[[], AbstractWorld], random: Generator):
    policy, world = without_filter(random, make())
    bundle = to_bundle(policy=policy, world=world, model=None)
    observations = observations_of(bundle, random, missing=False)
    actions = by_jax(policy, world, None, observations)[1]
    for name in ENGINE_NAMES:
        close(by_controller(bundle, name, observations)[1], actions, 1e-6)
    memory = np.zeros(bundle.description.memory_size)
    for observation, expected in zip(observations, actions, strict=True):
        close(reference_step(bundle, observation, memory)[0], expected, 1e-6)


def test_the_first_observations_may_be_as_many_as_the_filter_wants(random: Generator):
    policy, world, model = with_filter(random, num_initial=3)
    bundle = to_bundle(policy=policy, world=world, model=model)
    first = random.normal(size=(3, 5)).astype(np.float32)
    controller = Controller(bundle, engine="numpy")
    controller.reset(first)
    action = controller.step(None)
    state = model.start(model.recognise(model.observations.scaled(jnp.asarray(first))).mean)
    np.testing.assert_allclose(action, world.squash(policy(state).mean), rtol=1e-6, atol=1e-6)
    assert controller.num_missing == 0


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_a_reset_forgets_everything(engine: EngineName, random: Generator):
    policy, world, model = with_filter(random)
    bundle = to_bundle(policy=policy, world=world, model=model)
    observations = observations_of(bundle, random)
    controller = Controller(bundle, engine=engine)
    first = [controller.step(each) for each in observations]
    controller.reset(observations[0])
    second = [controller.step(each) for each in observations]
    np.testing.assert_array_equal(first, second)


def test_without_a_filter_the_last_action_stands_for_a_missing_observation(
    random: Generator,
):
    policy, world = without_filter(random)
    controller = Controller(to_bundle(policy=policy, world=world, model=None))
    before = controller.step(np.array([1.0, 0.5]))
    after = controller.step(None)
    np.testing.assert_array_equal(before, after)
    assert controller.num_missing == 1


class TestPredict:
    """Stable-Baselines3's calling convention."""

    def test_it_is_the_same_as_step_for_many_environments_at_once(self, random: Generator):
        policy, world, model = with_filter(random)
        bundle = to_bundle(policy=policy, world=world, model=model)
        controller = Controller(bundle)
        streams = [observations_of(bundle, random) for _ in range(3)]
        expected = [by_controller(bundle, "numpy", stream)[1] for stream in streams]
        state, starts, actions = None, np.ones(3, bool), []
        for rows in np.stack(streams, axis=1):
            action, state = controller.predict(rows, state, starts, deterministic=True)
            actions.append(action)
            starts = np.zeros(3, bool)
        np.testing.assert_array_equal(np.stack(actions, axis=1), np.stack(expected))
        assert controller.num_steps == 0

    def test_an_episode_that_starts_is_told_from_one_that_goes_on(self, random: Generator):
        policy, world, model = with_filter(random)
        controller = Controller(to_bundle(policy=policy, world=world, model=model))
        rows = random.normal(size=(2, 5))
        first, state = controller.predict(rows, deterministic=True)
        second, _ = controller.predict(rows, state, np.array([True, False]), deterministic=True)
        np.testing.assert_array_equal(second[0], first[0])
        assert np.abs(second[1] - first[1]).max() > 1e-5

    @pytest.mark.statistical
    def test_drawn_actions_are_those_of_the_policy(self):
        policy, world = without_filter(np.random.default_rng(0))
        controller = Controller(to_bundle(policy=policy, world=world, model=None))
        state = jnp.array([0.3, -0.2])
        count = 4000
        drawn = controller.predict(np.tile(np.asarray(state), (count, 1)))[0]
        given = policy(state)
        assert isinstance(given, Gaussian)
        middle = np.arctanh(np.clip(drawn[:, 0] / 2.0, -1 + 1e-6, 1 - 1e-6))
        error = (middle.mean() - float(given.mean[0])) / (float(given.scale[0]) / count**0.5)
        assert abs(error) < 4
        assert middle.std() == pytest.approx(float(given.scale[0]), rel=0.06)

    @pytest.mark.parametrize(
        ("observation", "state", "words"),
        [
            (np.zeros(4), None, r"of shape \(5,\), or rows"),
            (np.zeros((2, 5, 1)), None, r"of shape \(5,\), or rows"),
            (np.zeros((2, 5)), (np.zeros((1, 7)),), "what `predict` gave"),
            ("nonsense", None, "an array of 5 numbers"),
        ],
    )
    def test_wrong_shapes_are_refused(self, observation, state, words: str):
        policy, world, model = with_filter(np.random.default_rng(0))
        controller = Controller(to_bundle(policy=policy, world=world, model=model))
        with pytest.raises(ValueError, match=words):
            controller.predict(observation, state)

    def test_an_evaluation_loop_controls_each_environment_as_if_it_were_alone(
        self, random: Generator
    ):
        # As in `evaluate_policy`: `episode_start` is `dones` of the step before.
        policy, world, model = with_filter(random)
        bundle = to_bundle(policy=policy, world=world, model=model)
        controller, envs = Controller(bundle), [AutoresetEnv(seed) for seed in range(3)]
        observations = np.stack([env.observation for env in envs])
        states, starts, rows = None, [np.ones(3, bool)], []
        for _ in range(30):
            actions, states = controller.predict(
                observations, state=states, episode_start=starts[-1], deterministic=True
            )
            rows.append(actions)
            starts.append(np.array([env.step(actions[i]) for i, env in enumerate(envs)]))
            observations = np.stack([env.observation for env in envs])
        assert (np.sum(starts, axis=0) > 3).all()
        assert {0, 1} <= {int(each.sum()) for each in starts}  # not all at once
        for index in range(3):
            alone, env = Controller(bundle, engine="numpy"), AutoresetEnv(index)
            for actions in rows:
                action = alone.step(env.observation)
                np.testing.assert_array_equal(actions[index], action)
                if env.step(action):
                    alone.reset()


class AutoresetEnv:
    """Episodes of different lengths, whose observations depend on the actions."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.effect = self.random.normal(size=(5, 2))
        self.reset()

    def reset(self) -> None:
        self.observation, self.left = self.random.normal(size=5), self.random.integers(2, 8)

    def step(self, action: np.ndarray) -> bool:
        """Step, and reset at the end of an episode as a VecEnv does; return whether it ended."""
        self.observation, self.left = (
            np.tanh(self.observation + self.effect @ action),
            self.left - 1,
        )
        is_over = bool(self.left == 0)
        if is_over:
            self.reset()
        return is_over
