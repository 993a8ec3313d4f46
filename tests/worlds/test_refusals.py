"""What a world refuses at the door, each with its sentence."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empowerment.distributions import Gaussian, Uniform
from empowerment.worlds import AbstractWorld, Ball, Bounded, Box, LinearGaussian, Pendulum


class Stretching(AbstractWorld):
    """A world whose successors have one coordinate too many."""

    states: Box
    actions: Box

    def initial(self) -> Uniform:
        return self.states.uniform()

    def transition(self, state: jax.Array, action: jax.Array) -> Gaussian:
        return Gaussian(jnp.concatenate([state, action]), jnp.ones(2))

    def emission(self, state: jax.Array) -> Gaussian:
        return Gaussian(state, jnp.ones(1))


class Blunt(AbstractWorld):
    """A world that gives a successor where its distribution is wanted."""

    states: Box
    actions: Box

    def initial(self) -> Uniform:
        return self.states.uniform()

    def transition(self, state: jax.Array, action: jax.Array) -> Gaussian:
        return state + action  # type: ignore[return-value]

    def emission(self, state: jax.Array) -> Gaussian:
        return Gaussian(state, jnp.ones(1))


UNIT = Box((-1.0,), (1.0,), ("x",))
FREE = Box((-jnp.inf,), (jnp.inf,), ("x",))


def one_dimensional(**changes) -> LinearGaussian:
    parts = {
        "dynamics": jnp.eye(1),
        "control": jnp.eye(1),
        "observation": jnp.eye(1),
        "process_noise": jnp.zeros(1),
        "resolution": jnp.ones(1),
        "states": UNIT,
        "actions": UNIT,
    }
    return LinearGaussian(**(parts | changes))


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "no distribution": (
        lambda: Blunt(UNIT, UNIT),
        r"^Expected the transition of Blunt to be a Gaussian with a scale for each mean; got ",
    ),
    "no noise": (
        lambda: Pendulum(resolution=0.0),
        r"^Expected Pendulum to have positive noise; got a transition of scale "
        r"\[0.0, 0.0\] and an emission of scale \[0.0, 0.0\]\..* set a resolution",
    ),
    "noise on some axes only": (
        lambda: one_dimensional(
            dynamics=jnp.eye(2),
            control=jnp.ones((2, 1)),
            observation=jnp.eye(2),
            process_noise=jnp.array([1.0, 0.0]),
            resolution=jnp.zeros(2),
            states=Box((-1.0, -1.0), (1.0, 1.0), ("x", "y")),
        ),
        "Expected LinearGaussian to have positive noise",
    ),
    "NaN in the dynamics": (
        lambda: Pendulum(friction=float("nan")),
        "Expected the transition of Pendulum to be finite .*; got mean .*nan.* at state",
    ),
    "NaN resolution": (
        lambda: Ball(resolution=float("nan")),
        "Expected the emission of Ball to be finite",
    ),
    "infinite resolution": (
        lambda: Ball(resolution=float("inf")),
        "Expected the emission of Ball to be finite",
    ),
    "negative resolution": (
        lambda: Pendulum(resolution=-0.1),
        r"Expected the emission of Pendulum to be finite with scales of at least zero; "
        r"got mean .* scale \[-0.1",
    ),
    "negative process noise": (
        lambda: Ball(process_noise=-1.0),
        r"Expected the transition of Ball .* scale \[-1.0, -1.0\]",
    ),
    "wrong successor shape": (
        lambda: Stretching(UNIT, UNIT),
        r"Expected the successor of a state of shape \(1,\) to have the same shape; "
        r"got \(2,\) from Stretching\.",
    ),
    "inside-out box": (
        lambda: Box((0.0, 1.0), (1.0, 0.5), ("x", "y")),
        r"Expected low to be below high on each of \('x', 'y'\); "
        r"got \[0.0, 1.0\] and \[1.0, 0.5\]\.",
    ),
    "flat box": (lambda: Ball(side=0.0), "Expected low to be below high"),
    "NaN in a box": (lambda: Pendulum(max_torque=float("nan")), "below high .*nan"),
    "box of the wrong size": (
        lambda: Box((0.0,), (1.0,), ("x", "y")),
        r"Expected low and high to have one entry for each of \('x', 'y'\); got shapes "
        r"\(1,\) and \(1,\)\.",
    ),
    "box without axes": (lambda: Box((), (), ()), "at least one axis; got none"),
    "infinite limits to squash into": (
        lambda: Bounded(one_dimensional(actions=FREE)),
        r"Expected the limits of the actions to be finite, to squash into; "
        r"got \[-inf\] to \[inf\]\.",
    ),
    "squashing twice": (lambda: Bounded(Bounded(Pendulum())), "to squash into"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_with_a_sentence(case: str):
    make, sentence = REFUSALS[case]
    with pytest.raises(ValueError, match=sentence):
        make()


def test_process_noise_alone_is_noise():
    assert Ball(resolution=0.0, process_noise=0.1).process_noise > 0


def test_world_can_be_built_where_there_are_no_values_to_check():
    """Inside a transformation, as when the resolution is being optimised."""

    def width(resolution: jax.Array) -> jax.Array:
        return Ball(resolution=resolution).emission(jnp.ones(2)).scale.sum()

    assert eqx.filter_jit(jax.grad(width))(jnp.array(0.5)) == 2.0


@pytest.mark.parametrize(
    ("low", "high", "centre"),
    [
        (-1.0, 3.0, 1.0),
        (-np.inf, np.inf, 0.0),
        (2.0, np.inf, 2.0),
        (-np.inf, -4.0, -4.0),
    ],
)
def test_centre_of_a_box_is_inside(low: float, high: float, centre: float):
    assert Box((low,), (high,), ("x",)).centre.tolist() == [centre]
