"""The reward of data: which steps it is learnt from, how well, and in what unit."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.data import Episode, Trajectories
from empowerment.data.spaces import numbered_spaces
from empowerment.model import (
    Filter,
    ModelSettings,
    Scaling,
    check_rewards,
    filtered_steps,
    fit_reward,
    typical_reward,
    untrained_dvbf,
)
from empowerment.model.reward import Steps
from empowerment.worlds import Box

LENGTH = 6
STATES = Box([-1.0, -1.0], [1.0, 1.0], ("a", "b"))
AS_IT_IS = Scaling(jnp.zeros(1), jnp.ones(1))


def made(*episodes: tuple[int, bool]) -> Trajectories:
    """Return episodes whose actions are paid twice what they are."""
    random, parts = np.random.default_rng(3), []
    for steps, terminated in episodes:
        actions = random.uniform(0.1, 1, (steps, 1))
        rows = np.concatenate([[[0.0]], np.cumsum(actions, axis=0)])
        parts.append(Episode(rows, actions, terminated, not terminated, 2 * actions[:, 0]))
    return Trajectories(tuple(parts), numbered_spaces(1, 1), {})


def test_steps_are_those_of_the_data(getkey):
    data, settings = made((9, True), (8, False)), ModelSettings(width=4, latent_size=3)
    model = untrained_dvbf(settings, AS_IT_IS, AS_IT_IS, key=getkey())
    steps = filtered_steps(model, data, length=LENGTH, seed=0)
    alive = np.asarray(steps.alive) > 0
    assert 0 < alive.sum() < len(alive)
    np.testing.assert_allclose(steps.rewards[alive], 2 * steps.actions[alive, 0], rtol=1e-6)
    np.testing.assert_array_equal(steps.rewards[~alive], 0)
    # Each state is that of a filter that follows a window up to there, and past the end too.
    whole = data.episodes[1]
    rows, actions = jnp.asarray(whole.observations, float), jnp.asarray(whole.actions, float)
    for start in range(4):
        states = Filter(model).run(
            rows[start : start + LENGTH], actions[start : start + LENGTH - 1]
        )
        for before, action, after in zip(
            states[-3:], actions[start + 3 :], states[-2:], strict=False
        ):
            off = jnp.abs(steps.before - before[None]).sum(1) + jnp.abs(
                steps.after - after[None]
            ).sum(1)
            at = int(jnp.argmin(off))
            assert float(off[at]) < 1e-4
            assert float(steps.actions[at, 0]) == pytest.approx(float(action[0]))


def steps_of(count: int, *, ends: bool, key) -> Steps:
    """Return steps that are paid by where they lead and what they cost, unless all has ended."""
    before, after, action = (
        jax.random.uniform(k, (count, size), minval=-1.0)
        for k, size in zip(jax.random.split(key, 3), (2, 2, 1), strict=True)
    )
    alive = jnp.where(ends, before[:, 1] < 0.3, True).astype(float)  # noqa: FBT003 (a mask)
    paid = alive * (50 + 30 * jnp.sin(3 * after[:, 0]) - 10 * action[:, 0] ** 2)
    return Steps(before, action, after, paid, alive)


@pytest.mark.parametrize("ends", [False, True])
def test_a_reward_is_learnt_and_judged_by_others(getkey, monkeypatch, ends: bool):  # noqa: FBT001
    monkeypatch.setattr("empowerment.model.reward._NUM_UPDATES", 800)
    train, others = (steps_of(count, ends=ends, key=getkey()) for count in (4000, 500))
    reward, facts = fit_reward(
        train, others, STATES, AS_IT_IS, unit=10.0, width=32, depth=2, key=getkey()
    )
    assert facts["unit"] == 10
    assert facts["error"] < (0.4 if ends else 0.15) * facts["spread"]
    kept = np.asarray(others.alive) > 0
    assert facts["spread"] == pytest.approx(float(np.std(others.rewards[kept])), rel=1e-5)
    found = 10 * jax.vmap(reward)(others.before, others.actions, others.after)
    error = np.sqrt(np.mean(np.asarray(found - others.rewards)[kept] ** 2))
    assert facts["error"] == pytest.approx(float(error), rel=1e-4)
    if ends:
        assert abs(facts["after_end"]) < 0.15 * facts["spread"]
    else:
        assert facts["after_end"] is None


def test_what_is_always_paid_is_learnt_with_the_end(getkey, monkeypatch):
    """As of a pole on a cart: one for each step until it falls."""
    monkeypatch.setattr("empowerment.model.reward._NUM_UPDATES", 400)
    steps = steps_of(2000, ends=True, key=getkey())
    steps = replace(steps, rewards=steps.alive)
    reward, facts = fit_reward(steps, steps, STATES, AS_IT_IS, unit=1.0, width=16, key=getkey())
    assert facts["spread"] == 0
    up, down, nothing = jnp.array([0.0, -0.5]), jnp.array([0.0, 0.9]), jnp.zeros(1)
    assert float(reward(up, nothing, down)) == pytest.approx(1, abs=0.05)
    assert float(reward(down, nothing, down)) == pytest.approx(0, abs=0.05)


def test_the_unit_is_what_an_action_is_typically_paid():
    data = made((4, False))
    assert typical_reward(data) == pytest.approx(
        float(np.sqrt(np.mean(4 * data.episodes[0].actions ** 2))), rel=1e-6
    )
    nothing = replace(data.episodes[0], rewards=np.zeros(4))
    assert typical_reward(replace(data, episodes=(nothing,))) == 1


def test_rewards_have_to_be_there_and_finite():
    data = made((3, False), (2, True))
    check_rewards(data)
    bare = tuple(replace(each, rewards=None) for each in data.episodes)
    with pytest.raises(ValueError, match="Expected data with rewards"):
        check_rewards(replace(data, episodes=bare))
    odd = replace(data.episodes[1], rewards=np.array([1.0, np.inf]))
    with pytest.raises(ValueError, match="episode 1 has some that are not"):
        check_rewards(replace(data, episodes=(data.episodes[0], odd)))
