"""Empowerment as a reward: what is paid, what is refused, and an environment that stays itself."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from controllers_for_tests import filter_bundle, pendulum_bundle, with_bound
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import Autoreset, RescaleAction
from rewards_for_tests import Corridor, bundle_for

from empowerment.controller import Bundle, read_bundle, write_bundle
from empowerment.controller.bundle_io import to_npz
from empowerment.controller.pay import Pay, Spread
from empowerment.controller.reference import reference_bound, reference_step
from empowerment.controller.reward import EmpowermentReward
from empowerment.environments import ActionRepeat

KINDS = {name: bundle_for(name) for name in ("continuous", "discrete", "observed", "binary")}


def empowerments(kind: str, seed: int, steps: int) -> tuple[list[float], list[Any]]:
    """Empowerment after each step by the reference, with what the environment returned."""
    bundle, env = KINDS[kind], Corridor(kind)
    about, (low, high) = bundle.description, bundle.limits
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    memory = reference_step(bundle, observation, np.zeros(about.memory_size))[1]
    values, steps_taken = [reference_bound(bundle, observation, memory)], []
    for _ in range(steps):
        action = env.action_space.sample()
        step = env.step(action)
        taken = np.clip(np.ravel(action).astype(float) - start_of(env), low, high)
        encoded = [np.eye(n)[int(c)] for n, c in zip(about.choices, taken, strict=False)]
        memory[1 + about.latent_size :] = np.concatenate(encoded or [taken - bundle.middle])
        memory = reference_step(bundle, step[0], memory)[1]
        values.append(0.0 if step[2] else reference_bound(bundle, step[0], memory))
        steps_taken.append((action, *step))
        if step[2] or step[3]:
            break
    return values, steps_taken


def start_of(env: gymnasium.Env) -> Any:
    return np.ravel(getattr(env.action_space, "start", 0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shaping", [False, True])
def test_a_step_is_paid_as_the_reference_says(kind: str, shaping):
    settings: dict[str, Any] = {"weight": 0.5, "extrinsic": 2.0, "shaping": shaping, "gamma": 0.9}
    ends = set()
    for seed in range(4):
        values, steps = empowerments(kind, seed, 40)
        terminated = truncated = False
        env = EmpowermentReward(Corridor(kind), KINDS[kind], **settings)
        _, info = env.reset(seed=seed)
        assert info["empowerment"] == pytest.approx(values[0], abs=2e-5)
        for before, after, (action, *wanted) in zip(values, values[1:], steps, strict=False):
            observation, reward, terminated, truncated, info = env.step(action)
            intrinsic = 0.9 * after - before if shaping else after
            assert reward == pytest.approx(2.0 * wanted[1] + 0.5 * intrinsic, abs=4e-5)
            assert info["intrinsic_reward"] == pytest.approx(intrinsic, abs=4e-5)
            assert info["empowerment"] == pytest.approx(after, abs=2e-5)
            assert info["extrinsic_reward"] == wanted[1]
            assert info["place"] == wanted[4]["place"]
            np.testing.assert_array_equal(observation, wanted[0])
            assert (terminated, truncated) == (wanted[2], wanted[3])
        ends.add((terminated, truncated))
        assert (info["empowerment"] == 0) == terminated
    assert ends == {(True, False), (False, True)}


def test_shaping_pays_what_depends_on_the_start_alone():
    env = EmpowermentReward(
        Corridor("continuous"), KINDS["continuous"], extrinsic=0.0, shaping=True, gamma=0.8
    )
    for seed in range(3):
        _, info = env.reset(seed=seed)
        env.action_space.seed(seed)
        first, total, discount, is_over = info["empowerment"], 0.0, 1.0, False
        while not is_over:
            _, reward, terminated, truncated, info = env.step(env.action_space.sample())
            total, discount = total + discount * reward, 0.8 * discount
            is_over = terminated or truncated
        assert total == pytest.approx(discount * info["empowerment"] - first, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_zero_changes_no_bit(kind: str):
    bare, wrapped = Corridor(kind), EmpowermentReward(Corridor(kind), KINDS[kind], weight=0.0)
    for seed in range(3):
        bare.action_space.seed(seed)
        pairs: list[Any] = [(bare.reset(seed=seed), wrapped.reset(seed=seed))]
        while len(pairs) == 1 or not (pairs[-1][0][2] or pairs[-1][0][3]):
            action = bare.action_space.sample()
            pairs.append((bare.step(action), wrapped.step(action)))
        for (*plain, plain_info), (*paid, info) in pairs:
            assert pickle.dumps(plain) == pickle.dumps(paid)
            assert {name: info[name] for name in plain_info} == plain_info
            assert np.isfinite(info["empowerment"])


def test_the_spread_is_that_of_the_discounted_returns():
    rng = np.random.default_rng(0)
    rewards, spread = rng.normal(2.0, 1.0, size=(50, 3)), Spread(3, 0.9)
    returns, seen = np.zeros(3), [0.0]  # And one observation of mean 0 and variance 1.
    for row in rewards:
        returns = 0.9 * returns + row
        seen += returns.tolist()
        spread.update(row)
        deviation = np.array(seen) - np.mean(seen)
        wanted = (1.0 + np.sum(deviation**2)) / len(seen)
        assert spread.variance == pytest.approx(wanted, rel=1e-12)


def test_normalised_rewards_are_in_units_of_the_spread():
    plain, normal = (
        EmpowermentReward(Corridor("continuous"), KINDS["continuous"], extrinsic=0.0, **settings)
        for settings in ({}, {"normalise": "variance", "gamma": 0.9})
    )
    spread = Spread(1, 0.9)
    assert (plain.scale, normal.scale) == (1.0, 1.0)
    for seed in range(4):
        for each in (plain, normal):
            each.reset(seed=seed)
        plain.action_space.seed(seed)
        is_over = False
        while not is_over:
            action = plain.action_space.sample()
            wanted = plain.step(action)
            spread.update(np.array([wanted[1]]))  # It goes on where episodes end.
            found = normal.step(action)
            assert found[1] == pytest.approx(wanted[1] / spread.variance**0.5)
            assert found[4]["empowerment"] == wanted[4]["empowerment"]
            is_over = wanted[2] or wanted[3]
    assert normal.scale == pytest.approx(spread.variance**0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_gymnasium_has_no_complaints(kind: str):
    env = EmpowermentReward(Corridor(kind), KINDS[kind])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env, skip_render_check=True)
    said = [str(each.message) for each in caught]
    own = [text for text in said if "different from the unwrapped version" not in text]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(Corridor(kind), skip_render_check=True)
    assert own == [str(each.message) for each in caught]


def test_a_specification_makes_the_same_environment(tmp_path: Path):
    write_bundle(with_bound(pendulum_bundle()), tmp_path)
    env = EmpowermentReward(gymnasium.make("empowerment/Pendulum-v0"), tmp_path, weight=0.3)
    assert env.spec is not None
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    for each in (env, again):
        each.reset(seed=0)
    assert env.step(np.ones(1))[1] == again.step(np.ones(1))[1] != 0


@pytest.mark.parametrize("source", ["folder", "text", "npz"])
def test_a_source_is_a_folder_or_a_file(source: str, tmp_path: Path):
    bundle = KINDS["continuous"]
    write_bundle(bundle, tmp_path)
    (tmp_path / "it.npz").write_bytes(to_npz(bundle))
    given = {"folder": tmp_path, "text": str(tmp_path), "npz": tmp_path / "it.npz"}[source]
    env, direct = (EmpowermentReward(Corridor("continuous"), s) for s in (given, bundle))
    assert env.reset(seed=0)[1]["empowerment"] == direct.reset(seed=0)[1]["empowerment"]


def changed(**fields: Any) -> Bundle:
    bundle = KINDS["continuous"]
    return Bundle(type(bundle.description)(**{**vars(bundle.description), **fields}), bundle.arrays)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "other sizes": (with_bound(pendulum_bundle()), {}, "with 2 observed numbers and 1 actions"),
    "other limits": (changed(low=(-3.0, 0.5)), {}, r"actions from \[-3.0, 0.5\]"),
    "other choices": (KINDS["discrete"], {}, "1 actions|actions of"),
    "no bound": (filter_bundle(seen=3), {}, "a bound on empowerment"),
    "repeated": (changed(action_repeat=3), {}, "repeats actions 3 times"),
    "no run": (Path("nowhere"), {}, "A finished training run writes one"),
    "no archive": (Path(__file__).with_suffix(".npz"), {}, "cannot be read"),
    "nothing": (None, {}, "source to be a run folder"),
    "negative weight": (None, {"weight": -0.1}, "weight to be at least 0; got -0.1"),
    "not finite": (None, {"weight": float("nan")}, "weight to be a finite number"),
    "infinite": (None, {"extrinsic": float("inf")}, "extrinsic to be a finite number"),
    "negative extrinsic": (None, {"extrinsic": -1.0}, "extrinsic to be at least 0"),
    "no discount": (None, {"shaping": True, "gamma": 0.0}, "gamma to be above 0 and at most 1"),
    "large discount": (None, {"shaping": True, "gamma": 1.01}, "gamma to be above 0"),
    "odd discount": (None, {"shaping": True, "gamma": float("nan")}, "gamma to be a finite"),
    "endless": (None, {"normalise": "variance", "gamma": 1.0}, "gamma to be above 0 and below 1"),
    "two scales": (None, {"shaping": True, "normalise": "variance"}, "'none' with shaping"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(case: str):
    source, settings, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=sentence):
        EmpowermentReward(Corridor("continuous"), source, **settings)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"weight": "much"}, "weight to be a finite number; got 'much'"),
        ({"extrinsic": None}, "extrinsic to be a finite number; got None"),
        ({"normalise": "mean"}, "normalise to be 'none' or 'variance'; got 'mean'"),
    ],
)
def test_what_is_of_another_type_is_refused_too(changes: dict[str, Any], sentence: str):
    usual = {"weight": 1, "extrinsic": 1, "normalise": "none", "shaping": False, "gamma": 0.9}
    with pytest.raises(ValueError, match=sentence):
        Pay(1, **{**usual, **changes})


def test_wrappers_that_hide_steps_are_refused():
    env, bundle, unit = Corridor("continuous"), KINDS["continuous"], np.zeros((2, 2), np.float32)
    unit[1] = 1.0
    with pytest.raises(ValueError, match="goes around this wrapper"):
        EmpowermentReward(Autoreset(env), bundle)
    with pytest.raises(ValueError, match="scale actions go around this one"):
        EmpowermentReward(RescaleAction(env, *unit), bundle)
    RescaleAction(EmpowermentReward(env, bundle), *unit)
    EmpowermentReward(ActionRepeat(env, 3), changed(action_repeat=3))
    images = gymnasium.wrappers.TransformObservation(
        env, lambda x: x, gymnasium.spaces.Box(0, 255, (4, 4, 3), np.uint8)
    )
    with pytest.raises(ValueError, match="such as an image"):
        EmpowermentReward(images, bundle)


def test_an_observation_that_is_no_number_is_refused():
    env = Corridor("continuous")
    wrapped = EmpowermentReward(env, KINDS["continuous"])
    wrapped.reset(seed=0)
    env.unwrapped.place[0] = np.nan  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="to be finite numbers"):
        wrapped.step(np.zeros(2))


@pytest.mark.parametrize("damage", ["cut off", "no zip", "no description", "huge"])
def test_damaged_archives_are_refused(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, data = tmp_path / "it.npz", to_npz(KINDS["continuous"])
    if damage == "no description":
        np.savez(file, other=np.zeros(3))
    else:
        file.write_bytes({"cut off": data[:-50], "no zip": b"not a zip", "huge": data}[damage])
    if damage == "huge":
        monkeypatch.setattr("empowerment.controller.bundle_io._LARGEST_WEIGHTS", len(data) - 4000)
    with pytest.raises(ValueError, match=r"that empower export wrote|at most"):
        EmpowermentReward(Corridor("continuous"), file)


SCRIPT = """
import multiprocessing, sys

