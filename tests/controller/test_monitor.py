"""The monitor of the model: false alarms as rarely as stated, and changes of the system found."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from controllers_for_tests import filter_bundle, pendulum_bundle, with_filter
from numpy.random import Generator
from scipy.stats import betabinom

from empowerment.agent import monitored, to_bundle
from empowerment.controller import (
    Bundle,
    Controller,
    Description,
    Safety,
    read_bundle,
    write_bundle,
)
from empowerment.controller.bundle_io import MANIFEST, WEIGHTS
from empowerment.controller.calibration import FALSE_ALARMS_PER_STEP, with_monitor
from empowerment.controller.controller import EngineName
from empowerment.controller.description import MonitorLimits
from empowerment.controller.monitor import Innovations, Smoothed
from empowerment.controller.numpy_engine import NumpyEngine
from empowerment.data import Episode
from empowerment.files import encode
from empowerment.model import Filter

ENGINES: tuple[EngineName, ...] = "numpy", "numba"
DYNAMICS = np.array([[0.99, 0.1], [-0.1, 0.95]])
CONTROL = np.array([[0.0], [0.1]])
PROCESS, NOISE = 0.02, 0.05
NAMES = "position", "velocity"
LINEAR = ("identity",)


def linear_bundle() -> Bundle:
    """A filter of an oscillator that is exactly linear, with gains near the best ones."""

    def raw(scale: float) -> float:  # The softplus of it is the scale.
        return float(np.log(np.expm1(scale)))

    about = Description(
        observation_names=NAMES,
        action_names=("force",),
        low=(-1.0,),
        high=(1.0,),
        networks=dict.fromkeys(
            ("policy", "recognition", "start", "transition", "measurement"), LINEAR
        ),
        latent_size=2,
    )
    nothing = np.zeros((2, 2))
    transition = np.hstack([DYNAMICS - np.eye(2), CONTROL])
    weights = {
        "policy": ([[0.0, -1.0], [0.0, 0.0]], [0.0, 0.0]),
        "recognition": (np.eye(2), [0.0, 0.0]),
        "start": (np.eye(2), [0.0, 0.0]),
        "transition": (np.vstack([transition, np.zeros((2, 3))]), [0, 0, raw(0.03), raw(0.03)]),
        "measurement": (np.vstack([np.eye(2), nothing]), [0, 0, raw(NOISE), raw(NOISE)]),
    }
    arrays = {"states.centre": np.zeros(2), "states.half_width": np.full(2, 2.0)}
    for name, size in (("observations", 2), ("actions", 1)):
        arrays |= {f"{name}.offset": np.zeros(size), f"{name}.scale": np.ones(size)}
    for name, (weight, bias) in weights.items():
        arrays |= {f"{name}.0.weight": np.array(weight), f"{name}.0.bias": np.array(bias)}
    return Bundle(about, {name: array.astype(np.float32) for name, array in arrays.items()})


DECODER = {"decoder.0.weight": np.eye(2, dtype=np.float32), "decoder.0.bias": np.zeros(2, "f")}


class Oscillator:
    """The system itself, which may change; its sensors may have heavy tails."""

    def __init__(self, random: Generator, tails: float = np.inf):
        self.random, self.state, self.tails = random, 0.5 * random.normal(size=2), tails
        self.dynamics, self.force = DYNAMICS, 1.0

    def observe(self) -> np.ndarray:
        share = 1.0 if np.isinf(self.tails) else self.random.chisquare(self.tails) / self.tails
        noise = NOISE * self.random.normal(size=2) / share**0.5  # Student's t.
        return (self.state + noise).astype(np.float32)

    def apply(self, action: np.ndarray) -> None:
        noise = PROCESS * self.random.normal(size=2)
        self.state = self.dynamics @ self.state + self.force * CONTROL @ action + noise


def recorded(
    random: Generator, count: int, length: int, tails: float = np.inf
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Episodes of random actions."""
    for _ in range(count):
        system, actions = Oscillator(random, tails), random.uniform(-1, 1, (length, 1))
        rows = [system.observe()]
        for action in actions:
            system.apply(action)
            rows.append(system.observe())
        yield np.array(rows), actions


