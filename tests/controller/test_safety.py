"""What a controller does when the world misbehaves, each by injection."""

import json
from pathlib import Path

import numpy as np
import pytest
from controllers_for_tests import filter_bundle, pendulum_bundle
from numpy.random import Generator

from empowerment.controller import Bundle, Controller, Safety
from empowerment.controller.controller import EngineName
from empowerment.controller.numpy_engine import NUM_KEPT

FILTER, PENDULUM = filter_bundle(), pendulum_bundle()
MILLISECOND = 1_000_000
GOOD, BAD = np.zeros(5, np.float32), np.array([0, np.nan, 0, 0, 0], np.float32)
MASKED = np.ma.MaskedArray(GOOD, mask=np.arange(5) == 2)


class Clock:
    """A clock that goes as it is told."""

    def __init__(self):
        self.now = 0

    def __call__(self) -> int:
        return self.now


def controller_at(interval: float = 0.01, **safety) -> tuple[Controller, Clock]:
    clock, watched = Clock(), Safety(interval=interval, **safety)
    return Controller(FILTER, safety=watched, engine="numpy", clock=clock), clock


def steps(controller: Controller, clock: Clock, gaps: list[float]) -> list[str | None]:
    """Make steps so many milliseconds apart, and give what was at fault after each."""
    faults = []
    for gap in gaps:
        clock.now += round(gap * MILLISECOND)
        controller.step(GOOD)
        faults.append(controller.fault)
    return faults


class TestMissingObservations:
    @pytest.mark.parametrize("bad", [None, BAD, MASKED, [0, 0, np.inf, 0, 0], np.full(5, -np.inf)])
    def test_it_is_predicted_and_counted(self, bad):
        controller = Controller(FILTER, engine="numpy")
        before = controller.step(GOOD)
        action = controller.step(bad)
        assert controller.num_missing == 1
        assert controller.fault is None
        assert np.isfinite(action).all()
        assert not np.array_equal(action, before)  # Time goes on in the filter.

    def test_so_many_running_are_a_fault_until_reset(self):
        controller = Controller(FILTER, safety=Safety(max_missing=3), engine="numpy")
        for observation in (GOOD, None, BAD, GOOD, None, BAD):
            controller.step(observation)
        assert controller.fault is None
        action = controller.step(None)
        assert controller.fault == "3 observations running were missing"
        np.testing.assert_array_equal(action, controller.safe_action)
        np.testing.assert_array_equal(controller.step(GOOD), controller.safe_action)
        assert controller.num_faults == 1
        controller.reset(GOOD)
        assert controller.fault is None
        assert not np.array_equal(controller.step(GOOD), controller.safe_action)

    def test_the_safe_action_is_given_before_anything_is_seen(self):
        safe = (-1.5, 0.75)
        controller = Controller(FILTER, safety=Safety(safe_action=safe), engine="numpy")
        np.testing.assert_array_equal(controller.step(None), np.array(safe, np.float32))
        assert controller.num_missing == 1

    def test_numbers_out_of_all_reason_are_not_believed(self):
        wild = np.full(5, 3e38, np.float32)
        bundle = filter_bundle(as_published=True)  # relu: nothing else limits what comes out
        controller, other = (Controller(bundle, engine="numpy") for _ in range(2))
        np.testing.assert_array_equal(controller.step(GOOD), other.step(GOOD))
        expected = controller._engine.memory.copy()
        np.testing.assert_array_equal(controller.step(wild), other.step(None))
        assert controller.num_missing == 1
        assert not np.array_equal(controller._engine.memory, expected)


