"""Many environments at once are paid as each by itself, however they are reset."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from controllers_for_tests import pendulum_bundle, with_bound
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from rewards_for_tests import Corridor, bundle_for

from empowerment.controller import Bundle
from empowerment.controller.reward import EmpowermentReward, VectorEmpowermentReward

NUM, STEPS = 5, 40
SETTINGS: dict[str, dict[str, Any]] = {
    "bonus": {"weight": 0.5, "extrinsic": 2.0},
    "shaping": {"shaping": True, "gamma": 0.9},
}


class Blind(Corridor):
    """Observes nothing that is a number where it terminates."""

    def step(self, action: Any) -> Any:
        observation, *rest = super().step(action)
        return (np.full(3, np.nan, np.float32) if rest[1] else observation), *rest


def make(
    kind: str, mode: AutoresetMode, wrap: Callable[[gymnasium.Env], gymnasium.Env] = lambda env: env
) -> SyncVectorEnv:
    # Different limits, so that they end at different times.
    factories = [lambda limit=limit: wrap(Corridor(kind, limit)) for limit in range(3, 3 + NUM)]
    return SyncVectorEnv(factories, autoreset_mode=mode)


def follow(env: VectorEnv, mode: AutoresetMode) -> list[tuple[Any, ...]]:
    """What an environment returns, reset after reset where it does not reset itself."""
    env.action_space.seed(0)
    observations, infos = env.reset(seed=3)
    returned: list[tuple[Any, ...]] = [(observations, infos)]
    for _ in range(STEPS):
        step = env.step(env.action_space.sample())
        returned.append(step)
        over = step[2] | step[3]
        if mode == AutoresetMode.DISABLED and over.any():
            returned.append(env.reset(options={"reset_mask": over.copy()}))
    return returned


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("continuous", "bonus"),
        ("continuous", "shaping"),
        ("discrete", "bonus"),
        ("observed", "shaping"),
        ("binary", "bonus"),
    ],
)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_all_are_paid_as_each_alone(mode: AutoresetMode, kind: str, settings: str):
    bundle, given = bundle_for(kind), SETTINGS[settings]
    vector = VectorEmpowermentReward(make(kind, mode), bundle, **given)
    alone = make(kind, mode, lambda env: EmpowermentReward(env, bundle, **given))
    ends = np.zeros(2, int)
    pairs = list(zip(follow(vector, mode), follow(alone, mode), strict=True))
    for found, wanted in pairs:
        np.testing.assert_array_equal(found[0], wanted[0])
        same_entries(found[-1], wanted[-1])
        if len(found) == 5:
            np.testing.assert_allclose(found[1], wanted[1], atol=1e-7)
            np.testing.assert_array_equal(found[2:4], wanted[2:4])
            ends += [wanted[2].sum(), wanted[3].sum()]
    assert (ends > 5).all()


def same_entries(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare infos, where each has an entry; in `SAME_STEP` the last ones are apart."""
    for name in ("empowerment", "place", "intrinsic_reward", "extrinsic_reward"):
        if name in wanted:
            mask = wanted[f"_{name}"]
            assert found[f"_{name}"][mask].all()
            np.testing.assert_allclose(found[name][mask], wanted[name][mask], atol=1e-7)
    assert ("final_info" in found) == ("final_info" in wanted)
    if "final_info" in wanted:
        final, other = found["final_info"], wanted["final_info"]
        for name in ("empowerment", "place"):
            mask = other[f"_{name}"]
            np.testing.assert_array_equal(final[f"_{name}"], mask)
            np.testing.assert_allclose(final[name][mask], other[name][mask], atol=1e-7)
        for name in ("intrinsic_reward", "extrinsic_reward"):  # With the rewards they belong to.
            mask = other[f"_{name}"]
            np.testing.assert_allclose(found[name][mask], other[name][mask], atol=1e-7)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_weight_of_zero_changes_no_bit(mode: AutoresetMode):
    vector = VectorEmpowermentReward(make("continuous", mode), bundle_for("continuous"), weight=0.0)
    pairs = zip(follow(vector, mode), follow(make("continuous", mode), mode), strict=True)
    for (*found, info), (*wanted, plain) in pairs:
        for one, other in zip(found, wanted, strict=True):
            assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
        for name in plain.keys() - {"final_info", "final_obs"}:
            np.testing.assert_array_equal(info[name], plain[name])


def test_the_step_that_resets_is_paid_nothing():
    mode = AutoresetMode.NEXT_STEP
    vector = VectorEmpowermentReward(make("continuous", mode), bundle_for("continuous"))
    was_over, num_begun = np.zeros(NUM, bool), 0
    for _, rewards, terminated, truncated, infos in follow(vector, mode)[1:]:
        assert (rewards[was_over] == 0).all()
        assert not infos["_intrinsic_reward"][was_over].any()
        assert (infos["empowerment"][was_over] != 0).all()
        assert (infos["empowerment"][terminated] == 0).all()
        num_begun += was_over.sum()
        was_over = terminated | truncated
    assert num_begun > 10


@pytest.mark.parametrize("mode", AutoresetMode)
def test_what_a_terminated_state_shows_does_not_matter(mode: AutoresetMode):
    env = SyncVectorEnv([partial(Blind, "continuous")] * NUM, autoreset_mode=mode)
    vector = VectorEmpowermentReward(env, bundle_for("continuous"))
    returned = [each for each in follow(vector, mode) if len(each) == 5]
    assert sum(each[2].sum() for each in returned) > 5
    assert all(np.isfinite(each[1]).all() for each in returned)


def test_a_variance_is_taken_over_all():
    bundle, mode = bundle_for("continuous"), AutoresetMode.NEXT_STEP
    plain, normal = (
        VectorEmpowermentReward(make("continuous", mode), bundle, extrinsic=0.0, **settings)
        for settings in ({}, {"normalise": "variance", "gamma": 0.9})
    )
    returns, seen, was_over, variance = np.zeros(NUM), [0.0], np.zeros(NUM, bool), 1.0
    for found, wanted in zip(follow(normal, mode)[1:], follow(plain, mode)[1:], strict=True):
        returns = np.where(was_over, returns, 0.9 * returns + wanted[1])
        seen += returns[~was_over].tolist()
        variance = (1.0 + np.sum((np.array(seen) - np.mean(seen)) ** 2)) / len(seen)
        np.testing.assert_allclose(found[1], wanted[1] / variance**0.5, rtol=1e-9)
        was_over = wanted[2] | wanted[3]
    assert normal.scale == pytest.approx(variance**0.5)


@pytest.mark.parametrize(
    ("bundle", "sentence"),
    [
        (with_bound(pendulum_bundle()), "with 2 observed numbers"),
        (bundle_for("discrete"), "1 actions"),
    ],
)
def test_other_environments_are_refused(bundle: Bundle, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        VectorEmpowermentReward(make("continuous", AutoresetMode.NEXT_STEP), bundle)


def test_the_mode_has_to_be_stated_and_kept():
    env = make("continuous", AutoresetMode.SAME_STEP)
    env.metadata = {}
    with pytest.raises(ValueError, match="state their autoreset mode"):
        VectorEmpowermentReward(env, bundle_for("continuous"))
    env = make("continuous", AutoresetMode.NEXT_STEP)
    env.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # It is not.
    vector = VectorEmpowermentReward(env, bundle_for("continuous"))
    with pytest.raises(ValueError, match="last observations of episodes as final_obs"):
        follow(vector, AutoresetMode.SAME_STEP)