REFUSED = "jax jaxlib equinox optax matplotlib onnx scipy"


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED.split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
import gymnasium, numpy as np
import empowerment as emp
import empowerment.environments


class Still(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.array([0.5, -0.1], np.float32), 0.0, False, False, {}


def paid(env, shape):
    env.reset(seed=0)
    return env.step(np.ones(shape, np.float32))[1]


def work(env, pipe):
    pipe.send(paid(env, 1))


env = emp.EmpowermentReward(Still(), sys.argv[1])
ours, theirs = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=work, args=(env, theirs))
process.start()
both = gymnasium.vector.AsyncVectorEnv([Still, Still], context="fork")
many = paid(emp.VectorEmpowermentReward(both, sys.argv[1]), (2, 1))
print(paid(env, 1), ours.recv(), *many, sorted(set(sys.modules) & set(REFUSED.split())))
process.join()
both.close()
"""


def test_it_needs_no_jax_and_forks(tmp_path: Path):
    write_bundle(with_bound(pendulum_bundle()), tmp_path)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *paid, loaded = done.stdout.split(maxsplit=4)
    bundle = read_bundle(tmp_path)
    wanted = reference_bound(bundle, np.array([0.5, -0.1]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(np.array(paid, float), wanted, atol=1e-5)
    assert loaded.strip() == "[]"