class TestDeadlines:
    def test_steps_in_time_are_no_fault(self):
        controller, clock = controller_at()
        assert not any(steps(controller, clock, [10.0, 14.9, 5.0, 10.0] * 50))
        assert controller.num_late == 0

    def test_too_many_running_are_a_fault(self):
        # One cycle in two: each step is a cycle late.
        controller, clock = controller_at(max_late=3, late_share=0.9)
        faults = steps(controller, clock, [10, 10, 20, 20, 20])
        assert faults == [None, None, None, None, "3 cycles running were missed"]
        assert controller.num_late == 3

    def test_a_step_in_time_breaks_the_run(self):
        controller, clock = controller_at(max_late=3, late_share=0.9)
        assert not any(steps(controller, clock, [10, 20, 20, 10] * 10))

    def test_a_long_gap_counts_as_all_the_cycles_in_it(self):
        controller, clock = controller_at(max_late=5)
        assert steps(controller, clock, [10, 70])[-1] == "6 cycles running were missed"

    def test_too_large_a_share_of_the_window_is_a_fault(self):
        # Of fifty cycles, five may be missed.
        controller, clock = controller_at()
        gaps = [10.0] * 60
        for late in range(5):
            gaps[5 * late] = 20.0
        assert not any(steps(controller, clock, gaps))
        controller.reset()
        faults = steps(controller, clock, [10.0, *[20.0, 10.0] * 6])
        assert faults[-3:] == [None, *["6 of the last 50 cycles were missed"] * 2]

    def test_what_is_longer_ago_does_not_count(self):
        controller, clock = controller_at()
        assert not any(steps(controller, clock, [*[20.0, 10.0] * 5, *[10.0] * 60] * 4))

    @pytest.mark.parametrize("rate", [1, 5, 20, 100, 1000])
    def test_one_stall_of_two_cycles_is_no_fault_at_any_rate_but_one_of_three_is(self, rate: int):
        period = 1000 / rate
        controller, clock = controller_at(interval=1 / rate)
        one_stall = [*[period] * 10, 3 * period, *[period] * 60]
        assert not any(steps(controller, clock, one_stall * 3))
        assert controller.num_late == 6
        assert steps(controller, clock, [4 * period])[-1] == "3 cycles running were missed"

    def test_at_20_hz_a_stall_of_110_ms_is_no_fault(self):
        controller, clock = controller_at(interval=0.05)
        # The loop goes on at the next multiple of the period.
        assert not any(steps(controller, clock, [50, 50, 150, 50, 50]))
        assert controller.num_late == 2

    def test_no_fault_before_the_first_step_and_after_a_reset(self):
        controller, clock = controller_at()
        assert not any(steps(controller, clock, [5000, 10, 10]))
        controller.reset()
        assert not any(steps(controller, clock, [5000, 10, 10]))


class TestActions:
    @pytest.mark.parametrize("change", [0.01, (0.01, 0.2)])
    def test_they_change_no_faster_than_they_may(self, change, random: Generator):
        controller = Controller(FILTER, safety=Safety(max_change=change), engine="numpy")
        before, largest = controller.safe_action, np.zeros(2)
        for _ in range(200):
            action = controller.step(5 * random.normal(size=5))
            largest = np.maximum(largest, np.abs(action - before))
            before = action
        assert (largest <= np.float32(change) + 1e-6).all()
        assert (largest > 0.9 * np.float32(change)).all()

    def test_the_filter_is_told_what_was_done(self):
        controller = Controller(FILTER, safety=Safety(max_change=0.01), engine="numpy")
        action = controller.step(GOOD)
        np.testing.assert_allclose(controller._engine.memory[-2:], action - FILTER.middle)

    @pytest.mark.parametrize(
        ("safety", "words"),
        [
            ({"safe_action": (0.0,)}, "safe action to be within"),
            ({"safe_action": (0.0, 99.0)}, "safe action to be within"),
            ({"safe_action": (0.0, np.nan)}, "safe action to be within"),
            ({"max_change": 0.0}, "max_change to be above zero"),
            ({"max_change": (1.0, 1.0, 1.0)}, "max_change to be above zero"),
            ({"max_missing": 0}, "max_missing to be at least 1"),
            ({"interval": 0.0}, "interval to be from"),
            ({"late_share": 1.0}, "late_share to be"),
            ({"window": 0}, "window to be at least 1"),
        ],
    )
    def test_settings_that_cannot_be_are_refused(self, safety, words: str):
        with pytest.raises(ValueError, match=words):
            Controller(FILTER, safety=Safety(**safety), engine="numpy")