def calibrated(
    random: Generator,
    count: int = 5,
    length: int = 200,
    tails: float = np.inf,
    rate: float = FALSE_ALARMS_PER_STEP,
) -> Bundle:
    episodes = recorded(random, count, length, tails)
    return with_monitor(linear_bundle(), LINEAR, DECODER, episodes, rate=rate)


@functools.cache
def monitored_oscillator() -> Bundle:
    """Calibrated on as many steps as it needs for the rate of false alarms that is the default."""
    bundle = calibrated(np.random.default_rng(0), count=55)
    assert limits_of(bundle).false_alarms_per_step == pytest.approx(1e-4, rel=0.1)
    return bundle


def limits_of(bundle: Bundle) -> MonitorLimits:
    limits = bundle.description.monitor
    assert limits is not None
    return limits


def steps_to_fault(
    controller: Controller, random: Generator, change: Callable[[Oscillator, np.ndarray], Any]
) -> int:
    """Run for 300 steps, then with a change, until the fault."""
    system = Oscillator(random)
    controller.reset()
    for _ in range(300):
        system.apply(controller.step(system.observe()))
    assert controller.fault is None
    for count in range(1, 301):
        seen = system.observe()
        seen = change(system, seen)
        system.apply(controller.step(seen))
        if controller.fault is not None:
            return count
    raise AssertionError("The change was not found.")


def test_false_alarms_are_as_rare_as_stated(random: Generator):
    rate, tails, alarms, num_blocks, exceeding, blocks = 0.004, 1.5, 0, 0, 0.0, 0.0
    for _ in range(3):
        bundle = calibrated(random, count=5, length=400, tails=tails, rate=rate)
        limits = limits_of(bundle)
        assert 0.8 * rate < limits.false_alarms_per_step <= rate
        blocks += (limits.num_steps + 50) / 50
        exceeding += limits.false_alarms_per_step * (limits.num_steps + 50)
        controller, system = Controller(bundle, engine="numpy"), Oscillator(random, tails)
        for _ in range(2000):
            system.apply(controller.step(system.observe()))
            if controller.fault is not None:
                alarms += 1
                controller.reset()
        num_blocks += 2000 // 50
    # Of new blocks so many exceed the largest few of those that the threshold is from; so many
    # alarms or more are not improbable, nor are there ever none.
    assert betabinom.sf(alarms - 1, num_blocks, exceeding, blocks - exceeding) > 0.001
    assert alarms > 0


def test_few_data_state_the_rate_that_they_prove(random: Generator):
    bundle = calibrated(random, count=4, length=200)
    limits = limits_of(bundle)
    assert limits.num_steps == 4 * (201 - limits.settling)
    assert limits.false_alarms_per_step == pytest.approx(1 / (limits.num_steps + 50))
    proven = limits_of(calibrated(np.random.default_rng(5), count=4, rate=0.002))
    raised = limits_of(calibrated(np.random.default_rng(5), count=4, rate=0.0005))
    ratio = raised.false_alarms_per_step / 0.0005
    assert ratio > 2
    assert raised.threshold == pytest.approx(proven.threshold * ratio**0.5)


def test_too_few_data_or_too_poor_a_model_have_no_monitor(random: Generator):
    assert calibrated(random, count=1, length=200).description.monitor is None
    rows, actions = next(recorded(random, 1, 400))
    bundle = with_monitor(linear_bundle(), LINEAR, DECODER, [(1e9 * rows, actions)])
    assert bundle.description.monitor is None
    # A long spell in which the model is wrong, although it is right nearly always.
    rows = np.concatenate([rows, np.tile([3.0, 0.0], (30, 1))])
    actions = np.concatenate([actions, np.zeros((30, 1))])
    assert with_monitor(linear_bundle(), LINEAR, DECODER, [(rows, actions)]).arrays.keys() == (
        linear_bundle().arrays.keys()
    )


