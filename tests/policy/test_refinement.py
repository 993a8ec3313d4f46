"""A surrogate that is refined where a policy goes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.policy.test_agent_training import INPUTS, WORLD, Known

from empowerment.policy import Evaluated, Fit, unfitted_surrogate
from empowerment.policy.refinement import NUM_PLACES, begin, refine

CHANNEL = Known(inputs=INPUTS, steps=1)


def visited(key) -> jax.Array:
    """Sample states in a corner of the box."""
    return 8 + 2 * jax.random.uniform(key, (NUM_PLACES, 2))


def flat_fit() -> Fit:
    """Build a surrogate that was fitted to a constant."""
    states = 8 * jax.random.uniform(jax.random.key(1), (2048, 2))
    sizes = {"width": 32, "depth": 2}
    one = jnp.ones(())
    surrogate = unfitted_surrogate(WORLD.states, 2 * one, one, **sizes, key=jax.random.key(0))
    return Fit(surrogate, Evaluated(states, jnp.full(2048, 2.0)))


def test_the_error_is_that_at_visited_states_before_they_are_fitted_to(getkey):
    at, states = begin(flat_fit()), visited(getkey())
    _, info = refine(at, CHANNEL, WORLD, states, learning_rate=jnp.array(1e-3), key=getkey())
    truth = 2 + jnp.sin(states[:, 0])
    off = jax.vmap(at.surrogate)(states) - truth
    assert float(info.visited_error) == pytest.approx(float(jnp.sqrt(jnp.mean(off**2))), rel=1e-4)
    assert float(info.visited_bound) == pytest.approx(float(truth.mean()), rel=1e-4)
    best = off[jnp.argsort(-jax.vmap(at.surrogate)(states))[: NUM_PLACES // 10]]
    assert float(info.best_error) == pytest.approx(float(jnp.sqrt(jnp.mean(best**2))), rel=1e-4)
    assert float(info.best_error) != pytest.approx(float(info.visited_error), rel=1e-2)


def test_refinement_learns_where_the_policy_goes_and_keeps_the_rest(getkey):
    at, errors = begin(flat_fit()), []
    for _ in range(12):
        states = visited(getkey())
        at, info = refine(at, CHANNEL, WORLD, states, learning_rate=jnp.array(3e-3), key=getkey())
        errors.append(float(info.visited_error))
    assert errors[-1] < 0.1 * errors[0]
    rest = jax.vmap(at.surrogate)(at.region.states)
    assert float(jnp.sqrt(jnp.mean((rest - 2.0) ** 2))) < 0.1
    assert int(at.count) == 12


def test_the_oldest_states_are_forgotten(getkey):
    at = begin(flat_fit())
    kept = len(at.recent.bounds) // NUM_PLACES
    first = visited(getkey())
    for number in range(kept + 1):
        states = visited(getkey()) if number else first
        at, _ = refine(at, CHANNEL, WORLD, states, learning_rate=jnp.array(1e-3), key=getkey())
        known = set(map(tuple, np.asarray(at.recent.states).tolist()))
        was_kept = tuple(np.asarray(first[0]).tolist()) in known
        assert was_kept == (number < kept)
