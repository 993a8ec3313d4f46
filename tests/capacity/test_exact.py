"""Exact empowerment against figures measured before, an independent oracle, and symmetry."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.capacity import Capacity, exact_empowerment, exact_landscape
from empowerment.worlds import AbstractWorld, Ball, Box, LinearGaussian, Pendulum, double_integrator

UPRIGHT, HANGING, FALLING, LEVEL = (0.0, 0.0), (np.pi, 0.0), (1.0, -3.0), (np.pi / 2, 0.0)
AT_THE_CLIP = ((0.07, 6.93), (0.56, -7.6), (np.pi / 2, 6.0), (-np.pi / 4, -8.0), (2.5, 7.5))
STATES = [UPRIGHT, HANGING, FALLING, LEVEL, (-1.0, 3.0), (-0.07, -6.93), *AT_THE_CLIP]

IN_THE_BOX = [(5.0, 5.0), (2.0, 8.0), (0.0, 5.0), (5.0, 10.0), (10.0, 0.0)]

TABLE = {  # Measured with other code: upright, hanging, falling, level
    1: (1.354, 1.354, 1.354, 1.354),
    2: (1.940, 1.908, 1.934, 1.924),
    5: (3.232, 3.030, 3.206, 3.107),
    10: (4.855, 4.308, 4.778, 4.397),
}


def solve(
    world: AbstractWorld, steps: int, *, states: Any = tuple(STATES), seed: int = 0
) -> list[Capacity]:
    """The same number of states in every call for one world: one compilation for each n."""
    # The key hardly matters, as a test below shows.
    key = jax.random.key(seed)
    return list(exact_landscape(world, jnp.array(states), steps=steps, key=key))


@functools.cache
def pendulum(steps: int) -> dict[tuple[float, float], Capacity]:
    return dict(zip(STATES, solve(Pendulum(), steps), strict=True))


def check_table(found: dict[tuple[float, float], Capacity], steps: int):
    for state, nats in zip((UPRIGHT, HANGING, FALLING, LEVEL), TABLE[steps], strict=True):
        assert found[state].value == pytest.approx(nats, abs=0.01)
        assert found[state].upper - found[state].lower < 0.006


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_measured_figures(steps: int):
    check_table(pendulum(steps), steps)
    for capacity in pendulum(steps).values():
        assert 0 <= capacity.lower <= capacity.value <= capacity.upper
        assert capacity.value - capacity.lower <= 0.5e-3 + 1e-9  # half the tolerance
        assert capacity.source.sum() == pytest.approx(1)


@pytest.mark.slow
def test_measured_figures_of_ten_steps():
    states = (UPRIGHT, HANGING, FALLING, LEVEL)
    found = dict(zip(states, solve(Pendulum(), 10, states=states), strict=True))
    check_table(found, 10)


@pytest.mark.parametrize(
    ("steps", "states"),
    [
        (1, AT_THE_CLIP),
        (2, (HANGING, *AT_THE_CLIP)),
        (5, (HANGING, *AT_THE_CLIP[:3])),
    ],
)
def test_independent_oracle_agrees(oracle: Any, steps: int, states: tuple):
    for state in states:
        lower, upper = oracle.bounds(np.array(state), steps)
        found = pendulum(steps)[state]
        assert found.value == pytest.approx(0.5 * (lower + upper), abs=0.01)
        assert upper - lower < 0.008
        assert found.lower <= upper
        assert lower <= found.upper


@pytest.mark.parametrize("steps", [2, 5])
def test_mirror_image_is_worth_the_same(steps: int):
    found = pendulum(steps)
    for state in (FALLING, AT_THE_CLIP[0]):
        mirrored = found[(-state[0], -state[1])]
        assert mirrored.value == pytest.approx(found[state].value, abs=0.002)


def test_key_hardly_matters():
    for first, second in zip(pendulum(2).values(), solve(Pendulum(), 2, seed=1), strict=True):
        assert second.value == pytest.approx(first.value, abs=0.005)


@pytest.mark.parametrize(("resolution", "nats"), [(0.01, 2.741), (0.05, 1.354), (0.1, 0.882)])
def test_single_step_at_measured_resolutions(resolution: float, nats: float):
    found = solve(Pendulum(resolution=resolution), 1)[0]
    assert found.value == pytest.approx(nats, abs=0.002)


@pytest.mark.parametrize("steps", [1, 2])
def test_less_is_carried_at_a_coarser_resolution(steps: int):
    fine, coarse = (solve(Pendulum(resolution=scale), steps) for scale in (0.08, 0.12))
    for state, first, second, third in zip(
        STATES, pendulum(steps).values(), fine, coarse, strict=True
    ):
        assert first.value > second.value > third.value, state


def test_process_noise_of_one_step_is_noise_like_any_other():
    noisy = solve(Pendulum(resolution=0.04, process_noise=0.03), 1)
    for first, second in zip(pendulum(1).values(), noisy, strict=True):
        assert second.value == pytest.approx(first.value, abs=1e-3)


def test_single_state_is_a_landscape_of_one():
    key = jax.random.key(0)
    found = exact_empowerment(Pendulum(), jnp.array(LEVEL), steps=1, key=key)
    assert found.value == pytest.approx(pendulum(1)[LEVEL].value, abs=1e-5)


def test_landscapes_of_several_batches_keep_their_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("empowerment.capacity.exact._BATCH", 4)
    found = solve(Pendulum(), 1)
    assert len(found) == len(STATES) == 11  # two full batches, and three of four
    for first, second in zip(pendulum(1).values(), found, strict=True):
        assert second.value == pytest.approx(first.value, abs=1e-5)


@pytest.mark.parametrize(
    ("resolution", "centre", "wall"),
    # Measured with other code, for each axis.
    [(0.02, 3.225, 2.570), (0.05, 2.365, 1.758), (0.1, 1.758, 1.219), (0.2, 1.219, 0.775)],
)
def test_ball_has_the_measured_figures_along_each_axis(
    resolution: float, centre: float, wall: float
):
    found = solve(Ball(resolution=resolution), 1, states=IN_THE_BOX)
    expected = [2 * centre, 2 * centre, centre + wall, centre + wall, 2 * wall]
    for capacity, nats in zip(found, expected, strict=True):
        assert capacity.value == pytest.approx(nats, abs=0.002)
        assert capacity.lower <= capacity.value <= capacity.upper <= capacity.lower + 1e-3
        assert capacity.source.sum() == pytest.approx(1)


def test_longer_plans_of_the_ball_reach_as_far_as_longer_moves():
    near = solve(Ball(), 3, states=IN_THE_BOX)
    far = solve(Ball(max_step=3.0), 1, states=IN_THE_BOX)
    for first, second in zip(near, far, strict=True):
        assert first.value == pytest.approx(second.value, abs=1e-3)


def linear(observed: int = 1, process: float = 0.0, limit: float = 1.0, resolution: float = 1.0):
    """Three independent integrators, of which the first few are seen."""
    return LinearGaussian(
        dynamics=jnp.eye(3),
        control=jnp.eye(3),
        observation=jnp.eye(3)[:observed],
        process_noise=jnp.full(3, process),
        resolution=jnp.full(observed, resolution),
        states=Box((-1.0,) * 3, (1.0,) * 3, ("a", "b", "c")),
        actions=Box((-limit,) * 3, (limit,) * 3, ("u", "v", "w")),
    )


def test_world_that_is_seen_along_one_axis():
    """Five steps of at most one: an interval of half-width five standard deviations."""
    found = exact_empowerment(linear(), jnp.zeros(3), steps=5, key=jax.random.key(0))
    assert found.value == pytest.approx(1.219, abs=0.002)


REFUSALS: dict[str, tuple[Any, int, str]] = {
    "no steps": (double_integrator(), 0, "steps to be at least 1; got 0"),
    "infinite limits": (
        linear(limit=np.inf),
        1,
        r"limits of the actions to be finite .*; got \[-inf, -inf, -inf\] to \[inf",
    ),
    "three axes": (linear(3), 1, "at most two perceived dimensions .*; got 3. Use the gaussian"),
    "process noise": (
        linear(process=0.25),
        2,
        r"no process noise .* more than one step; got a scale of \[0.25, 0.25, 0.25\]\. Use",
    ),
    "fine curve": (Pendulum(resolution=1e-4), 1, r"got 600\d\. Take a coarser resolution"),
    "finest curve": (Pendulum(resolution=1e-10), 1, "Take a coarser resolution"),
    "fine interval": (linear(resolution=1e-6), 1, "got 20000.* Take a coarser resolution"),
    "fine box": (linear(2, resolution=1e-3), 1, "got 2000 by 2000. Take a coarser resolution"),
    "fine set": (double_integrator(0.003), 20, r"\d+ by \d+. Take a coarser resolution or fewer"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_done_is_refused(name: str):
    world, steps, sentence = REFUSALS[name]
    with pytest.raises(ValueError, match=f"^Expected .*{sentence}"):
        exact_empowerment(world, jnp.zeros(world.states.size), steps=steps, key=jax.random.key(0))


def test_correlated_noise_is_refused():
    world = LinearGaussian(
        dynamics=jnp.eye(2),
        control=jnp.eye(2),
        observation=jnp.array([[1.0, 0.0], [1.0, 1.0]]),
        process_noise=jnp.ones(2),
        resolution=jnp.ones(2),
        states=Box((-1.0, -1.0), (1.0, 1.0), ("a", "b")),
        actions=Box((-1.0, -1.0), (1.0, 1.0), ("u", "v")),
    )
    with pytest.raises(ValueError, match=r"independent along each axis.* Use the variational"):
        exact_empowerment(world, jnp.zeros(2), steps=1, key=jax.random.key(0))