def stuck(system: Oscillator, seen: np.ndarray) -> np.ndarray:
    return np.array([1.0, seen[1]], np.float32)


def shifted(system: Oscillator, seen: np.ndarray) -> np.ndarray:
    return seen + np.array([0.0, 0.5], np.float32)


def unstable(system: Oscillator, seen: np.ndarray) -> np.ndarray:
    system.dynamics = np.array([[1.0, 0.1], [0.1, 1.0]])
    return seen


def reversed_force(system: Oscillator, seen: np.ndarray) -> np.ndarray:
    system.force = -4.0
    return seen


@pytest.mark.parametrize(
    ("change", "most", "name"),
    [
        (stuck, 10, "position"),
        (shifted, 10, "velocity"),
        (unstable, 100, None),
        (reversed_force, 100, None),
    ],
)
def test_changes_are_found_soon(
    change: Callable[[Oscillator, np.ndarray], np.ndarray],
    most: int,
    name: str | None,
    random: Generator,
):
    controller = Controller(
        monitored_oscillator(), engine="numpy", safety=Safety(safe_action=[0.25])
    )
    assert steps_to_fault(controller, random, change) <= most
    fault = controller.fault
    assert fault is not None
    assert fault.startswith("observations are unfamiliar: ")
    assert name is None or name in fault
    # The safe action is latched, whatever is observed, until a reset.
    np.testing.assert_array_equal(controller.step(np.zeros(2, np.float32)), [0.25])
    assert controller.num_faults == 1
    controller.reset()
    controller.step(np.zeros(2, np.float32))
    assert controller.fault is None


def test_the_monitor_can_be_switched_off(random: Generator):
    controller = Controller(monitored_oscillator(), engine="numpy", safety=Safety(monitor=False))
    with pytest.raises(AssertionError, match="was not found"):
        steps_to_fault(controller, random, stuck)


def test_known_systems_have_no_monitor():
    about = pendulum_bundle().description
    limits = MonitorLimits(5.0, 1e-4, 1000, 25.0, 0.1, 3, 10)
    with pytest.raises(ValueError, match="a monitor only with a filter"):
        dataclasses.replace(about, monitor=limits)


def test_missing_observations_do_not_trigger_it(random: Generator):
    kinds = [None, np.full(2, np.nan), np.array([np.inf, 0.0])]
    safety = Safety(max_missing=1000)
    controller = Controller(monitored_oscillator(), engine="numpy", safety=safety)
    for share, spell in ((0.1, 1), (0.02, 20)):
        controller.reset()
        system, left = Oscillator(random), 0
        for time in range(600):
            left = spell if left == 0 and random.random() < share else max(left - 1, 0)
            seen = system.observe()
            system.apply(controller.step(kinds[time % 3] if left else seen))
        assert controller.fault is None
    assert controller.num_missing > 100


@pytest.mark.parametrize("size", [1e2, 1e6, 1e30, np.inf, np.nan])
def test_it_takes_three_observations_in_a_row_of_any_size(size: float):
    limits = MonitorLimits(4.0, 1e-4, 1000, 25.0, 0.1, 1, 1)
    smoothed = Smoothed(limits, 2)
    for _ in range(100):
        assert smoothed.take(np.ones(2)) <= 1.0
    levels = [smoothed.take(np.array([1.0, size])) for _ in range(3)]
    assert levels[0] < limits.threshold < levels[2] < 25.0


