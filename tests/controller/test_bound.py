"""The bound on empowerment in a bundle: the numbers of JAX, wherever a state may be."""

import copy
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from controllers_for_tests import (
    discrete_bundle,
    filter_bundle,
    pendulum_bundle,
    with_bound,
    with_filter,
    without_filter,
)
from numpy.random import Generator

from empowerment.agent import to_bundle
from empowerment.controller import Bundle, read_bundle, write_bundle
from empowerment.controller.bound import BoundTracker
from empowerment.controller.bundle_io import MANIFEST
from empowerment.controller.choices import encode
from empowerment.controller.reference import reference_bound, reference_step
from empowerment.model import Filter
from empowerment.policy import Surrogate, unfitted_surrogate
from empowerment.worlds import Box

KINDS: dict[str, Bundle] = {
    "filter": with_bound(filter_bundle()),
    "published": with_bound(filter_bundle(as_published=True)),
    "many first": with_bound(filter_bundle(num_initial=3)),
    "pendulum": with_bound(pendulum_bundle()),
    "discrete": with_bound(discrete_bundle((3, 2), latent=4)),
    "discrete, observed": with_bound(discrete_bundle((2,), angles=(1, 3))),
}


def surrogate_of(states: Box, random: Generator) -> Surrogate:
    mean, scale = jnp.asarray(2.5), jnp.asarray(0.7)
    made = unfitted_surrogate(states, mean, scale, width=16, depth=2, key=jax.random.key(0))

    def draw(leaf: jax.Array) -> jax.Array:
        return jnp.asarray(random.normal(size=leaf.shape) / leaf.shape[-1] ** 0.5, float)

    weights, rest = eqx.partition(made.network, eqx.is_inexact_array)
    network = eqx.combine(jax.tree.map(draw, weights), rest)
    return eqx.tree_at(lambda s: (s.network, s.error), made, (network, jnp.asarray(0.03)))


def test_the_bound_of_observed_states_is_that_of_jax(random: Generator):
    policy, world = without_filter(random)
    fitted = surrogate_of(world.states, random)
    bundle = to_bundle(policy=policy, world=world, model=None, bound=fitted)
    assert bundle.description.bound_error == pytest.approx(0.03)
    # Beyond the limit of the velocity too, where the bound is that of the nearest state.
    states = random.normal(size=(200, 2)) * [2.0, 9.0]
    found = BoundTracker(bundle, 200).begin(states.astype(np.float32))
    wanted = jax.vmap(fitted)(jnp.asarray(states, float))
    np.testing.assert_allclose(found, wanted, atol=3e-6)
    assert np.ptp(found) > 0.5