class TestRecord:
    def test_the_last_hundred_steps_are_written_on_the_first_fault(self, tmp_path: Path):
        path = tmp_path / "fault.json"
        clock, safety = Clock(), Safety(max_missing=2, record=path)
        controller = Controller(FILTER, safety=safety, engine="numpy", clock=clock)
        actions = []
        for time in range(250):
            clock.now = time * MILLISECOND
            actions.append(controller.step(np.full(5, 0.001 * time, np.float32)))
        assert not path.exists()
        controller.step(BAD)
        controller.step(BAD)
        controller.close()
        kept = json.loads(path.read_text())
        assert kept["fault"] == "2 observations running were missing"
        assert len(kept["steps"]) == NUM_KEPT
        assert [step["usable"] for step in kept["steps"][-4:]] == [True, True, False, False]
        assert kept["steps"][-1]["observation"][1] is None
        assert kept["steps"][-3]["time"] == pytest.approx(0.249)
        np.testing.assert_allclose(kept["steps"][-3]["observation"], 0.249, rtol=1e-6)
        np.testing.assert_allclose(kept["steps"][-3]["action"], actions[-1], rtol=1e-5)
        assert len(kept["steps"][0]["state"]) == 4
        first = path.read_text()
        controller.reset()
        for _ in range(3):
            controller.step(None)
        controller.close()
        assert controller.num_faults == 2
        assert path.read_text() == first

    def test_a_disk_that_fails_does_not_stop_the_safe_action(self, tmp_path: Path):
        (tmp_path / "file").write_text("in the way")
        safety = Safety(max_missing=1, record=tmp_path / "file" / "fault.json")
        controller = Controller(FILTER, safety=safety, engine="numpy")
        np.testing.assert_array_equal(controller.step(None), controller.safe_action)
        controller.close()
        assert "could not be written" in str(controller.problem)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(4),
        np.zeros((5, 1)),
        np.float32(3),
        [],
        [1, 2, [3], 4, 5],
        "12345",
        ["1", "2", "3", "4", "5"],
        np.zeros(5, complex),
        [0, 0, None, 0, 0],
        {"observation": 1},
        [10**400, 0, 0, 0, 0],
    ],
    ids=repr,
)
def test_a_wrong_shape_is_refused_at_the_door(wrong):
    controller = Controller(FILTER, engine="numpy")
    controller.step(GOOD)
    memory = controller._engine.memory.copy()
    with pytest.raises(ValueError, match="Expected the observation to be"):
        controller.step(wrong)
    np.testing.assert_array_equal(controller._engine.memory, memory)
    with pytest.raises(ValueError, match="Expected the"):
        controller.reset(wrong)


@np.errstate(all="ignore")  # some are to overflow
def hostile_inputs(size: int, random: Generator) -> list:
    """One of each kind of what may come from a sensor, or from someone who means harm."""
    normal = random.normal(size=size)
    scales = 10.0 ** random.uniform(-320, 308, size)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308, -3.4e38, 1e15, 1e20])
    return [
        normal.astype(np.float32),
        normal,
        np.broadcast_to(normal.astype(np.float32), size),  # not writeable
        normal.astype(">f8"),
        normal.astype(np.longdouble),
        normal.astype(np.float16),
        np.repeat(normal, 2)[::2],
        normal * scales,
        (normal * scales).astype(np.longdouble).tolist(),
        random.choice(special, size),
        np.clip(random.choice(special, size), -3e38, 3e38).astype(np.float32),
        np.where(random.random(size) < 0.3, np.nan, normal).astype(np.float32),
        random.integers(-(2**62), 2**62, size),
        random.integers(0, 2, size).astype(bool),
        np.frombuffer(random.bytes(4 * size), np.float32),
        np.frombuffer(random.bytes(8 * size), np.float64),
        None,
        normal.tolist(),
        random.normal(size=random.integers(0, 9)),
        random.normal(size=(size, 1)),
        "x" * size,
        normal + 1j,
    ]


@pytest.mark.parametrize(
    "bundle",
    [
        FILTER,
        pytest.param(filter_bundle(as_published=True), marks=pytest.mark.slow),
        pytest.param(PENDULUM, marks=pytest.mark.slow),
    ],
)
def test_a_hundred_thousand_hostile_inputs_do_no_harm(bundle: Bundle, random: Generator):
    engines: tuple[EngineName, ...] = ("numpy", "numba")
    both = [Controller(bundle, safety=Safety(max_missing=50), engine=engine) for engine in engines]
    low, high = bundle.limits
    size, actions, refused = bundle.description.observation_size, [], 0
    inputs = [each for _ in range(40) for each in hostile_inputs(size, random)]
    for index in random.integers(0, len(inputs), 100_000 // 6):
        try:
            actions.append([controller.step(inputs[index]) for controller in both])
        except ValueError:
            refused += 1
            continue
        assert both[0].fault == both[1].fault
        assert both[0].num_missing == both[1].num_missing
        if both[0].fault is not None:
            for controller in both:
                controller.reset()
    assert min(refused, both[0].num_missing) > 1000
    actions = np.array(actions)
    assert actions.dtype == np.float32
    assert ((low <= actions) & (actions <= high)).all()
    np.testing.assert_allclose(actions[:, 0], actions[:, 1], rtol=1e-3, atol=1e-3)
    # An ordinary observation is answered in an ordinary way after all that.
    ordinary = np.zeros(size, np.float32)
    for controller, engine in zip(both, engines, strict=True):
        controller.reset()
        fresh = Controller(bundle, engine=engine)
        np.testing.assert_array_equal(controller.step(ordinary), fresh.step(ordinary))
