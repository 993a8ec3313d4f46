"""The exact judge where noise is not additive and futures jump: right, or refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.odd_worlds import (
    Foggy,
    Jump,
    Murky,
    Patch,
    Product,
    Scalar,
    Shaky,
    Squash,
    Steady,
    truth,
)

from empowerment.capacity import exact_empowerment, exact_landscape
from empowerment.distributions import Gaussian
from empowerment.types import Action, State
from empowerment.worlds import AbstractWorld, Box

PLACES = (-0.6, 0.5)


@pytest.mark.parametrize(
    "world", [Squash(), Shaky(), Steady(), Foggy(), Jump(), Patch()], ids=lambda w: type(w).__name__
)
def test_one_action_through_any_noise(world: AbstractWorld, getkey):
    states = jnp.array(PLACES)[:, None]
    for place, found in zip(
        PLACES, exact_landscape(world, states, steps=1, key=getkey()), strict=True
    ):
        lower, upper = truth(world, place, cells=1500)
        # Both tables are grids: their cells lose about a thousandth.
        assert found.lower <= upper + 2e-3
        assert found.upper >= lower - 2e-3
        assert found.upper - found.lower < 5e-3


class Swipe(Scalar):
    """One action of two axes, or two of one, after which noise depends on what was done."""

    actions: Box = Box((-1.0, -1.0), (1.0, 1.0), ("u", "v"))

    def transition(self, state: State, action: Action) -> Gaussian:
        return Gaussian(state + action.sum(keepdims=True), 0.05 + jnp.abs(action[:1]))


class Contact(AbstractWorld):
    """Two axes; one jumps where the other passes a wall."""

    states: Box = Box((-1.0, -1.0), (1.0, 1.0), ("x", "y"))
    actions: Box = Box((-1.0, -1.0), (1.0, 1.0), ("u", "v"))

    def initial(self):
        return self.states.uniform()

    def transition(self, state: State, action: Action) -> Gaussian:
        x, y = state + action
        return Gaussian(jnp.stack([x + jnp.where(y > 0.3, 2.0, 0.0), y]), jnp.zeros(2))

    def emission(self, state: State) -> Gaussian:
        return Gaussian(state, jnp.full(2, 0.1))


class Hidden(Contact):
    """Noise that appears only after the first action."""

    def transition(self, state: State, action: Action) -> Gaussian:
        moved = jnp.linalg.norm(state) > 1e-3
        return Gaussian(state + action, jnp.where(moved, 0.2, 0.0) * jnp.ones(2))


@pytest.mark.parametrize(
    ("world", "steps", "message"),
    [
        (Foggy(), 2, "noise to be Gaussian.*the same for every state and plan"),
        (Swipe(), 1, "noise to be Gaussian.*the same for every state and plan"),
        (Product(Foggy(), 2), 1, "the same for every state and plan"),
        (Product(Murky(), 2), 1, "the same for every state and plan"),
        (Hidden(), 2, "no process noise .* more than one step; got a scale of"),
        (Contact(), 1, "depend continuously on the plan.*it jumps by 2[01] standard"),
        (Product(Jump(), 2), 1, "depend continuously on the plan"),
        (Jump(), 2, "depend continuously on the plan"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, AbstractWorld) else None,
)
def test_what_would_be_certified_wrongly_is_refused(
    world: AbstractWorld, steps: int, message: str, getkey
):
    state = jnp.zeros(world.states.size)
    with pytest.raises(ValueError, match=f"^Expected .*{message}"):
        exact_empowerment(world, state, steps=steps, key=getkey())


class Ring(Contact):
    """A set with a hole: radius and angle."""

    actions: Box = Box((0.7, -np.pi), (1.3, np.pi), ("radius", "angle"))

    def transition(self, state: State, action: Action) -> Gaussian:
        radius, angle = action
        move = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        return Gaussian(state + move, jnp.zeros(2))


def test_a_ring_counts_as_a_ring(getkey):
    found = exact_empowerment(Ring(), jnp.zeros(2), steps=1, key=getkey())
    # By brute force over a polar grid of inputs: 3.602 nats.
    assert found.value == pytest.approx(3.602, abs=0.01)
    assert found.lower <= 3.602 <= found.upper