def test_the_bound_of_filtered_states_is_that_of_jax(random: Generator):
    policy, world, model = with_filter(random, num_initial=2)
    fitted, own = surrogate_of(world.states, random), Filter(model)
    bundle = to_bundle(policy=policy, world=world, model=model, bound=fitted)
    tracker = BoundTracker(bundle, 3)
    observations = random.normal(size=(6, 3, 5))
    low, high = bundle.limits
    actions = random.uniform(low, high, size=(6, 3, 2))
    found = [tracker.begin(observations[0])]
    found += [tracker.advance(o, a) for o, a in zip(observations[1:], actions, strict=False)]
    seen, acted = jnp.asarray(observations, float), jnp.asarray(actions, float)
    states = jax.vmap(own.init)(jnp.stack([seen[0], seen[0]], axis=1))
    for index, values in enumerate(found):
        if index:
            states = jax.vmap(own.update)(states, acted[index - 1], seen[index])
        np.testing.assert_allclose(values, jax.vmap(fitted)(states), atol=3e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_many_at_once_are_as_the_reference_one_by_one(kind: str, random: Generator):
    bundle, num = KINDS[kind], 4
    about = bundle.description
    tracker, memories = BoundTracker(bundle, num), np.zeros((num, about.memory_size))
    low, high = bundle.limits
    for time in range(12):
        observations = 2 * random.normal(size=(num, about.observation_size))
        begins = np.ones(num, bool) if time == 0 else random.random(num) < 0.2
        actions = random.uniform(low - 0.5, high + 0.5, (num, about.action_size))
        if about.choices:
            actions = random.integers(0, about.choices, (num, about.action_size))
        values = tracker.advance(observations, actions) if time else np.zeros(num)
        if begins.any():
            values = np.where(begins, tracker.begin(observations, begins), values)
        for env in range(num):
            memory = np.zeros(about.memory_size) if begins[env] else memories[env]
            if not begins[env]:
                action = np.clip(actions[env].astype(float), low, high)
                last = encode(action, about.choices) - bundle.middle
                memory[1 + about.latent_size :] = last
            memories[env] = reference_step(bundle, observations[env], memory)[1]
            wanted = reference_bound(bundle, observations[env], memories[env])
            assert values[env] == pytest.approx(wanted, abs=3e-6)


def test_a_copy_goes_its_own_way(random: Generator):
    tracker = BoundTracker(KINDS["filter"], 2)
    first, second, third = random.normal(size=(3, 2, 5))
    actions = random.normal(size=(2, 2))
    tracker.begin(first)
    other = copy.deepcopy(tracker)
    np.testing.assert_array_equal(other.advance(second, actions), tracker.advance(second, actions))
    tracker.begin(third)
    assert (other.advance(third, actions) != tracker.advance(third, actions)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e20])
@pytest.mark.parametrize("kind", ["filter", "pendulum"])
def test_observations_have_to_be_finite(kind: str, wrong: float):
    bundle = KINDS[kind]
    shape = 2, bundle.description.observation_size
    tracker, rows = BoundTracker(bundle, 2), np.zeros(shape)
    tracker.begin(rows)
    rows[1, 0] = wrong
    tracker.begin(rows, np.array([True, False]))  # The other is not looked at.
    for call in (lambda: tracker.begin(rows), lambda: tracker.advance(rows, np.zeros((2, 2)))):
        with pytest.raises(ValueError, match="to be finite numbers"):
            call()


def test_a_state_that_is_not_known_has_no_bound():
    for kind in ("filter", "pendulum"):
        bundle = KINDS[kind]
        nothing = np.zeros(bundle.description.memory_size)
        assert np.isnan(reference_bound(bundle, np.zeros(5)[: nothing.size], nothing))
    seen = np.array([1.0, 0.0])
    assert np.isnan(reference_bound(KINDS["pendulum"], np.array([np.nan, 0.0]), seen))


def test_a_bound_is_written_and_read(tmp_path: Path):
    for kind in ("filter", "pendulum"):
        write_bundle(KINDS[kind], tmp_path)
        found = read_bundle(tmp_path)
        assert found.description == KINDS[kind].description
        assert set(found.arrays) == set(KINDS[kind].arrays)


def test_a_bundle_without_a_bound_says_so():
    with pytest.raises(ValueError, match="with a bound on empowerment; this one was written"):
        BoundTracker(filter_bundle())


def test_network_and_error_of_a_bound_come_together(tmp_path: Path):
    write_bundle(KINDS["pendulum"], tmp_path)
    fields = json.loads((tmp_path / MANIFEST).read_text())
    assert fields["bound_error"] == pytest.approx(0.02)
    about = KINDS["pendulum"].description
    for wrong in (None, -1.0, float("nan")):
        with pytest.raises(ValueError, match=r"networks to be policy|number of nats"):
            type(about)(**{**vars(about), "bound_error": wrong})


def test_a_bound_of_another_region_is_refused(random: Generator):
    policy, world = without_filter(random)
    other = Box([-1.0, -1.0], [1.0, 1.0], ("a", "b"))
    with pytest.raises(ValueError, match="region of the policy"):
        to_bundle(policy=policy, world=world, model=None, bound=surrogate_of(other, random))