def test_engines_agree(random: Generator):
    bundle = monitored_oscillator()
    controllers = [Controller(bundle, engine=name) for name in ENGINES]
    system, found = Oscillator(random), []
    for time in range(400):
        seen = system.observe() if time < 300 else stuck(system, system.observe())
        given = None if time % 37 == 36 else seen
        actions = [controller.step(given) for controller in controllers]
        np.testing.assert_allclose(actions[0], actions[1], atol=1e-5)
        system.apply(actions[0])
        found.append([controller.fault for controller in controllers])
    assert all(one == other for one, other in found)
    assert found[299][0] is None
    assert found[-1][0] is not None


def test_what_is_expected_is_that_of_the_model(random: Generator):
    policy, world, model = with_filter(random)
    episode = Episode(
        random.normal(size=(231, 5)),
        random.uniform(*action_limits(world), size=(230, 2)),
        terminated=False,
        truncated=True,
    )
    bundle = monitored(to_bundle(policy=policy, world=world, model=model), model, [episode])
    assert limits_of(bundle).num_steps == 221
    spread = bundle.arrays["innovations.scale"]
    own, engine = Filter(model), NumpyEngine(bundle)
    innovations, state = (
        Innovations(bundle, engine),
        own.init(jnp.asarray(episode.observations[:1])),
    )
    engine.observation = episode.observations[0]
    engine.run(seen=True)
    for action, seen in zip(episode.actions[:3], episode.observations[1:], strict=False):
        engine.set_action(action)
        engine.observation = seen
        engine.run(seen=True)
        expected = model.step(state, model.actions.scaled(jnp.asarray(action))).mean
        wanted = model.observations.scaled(jnp.asarray(seen)) - model.decode(expected).mean
        np.testing.assert_allclose(innovations(seen), wanted / spread, atol=1e-5)
        state = own.update(state, jnp.asarray(action), jnp.asarray(seen))


def action_limits(world: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(world.world.actions.low), np.asarray(world.world.actions.high)


def test_discrete_actions_and_holes_in_the_data_are_taken(random: Generator):
    bundle = filter_bundle(choices=(3, 2))
    rows, actions = random.normal(size=(300, 5)), random.integers(0, (3, 2), (299, 2))
    rows[50] = np.nan
    decoder = {
        "decoder.0.weight": random.normal(size=(5, 4)).astype(np.float32),
        "decoder.0.bias": np.zeros(5, np.float32),
    }
    made = with_monitor(bundle, LINEAR, decoder, [(rows, actions)])
    assert limits_of(made).num_steps == 300 - 10 - 1 - 2


def test_a_monitor_is_written_and_read(tmp_path: Path):
    bundle = monitored_oscillator()
    write_bundle(bundle, tmp_path)
    found = read_bundle(tmp_path)
    assert found.description == bundle.description
    assert set(found.arrays) == set(bundle.arrays)
    fields = json.loads((tmp_path / MANIFEST).read_text())
    assert fields["monitor"]["false_alarms_per_step"] == limits_of(bundle).false_alarms_per_step


def test_bundles_written_before_have_none(tmp_path: Path):
    write_bundle(linear_bundle(), tmp_path)
    fields = json.loads((tmp_path / MANIFEST).read_text())
    assert fields.pop("monitor") is None
    del fields["sha256"]
    digest = hashlib.sha256((tmp_path / WEIGHTS).read_bytes() + encode(fields)).hexdigest()
    (tmp_path / MANIFEST).write_text(json.dumps({**fields, "sha256": digest}))
    assert Controller.load(tmp_path, engine="numpy").description.monitor is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 0.0},
        {"threshold": float("nan")},
        {"threshold": 1e300},
        {"false_alarms_per_step": 0.0},
        {"most": 5.0},
        {"weight": 1.5},
        {"running": 0},
        {"settling": 0},
        {"num_steps": 1 << 50},
    ],
    ids=str,
)
def test_odd_limits_are_refused(wrong: dict[str, Any]):
    limits = MonitorLimits(5.0, 1e-4, 1000, 25.0, 0.1, 3, 10)
    with pytest.raises(ValueError, match=f"Expected .*{next(iter(wrong))}"):
        dataclasses.replace(limits, **wrong)
